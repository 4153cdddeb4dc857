#include "workers/runtime/guard.h"
#include "workers/runtime/problem.h"
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
    if (!a || !b)
        return false;
    const struct sockaddr_in *a4 = (const void *)a, *b4 = (const void *)b;
    const struct sockaddr_in6 *a6 = (const void *)a, *b6 = (const void *)b;
    if (a->sa_family == AF_INET6 && b->sa_family == AF_INET6)
        return memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
    if (a->sa_family == AF_INET && b->sa_family == AF_INET)
        return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
    if (a->sa_family == AF_INET6 && b->sa_family == AF_INET && IN6_IS_ADDR_V4MAPPED(&a6->sin6_addr))
        return memcmp(a6->sin6_addr.s6_addr + 12, &b4->sin_addr, 4) == 0;
    return false;
}

static bool is_loopback(const struct sockaddr *peer)
{
    if (peer->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)peer)->sin_addr.s_addr) >> 24 == 127;
    const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

/* Addresses may come and go, so they are asked for each time; not knowing them is a refusal. */
static bool is_ours(const struct sockaddr *peer)
{
    struct ifaddrs *list;
    if (is_loopback(peer) || getifaddrs(&list) < 0)
        return true;
    bool ours = false;
    for (const struct ifaddrs *i = list; i && !ours; i = i->ifa_next)
        ours = same_address(peer, i->ifa_addr);
    freeifaddrs(list);
    return ours;
}

static bool equal_in_constant_time(stk_str a, stk_str b)
{
    unsigned char differ = a.n != b.n;
    for (size_t i = 0; i < a.n; i++)
        differ |= (unsigned char)(a.p[i] ^ b.p[b.n ? i % b.n : 0]);
    return !differ;
}

static bool has_token(const stk_runtime *rt, stk_http_x *x)
{
    const stk_head_field *field = stk_head_get(stk_http_head(x), "Authorization");
    stk_str bearer = STK_STR("Bearer ");
    if (!field || field->value.n < bearer.n || !stk_str_ieq(stk_str_n(field->value.p, bearer.n), bearer))
        return false;
    stk_str token = stk_str_n(field->value.p + bearer.n, field->value.n - bearer.n);
    return equal_in_constant_time(token, stk_str_of(rt->who.nonce));
}

bool stk_rt_admit(stk_runtime *rt, stk_http_x *x)
{
    if (!rt->who.nonce[0])
        return true;
    const struct sockaddr *peer = stk_http_peer_addr(x);
    if (peer && is_ours(peer)) {
        stk_rt_problem(x, 403, "", "the sandbox's own addresses may not call its runtime");
        return false;
    }
    if (has_token(rt, x))
        return true;
    stk_rt_problem(x, 401, "WWW-Authenticate: Bearer\r\n", "the sandbox's token is needed");
    return false;
}
