/* Steps 3, 4 and 6 of the decision order over plain values. Pure: no clock, no socket. */
#ifndef STK_EGRESS_PROXY_DECIDE_H
#define STK_EGRESS_PROXY_DECIDE_H

#include "egress-proxy/target.h"

typedef union stk_sock {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} stk_sock;
#define STK_ADDRS_MAX 32

/* What the sandbox has used up, against the policy's limits. */
typedef struct stk_usage {
    int64_t tunnels; /* open, or on their way */
    int64_t bytes;
    int64_t dns_queries;
} stk_usage;

typedef struct stk_decision {
    stk_reason reason; /* STK_R_ALLOWED lets it pass */
    char rule[STK_NAME_MAX + 8];
} stk_decision;

/* Before any DNS query. policy NULL: none yet. The list first, then the organisation, then what is used up: a
 * name that is not allowed never learns of the limits. */
stk_decision stk_decide_name(const stk_policy *policy, const char *host, bool literal, uint16_t port,
                             const stk_usage *usage);

/* The proxy's own addresses, as far as a decision needs them. */
typedef struct stk_own_addrs {
    const stk_sock *v;
    size_t n;
} stk_own_addrs;
/* All answers together: one that may not be dialled refuses the lot. Sets the port of each; *ret_class tells
 * what the bad one is ("loopback", "own"), never the address. addrs empty: STK_R_DNS_NO_ADDRESS. */
stk_reason stk_decide_addresses(const stk_policy *policy, const char *host, uint16_t port, stk_own_addrs own,
                                stk_sock *addrs, size_t n, const char **ret_class);
bool stk_sock_same_addr(const stk_sock *a, const stk_sock *b);
void stk_sock_port(stk_sock *addr, uint16_t port);
socklen_t stk_sock_len(const stk_sock *addr);
/* Orders for dialling: IPv6 and IPv4 alternate, IPv6 first (RFC 8305, section 4). */
void stk_decide_order(stk_sock *addrs, size_t n);

#endif
