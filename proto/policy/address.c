#include "proto/policy/address_table.h"
#include <arpa/inet.h>
#include <stdio.h>

static const char *const texts[] = {
#define X(sym, text) [STK_ADDR_##sym] = text,
    STK_ADDR_CLASSES(X)
#undef X
};

const char *stk_addr_class_text(stk_addr_class c)
{
    return (unsigned)c < STK_COUNT(texts) ? texts[c] : "unknown";
}

bool stk__prefix_same(const uint8_t *a, const uint8_t *b, unsigned bits)
{
    unsigned whole = bits / 8, rest = bits % 8;
    if (memcmp(a, b, whole) != 0)
        return false;
    return !rest || (uint8_t)((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

static stk_addr_class longest(const stk_addr_row *rows, size_t n, const uint8_t *addr,
                              stk_addr_class otherwise)
{
    int best = -1;
    stk_addr_class found = otherwise;
    for (size_t i = 0; i < n; i++)
        if (rows[i].bits > best && stk__prefix_same(rows[i].bytes, addr, rows[i].bits)) {
            best = rows[i].bits;
            found = (stk_addr_class)rows[i].cls;
        }
    return found;
}

/* RFC 5214: the low 64 bits are 0000:5efe or 0200:5efe and a v4 address. */
static bool is_isatap(const uint8_t *addr)
{
    return (addr[8] & 0xfd) == 0 && addr[9] == 0 && addr[10] == 0x5e && addr[11] == 0xfe;
}

static stk_addr_class classify6(const uint8_t *addr)
{
    stk_addr_class outside = (addr[0] >> 5) == 1 ? STK_ADDR_PUBLIC : STK_ADDR_NOT_GLOBAL;
    stk_addr_class c = longest(stk__addr_rows6, stk__addr_nrows6, addr, outside);
    return is_isatap(addr) && !stk_addr_never(c) ? STK_ADDR_EMBEDDED_V4 : c;
}

stk_addr_class stk_addr_classify(const struct sockaddr *addr)
{
    if (addr->sa_family == AF_INET) {
        uint8_t bytes[4];
        memcpy(bytes, &((const struct sockaddr_in *)(const void *)addr)->sin_addr, 4);
        return longest(stk__addr_rows4, stk__addr_nrows4, bytes, STK_ADDR_PUBLIC);
    }
    if (addr->sa_family != AF_INET6)
        return STK_ADDR_SCOPED;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)addr;
    return in6->sin6_scope_id ? STK_ADDR_SCOPED : classify6(in6->sin6_addr.s6_addr);
}

bool stk_addr_never(stk_addr_class c)
{
    switch (c) {
    case STK_ADDR_UNSPECIFIED:
    case STK_ADDR_LOOPBACK:
    case STK_ADDR_LINK_LOCAL:
    case STK_ADDR_METADATA:
    case STK_ADDR_MULTICAST:
    case STK_ADDR_BROADCAST:
    case STK_ADDR_EMBEDDED_V4:
    case STK_ADDR_SCOPED:
        return true;
    default:
        return false;
    }
}

void stk_addr_text(const struct sockaddr *addr, char out[64])
{
    char ip[INET6_ADDRSTRLEN] = "";
    out[0] = '\0';
    if (addr->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)addr;
        inet_ntop(AF_INET, &in->sin_addr, ip, sizeof(ip));
        snprintf(out, 64, "%s:%u", ip, ntohs(in->sin_port));
    } else if (addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)addr;
        inet_ntop(AF_INET6, &in6->sin6_addr, ip, sizeof(ip));
        snprintf(out, 64, "[%s]:%u", ip, ntohs(in6->sin6_port));
    }
}
