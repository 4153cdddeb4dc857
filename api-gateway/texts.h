/* Files compiled in: proto/schema/openapi.json and console.html. */
#ifndef STK_GATEWAY_TEXTS_H
#define STK_GATEWAY_TEXTS_H

#include "proto/base/buf.h"

stk_str stk_gw_text_openapi(void);
stk_str stk_gw_text_console(void);

#endif
