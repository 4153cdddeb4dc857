/* One question to the configured name servers, in order: a fresh connected UDP socket (so a fresh random
 * port) and a random id for each try, TCP when the answer is truncated. Bounded in time, size and stray
 * answers. */
#ifndef STK_EGRESS_PROXY_DNS_QUERY_H
#define STK_EGRESS_PROXY_DNS_QUERY_H

#include "egress-proxy/dns_message.h"
#include <event2/event.h>

#define STK_RESOLVERS_MAX 3

typedef struct stk_dns_servers {
    stk_sock v[STK_RESOLVERS_MAX];
    size_t n;
} stk_dns_servers;

typedef struct stk_dns_query stk_dns_query;
/* STK_R_ALLOWED with *answer (maybe without addresses), or why not. Called once from the loop, never by
 * stk_dns_query_new. */
typedef void (*stk_dns_done_fn)(stk_reason reason, const stk_dns_answer *answer, void *arg);

/* servers and name are borrowed; *spent is counted up once a message. */
stk_dns_query *stk_dns_query_new(struct event_base *base, const stk_dns_servers *servers, const char *name,
                                 stk_dns_type type, int64_t *spent, stk_dns_done_fn on_done, void *arg);
/* The answer is wanted within `left` from now, or not at all. */
void stk_dns_query_hurry(stk_dns_query *query, stk_span left);
void stk_dns_query_free(stk_dns_query *query);

#endif
