/* Step 7: a connection to one of the checked addresses (RFC 8305: one after the other, the next a quarter
 * second later or as soon as one fails). The peer of what is handed out was compared with the address that
 * was checked. */
#ifndef STK_EGRESS_PROXY_DIALER_H
#define STK_EGRESS_PROXY_DIALER_H

#include "egress-proxy/decide.h"
#include "proto/base/time.h"
#include <event2/event.h>

typedef struct stk_dialer stk_dialer;
/* STK_R_ALLOWED with a nonblocking descriptor (now the callee's) and its address, else fd -1 and
 * STK_R_CONNECT_FAILED, STK_R_CONNECT_TIMEOUT or STK_R_OVERLOADED. Called once, from the loop; the dialer is
 * gone then. */
typedef void (*stk_dialed_fn)(stk_reason reason, int fd, const stk_sock *peer, void *arg);

/* addrs are copied, in the order to try, ports set; n >= 1. */
stk_dialer *stk_dialer_new(struct event_base *base, const stk_sock *addrs, size_t n, stk_span in_all,
                           stk_dialed_fn on_done, void *arg);
void stk_dialer_free(stk_dialer *dialer);

#endif
