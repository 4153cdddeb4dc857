/* The addresses of this machine (of this network namespace), kept current by netlink: nobody dials the
 * proxy's host through it. */
#ifndef STK_EGRESS_PROXY_OWN_H
#define STK_EGRESS_PROXY_OWN_H

#include "egress-proxy/decide.h"
#include <event2/event.h>

typedef struct stk_own stk_own;

/* Reads them once before it returns, then follows changes on the loop. */
int stk_own_new(struct event_base *base, stk_own **ret, stk_err *err) STK_MUST_USE;
void stk_own_free(stk_own *own);
/* Valid until the next turn of the loop. */
stk_own_addrs stk_own_view(const stk_own *own);

#endif
