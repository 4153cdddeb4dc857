/* --config FILE: what the flags do not say. */
#ifndef STK_EGRESS_PROXY_CONFIG_FILE_H
#define STK_EGRESS_PROXY_CONFIG_FILE_H

#include "egress-proxy/options.h"

/* Fills what *opt lacks of listen, policy, records and resolver. The texts live as long as the process.
 * -STK_E_CONFIG, … */
int stk_px_config_read(const char *path, stk_px_options *opt, stk_err *err) STK_MUST_USE;

#endif
