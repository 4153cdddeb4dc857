/* Plain http: one judged request to one upstream connection, and its response back. Both heads are made anew
 * and both bodies re-framed by our own encoder, so that client and origin can't disagree with us about where
 * a message ends. */
#ifndef STK_EGRESS_PROXY_FORWARD_H
#define STK_EGRESS_PROXY_FORWARD_H

#include "egress-proxy/body.h"
#include "egress-proxy/flow.h"
#include "egress-proxy/reason.h"
#include "egress-proxy/rewrite.h"

typedef struct stk_forward stk_forward;
/* Called once, from the loop; free it in there. STK_R_CLOSED: the response is through, else why not
 * (BAD_FRAMING: of the request; BAD_RESPONSE, RESPONSE_TIMEOUT; RESET, IDLE_TIMEOUT, BYTES_EXCEEDED). */
typedef void (*stk_forward_end_fn)(stk_reason reason, void *arg);

typedef struct stk_forward_spec {
    int client, origin;  /* nonblocking; stay the caller's */
    stk_buf head;        /* as stk_request_rewrite made it; taken */
    stk_framing framing; /* of the request */
    uint64_t length;
    stk_str early; /* what came behind the head; copied */
    bool expect_continue;
    stk_response_how how;
    stk_span idle;
    stk_forward_end_fn on_end;
    void *arg;
} stk_forward_spec;

/* Never calls back before it returns. */
stk_forward *stk_forward_new(stk_flow *flow, stk_forward_spec *spec);
void stk_forward_free(stk_forward *fw);
/* Something of the response has gone to the client: no answer of ours can follow. */
bool stk_forward_answered(const stk_forward *fw);
/* After STK_R_CLOSED: another request may follow on the client's connection; *rest gets what was read of it.
 */
bool stk_forward_reusable(stk_forward *fw, stk_buf *rest);
int64_t stk_forward_bytes_in(const stk_forward *fw);
int64_t stk_forward_bytes_out(const stk_forward *fw);

#endif
