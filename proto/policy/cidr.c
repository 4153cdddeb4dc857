#include "proto/policy/address_table.h"
#include <arpa/inet.h>

static bool host_bits_clear(const stk_cidr *net)
{
    unsigned size = net->family == AF_INET ? 32 : 128;
    for (unsigned bit = net->bits; bit < size; bit++)
        if (net->bytes[bit / 8] & (0x80u >> (bit % 8)))
            return false;
    return true;
}

int stk_cidr_parse(stk_str text, stk_cidr *ret, stk_err *err)
{
    stk_cidr net = {.family = AF_INET};
    const char *slash = text.n ? memchr(text.p, '/', text.n) : NULL;
    if (!slash)
        return stk_err_set(err, STK_E_FIELD, "a network needs a prefix length, as 10.1.0.0/16");
    char ip[INET6_ADDRSTRLEN];
    stk_str front = stk_str_n(text.p, (size_t)(slash - text.p));
    if (!stk_str_copy(front, ip, sizeof(ip)))
        return stk_err_set(err, STK_E_FIELD, "a network starts with an IPv4 or IPv6 address");
    if (inet_pton(AF_INET, ip, net.bytes) != 1) {
        net.family = AF_INET6;
        if (inet_pton(AF_INET6, ip, net.bytes) != 1)
            return stk_err_set(err, STK_E_FIELD, "a network starts with an IPv4 or IPv6 address");
    }
    uint64_t bits;
    uint64_t most = net.family == AF_INET ? 32 : 128;
    if (!stk_str_u64(stk_str_n(slash + 1, text.n - front.n - 1), most, &bits))
        return stk_err_set(err, STK_E_FIELD, "the prefix length must be 0 to %u", (unsigned)most);
    net.bits = (uint8_t)bits;
    if (!host_bits_clear(&net))
        return stk_err_set(err, STK_E_FIELD, "bits are set behind the prefix of the network");
    *ret = net;
    return 0;
}

bool stk_cidr_has(const stk_cidr *net, const struct sockaddr *addr)
{
    if (addr->sa_family != net->family)
        return false;
    if (addr->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)addr;
        return stk__prefix_same(net->bytes, (const uint8_t *)&in->sin_addr, net->bits);
    }
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)addr;
    return addr->sa_family == AF_INET6 && stk__prefix_same(net->bytes, in6->sin6_addr.s6_addr, net->bits);
}
