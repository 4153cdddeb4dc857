/* Step 5: our own stub resolver. A and AAAA in parallel, both waited for, since one bad address refuses the
 * lot. Answers are kept for as long as their TTL says, a minute at most, and judged anew each time. */
#ifndef STK_EGRESS_PROXY_RESOLVER_H
#define STK_EGRESS_PROXY_RESOLVER_H

#include "egress-proxy/dns_query.h"
#include "proto/base/time.h"

#define STK_LOOKUP_ADDRS (2 * STK_ADDRS_MAX)

typedef struct stk_resolver stk_resolver;
typedef struct stk_lookup stk_lookup;
/* STK_R_ALLOWED with n >= 1 addresses (port 0; the callee may change them), or why not. Called once, from the
 * loop; the lookup is gone then. */
typedef void (*stk_resolved_fn)(stk_reason reason, stk_sock *addrs, size_t n, void *arg);

/* servers is copied; with none every lookup ends as STK_R_DNS_UNREACHABLE. */
stk_resolver *stk_resolver_new(struct event_base *base, const stk_dns_servers *servers);
void stk_resolver_free(stk_resolver *resolver);
/* Messages sent so far; the caller compares it with the budget, and may set it. */
int64_t *stk_resolver_spent(stk_resolver *resolver);
/* Remembered addresses: how many were put into addrs[STK_LOOKUP_ADDRS], 0 when it must be asked. */
size_t stk_resolver_known(stk_resolver *resolver, const char *name, stk_mono now, stk_sock *addrs);
void stk_resolver_forget(stk_resolver *resolver);

stk_lookup *stk_lookup_new(stk_resolver *resolver, const char *name, stk_resolved_fn on_done, void *arg);
void stk_lookup_free(stk_lookup *lookup);

#endif
