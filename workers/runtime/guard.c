#include "workers/runtime/guard.h"
#include "workers/runtime/problem.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

static bool is_loopback(const struct sockaddr *peer)
{
    if (peer->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)peer)->sin_addr.s_addr) >> 24 == 127;
    const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(a) || (IN6_IS_ADDR_V4MAPPED(a) && a->s6_addr[12] == 127);
}

/* An address that a socket can be bound to is one of ours. Not knowing is a refusal. */
static bool is_ours(const struct sockaddr *peer)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at = {.v6 = {.sin6_family = AF_UNSPEC}};
    bool v6 = peer->sa_family == AF_INET6;
    socklen_t n = v6 ? sizeof(at.v6) : sizeof(at.v4);
    memcpy(&at, peer, n);
    if (v6)
        at.v6.sin6_port = 0;
    else
        at.v4.sin_port = 0;
    int fd STK_AUTO(stk_closep) = socket(peer->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    return is_loopback(peer) || fd < 0 || bind(fd, &at.any, n) == 0 || errno != EADDRNOTAVAIL;
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
