#include "egress-proxy/dns_message.h"

#define HEADER   12
#define CLASS_IN 1

enum { FLAG_QR = 0x8000, FLAG_OPCODE = 0x7800, FLAG_TC = 0x0200, FLAG_RD = 0x0100, RCODE = 0x000f };

static void put16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static unsigned get16(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)get16(p) << 16 | get16(p + 2);
}

size_t stk_dns_encode(uint16_t id, const char *name, stk_dns_type type, uint8_t out[STK_DNS_QUERY_MAX])
{
    memset(out, 0, HEADER);
    put16(out, id);
    put16(out + 2, FLAG_RD);
    put16(out + 4, 1);
    size_t n = HEADER;
    while (*name) {
        size_t label = strcspn(name, ".");
        if (label == 0 || label > 63 || n - HEADER + label + 2 > 255)
            return 0;
        out[n++] = (uint8_t)label;
        memcpy(out + n, name, label);
        n += label;
        name += label + (name[label] == '.');
    }
    out[n++] = 0;
    put16(out + n, type);
    put16(out + n + 2, CLASS_IN);
    return n + 4;
}

static char lower(uint8_t c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + 0x20 : c);
}

/* Reads a name at *at into dotted lower case and moves *at behind it. A label holding a dot or NUL can equal
 * no name we asked for, so it is kept as a byte no canonical name has. */
static bool read_name(const uint8_t *p, size_t n, size_t *at, char out[STK_NAME_MAX])
{
    size_t from = *at, limit = n, len = 0;
    bool jumped = false;
    for (;;) {
        if (from >= limit)
            return false;
        unsigned c = p[from];
        if ((c & 0xc0) == 0xc0) {
            if (from + 1 >= n)
                return false;
            size_t to = (c & 0x3f) << 8 | p[from + 1];
            if (!jumped)
                *at = from + 2;
            jumped = true;
            if (to < HEADER || to >= from)
                return false;
            limit = from;
            from = to;
            continue;
        }
        if (c & 0xc0)
            return false;
        from++;
        if (c == 0)
            break;
        if (from + c > n || len + c + 1 >= STK_NAME_MAX)
            return false;
        if (len)
            out[len++] = '.';
        for (unsigned i = 0; i < c; i++) {
            char b = lower(p[from + i]);
            out[len++] = b == '.' || b == '\0' ? '\x01' : b;
        }
        from += c;
    }
    out[len] = '\0';
    if (!jumped)
        *at = from;
    return true;
}

typedef struct record {
    char owner[STK_NAME_MAX];
    unsigned type, class;
    uint32_t ttl;
    size_t data, len;
} record;

static bool read_record(const uint8_t *p, size_t n, size_t *at, record *ret)
{
    if (!read_name(p, n, at, ret->owner) || n - *at < 10)
        return false;
    const uint8_t *fixed = p + *at;
    ret->type = get16(fixed);
    ret->class = get16(fixed + 2);
    ret->ttl = get32(fixed + 4);
    if (ret->ttl > INT32_MAX)
        ret->ttl = 0; /* RFC 2181, section 8 */
    ret->len = get16(fixed + 8);
    ret->data = *at + 10;
    if (ret->len > n - ret->data)
        return false;
    *at = ret->data + ret->len;
    return true;
}

/* Where the chain that starts at `name` leads next: the CNAME of that owner, if any. -1: malformed, or two of
 * them. */
static int next_link(const uint8_t *p, size_t n, size_t at, unsigned count, const char *name,
                     char next[STK_NAME_MAX], uint32_t *ttl)
{
    int found = 0;
    for (unsigned i = 0; i < count; i++) {
        record rec;
        if (!read_record(p, n, &at, &rec))
            return -1;
        if (rec.class != CLASS_IN || rec.type != STK_DNS_CNAME || strcmp(rec.owner, name) != 0)
            continue;
        size_t to = rec.data;
        if (found || !read_name(p, n, &to, next) || to != rec.data + rec.len)
            return -1;
        found = 1;
        if (rec.ttl < *ttl)
            *ttl = rec.ttl;
    }
    return found;
}

static bool add_address(const uint8_t *data, size_t len, stk_dns_type type, stk_dns_answer *ret)
{
    if (len != (type == STK_DNS_A ? 4u : 16u) || ret->n == STK_ADDRS_MAX)
        return false;
    stk_sock *addr = &ret->addrs[ret->n++];
    memset(addr, 0, sizeof(*addr));
    addr->any.sa_family = type == STK_DNS_A ? AF_INET : AF_INET6;
    memcpy(type == STK_DNS_A ? (void *)&addr->v4.sin_addr : (void *)&addr->v6.sin6_addr, data, len);
    return true;
}

static bool collect(const uint8_t *p, size_t n, size_t at, unsigned count, const char *owner,
                    stk_dns_type type, stk_dns_answer *ret)
{
    for (unsigned i = 0; i < count; i++) {
        record rec;
        if (!read_record(p, n, &at, &rec))
            return false;
        if (rec.class != CLASS_IN || rec.type != (unsigned)type || strcmp(rec.owner, owner) != 0)
            continue;
        if (!add_address(p + rec.data, rec.len, type, ret))
            return false;
        if (rec.ttl < ret->ttl)
            ret->ttl = rec.ttl;
    }
    return true;
}

/* *ret_at: behind the question. */
static bool is_ours(const uint8_t *p, size_t n, uint16_t id, const char *name, stk_dns_type type,
                    size_t *ret_at)
{
    char asked[STK_NAME_MAX];
    size_t at = HEADER;
    if (n < HEADER || get16(p) != id || (get16(p + 2) & (FLAG_QR | FLAG_OPCODE)) != FLAG_QR ||
        get16(p + 4) != 1)
        return false;
    if (!read_name(p, n, &at, asked) || n - at < 4 || strcmp(asked, name) != 0)
        return false;
    *ret_at = at + 4;
    return get16(p + at) == (unsigned)type && get16(p + at + 2) == CLASS_IN;
}

stk_dns_verdict stk_dns_decode(const uint8_t *p, size_t n, uint16_t id, const char *name, stk_dns_type type,
                               stk_dns_answer *ret)
{
    size_t at;
    ret->n = 0;
    ret->ttl = INT32_MAX;
    if (!is_ours(p, n, id, name, type, &at))
        return STK_DNS_STRAY;
    unsigned flags = get16(p + 2), count = get16(p + 6);
    if (flags & FLAG_TC)
        return STK_DNS_CUT;
    if ((flags & RCODE) == 3)
        return STK_DNS_NXDOMAIN;
    if (flags & RCODE)
        return STK_DNS_SERVFAIL;
    if (count > STK_DNS_RECORDS_MAX)
        return STK_DNS_MALFORMED;
    char owner[STK_NAME_MAX], next[STK_NAME_MAX];
    memcpy(owner, name, strlen(name) + 1);
    for (int link = 0;; link++) {
        int found = next_link(p, n, at, count, owner, next, &ret->ttl);
        if (found < 0 || (found && link == STK_DNS_CHAIN_MAX))
            return STK_DNS_MALFORMED;
        if (!found)
            break;
        memcpy(owner, next, strlen(next) + 1);
    }
    return collect(p, n, at, count, owner, type, ret) ? STK_DNS_OK : STK_DNS_MALFORMED;
}
