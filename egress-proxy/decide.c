#include "egress-proxy/decide.h"
#include <arpa/inet.h>

stk_decision stk_decide_name(const stk_policy *policy, const char *host, bool literal, uint16_t port,
                             const stk_usage *usage)
{
    stk_decision out = {.reason = STK_R_POLICY_UNAVAILABLE};
    if (!policy)
        return out;
    out.reason = STK_R_HOST_NOT_ALLOWED;
    if (literal)
        return out;
    stk_verdict verdict = stk_policy_judge(policy, host, port);
    memcpy(out.rule, verdict.rule, sizeof(out.rule));
    out.reason = stk_reason_of(verdict.reason);
    if (!verdict.allow)
        return out;
    const stk_policy_limits *limits = stk_policy_limits_of(policy);
    if (usage->tunnels >= limits->tunnels)
        out.reason = STK_R_TOO_MANY_TUNNELS;
    else if (limits->bytes && usage->bytes >= limits->bytes)
        out.reason = STK_R_BYTES_EXCEEDED;
    else if (usage->dns_queries >= limits->dns_queries)
        out.reason = STK_R_DNS_BUDGET;
    return out;
}

bool stk_sock_same_addr(const stk_sock *a, const stk_sock *b)
{
    if (a->any.sa_family != b->any.sa_family)
        return false;
    if (a->any.sa_family == AF_INET)
        return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
    return a->any.sa_family == AF_INET6 &&
           memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof(a->v6.sin6_addr)) == 0;
}

void stk_sock_port(stk_sock *addr, uint16_t port)
{
    if (addr->any.sa_family == AF_INET)
        addr->v4.sin_port = htons(port);
    else
        addr->v6.sin6_port = htons(port);
}

socklen_t stk_sock_len(const stk_sock *addr)
{
    return addr->any.sa_family == AF_INET ? sizeof(addr->v4) : sizeof(addr->v6);
}

static bool is_own(stk_own_addrs own, const stk_sock *addr)
{
    for (size_t i = 0; i < own.n; i++)
        if (stk_sock_same_addr(&own.v[i], addr))
            return true;
    return false;
}

stk_reason stk_decide_addresses(const stk_policy *policy, const char *host, uint16_t port, stk_own_addrs own,
                                stk_sock *addrs, size_t n, const char **ret_class)
{
    *ret_class = "";
    if (n == 0)
        return STK_R_DNS_NO_ADDRESS;
    for (size_t i = 0; i < n; i++) {
        stk_addr_class class;
        stk_sock_port(&addrs[i], port);
        bool ok = stk_policy_address_ok(policy, &addrs[i].any, host, port, &class);
        *ret_class = stk_addr_class_text(class);
        if (!ok)
            return STK_R_ADDRESS_NOT_PUBLIC;
        if (is_own(own, &addrs[i])) {
            *ret_class = "own";
            return STK_R_ADDRESS_NOT_PUBLIC;
        }
    }
    return STK_R_ALLOWED;
}

void stk_decide_order(stk_sock *addrs, size_t n)
{
    int want = AF_INET6;
    for (size_t i = 0; i < n; i++) {
        size_t found = i;
        while (found < n && addrs[found].any.sa_family != want)
            found++;
        want = want == AF_INET6 ? AF_INET : AF_INET6;
        if (found == n)
            continue;
        stk_sock taken = addrs[found];
        memmove(&addrs[i + 1], &addrs[i], (found - i) * sizeof(*addrs));
        addrs[i] = taken;
    }
}
