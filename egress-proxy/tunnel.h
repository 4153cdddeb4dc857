/* Step 8: bytes both ways between two connected sockets, each direction ended on its own (half-close). The
 * client's first bytes are held back until the TLS check is through; nothing is ever reordered.
 *
 * Small amounts are copied through the loop's scratch buffer; a direction that fills it goes over to splice,
 * with a pipe lent only while data moves. A tunnel at rest holds no buffer and no pipe. */
#ifndef STK_EGRESS_PROXY_TUNNEL_H
#define STK_EGRESS_PROXY_TUNNEL_H

#include "egress-proxy/flow.h"
#include "egress-proxy/reason.h"
#include "egress-proxy/sni.h"

typedef struct stk_tunnel stk_tunnel;
/* Called once, from the loop; free the tunnel in it. STK_R_CLOSED, STK_R_RESET, STK_R_IDLE_TIMEOUT,
 * STK_R_BYTES_EXCEEDED, or a refusal by the TLS check. */
typedef void (*stk_tunnel_end_fn)(stk_reason reason, void *arg);

typedef struct stk_tunnel_spec {
    int client, origin; /* nonblocking; stay the caller's, who closes them after stk_tunnel_free */
    stk_str early;      /* what the client sent behind its head; copied */
    stk_tls_mode tls;
    const char *host;     /* borrowed for the tunnel's life */
    stk_span idle, hello; /* limits: nothing moving; first byte to whole hello */
    stk_tunnel_end_fn on_end;
    void *arg;
} stk_tunnel_spec;

/* Never calls back before it returns. */
stk_tunnel *stk_tunnel_new(stk_flow *flow, const stk_tunnel_spec *spec);
void stk_tunnel_free(stk_tunnel *tunnel);
int64_t stk_tunnel_bytes_in(const stk_tunnel *tunnel);  /* origin -> client, delivered */
int64_t stk_tunnel_bytes_out(const stk_tunnel *tunnel); /* client -> origin, delivered */

#endif
