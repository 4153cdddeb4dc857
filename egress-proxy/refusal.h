/* The answer to a refused request: one line of problem+json, which never names an address the client did not
 * already know. Pure. */
#ifndef STK_EGRESS_PROXY_REFUSAL_H
#define STK_EGRESS_PROXY_REFUSAL_H

#include "egress-proxy/reason.h"
#include "proto/base/buf.h"

typedef struct stk_refusal {
    stk_reason reason;
    const char *detail; /* "" = the reason's own text     */
    const char *host;   /* canonical; "" = none was read  */
    int port;
    const char *rule; /* the entry that decided; "" = none */
    const char *run;
    bool head;       /* the request was HEAD: no body    */
    bool keep_alive; /* else Connection: close           */
} stk_refusal;

void stk_refusal_write(const stk_refusal *refusal, stk_buf *out);

#endif
