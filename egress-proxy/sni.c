#include "egress-proxy/sni.h"

enum { HANDSHAKE = 22, CLIENT_HELLO = 1, RECORD_MOST = 16384, EXT_SNI = 0, EXT_ECH = 0xfe0d };

/* A cursor over bytes; `bad` sticks. */
typedef struct cursor {
    const uint8_t *p;
    size_t n;
    bool bad;
} cursor;

static unsigned take(cursor *c, unsigned bytes)
{
    unsigned v = 0;
    if (c->n < bytes)
        c->bad = true;
    if (c->bad)
        return 0;
    for (unsigned i = 0; i < bytes; i++)
        v = v << 8 | c->p[i];
    c->p += bytes;
    c->n -= bytes;
    return v;
}

static cursor part(cursor *c, size_t n)
{
    cursor out = {c->p, n, c->bad || n > c->n};
    if (out.bad) {
        c->bad = true;
        return (cursor){.bad = true};
    }
    c->p += n;
    c->n -= n;
    return out;
}

static void read_names(cursor ext, stk_hello *ret, bool *bad)
{
    cursor list = part(&ext, take(&ext, 2));
    if (list.bad || ext.n || !list.n) {
        *bad = true;
        return;
    }
    while (list.n && !list.bad) {
        unsigned type = take(&list, 1);
        cursor name = part(&list, take(&list, 2));
        if (list.bad || type != 0 || !name.n || ret->names == STK_COUNT(ret->name)) {
            *bad = true;
            return;
        }
        stk_str_copy(stk_str_n(name.p, name.n), ret->name[ret->names++], STK_NAME_MAX);
    }
    *bad |= list.bad;
}

static bool read_extensions(cursor all, stk_hello *ret)
{
    bool bad = false, seen = false;
    while (all.n && !all.bad) {
        unsigned type = take(&all, 2);
        cursor ext = part(&all, take(&all, 2));
        if (all.bad)
            return false;
        if (type == EXT_SNI) {
            bad |= seen;
            seen = true;
            read_names(ext, ret, &bad);
        } else if (type == EXT_ECH) {
            ret->ech = true;
        }
    }
    return !bad && !all.bad;
}

static bool read_body(cursor c, stk_hello *ret)
{
    take(&c, 2);
    part(&c, 32);
    unsigned session = take(&c, 1);
    part(&c, session);
    unsigned ciphers = take(&c, 2);
    part(&c, ciphers);
    unsigned compressions = take(&c, 1);
    part(&c, compressions);
    if (c.bad || session > 32 || ciphers < 2 || ciphers % 2 || compressions < 1)
        return false;
    if (!c.n)
        return true; /* TLS 1.0 and 1.1 had hellos without extensions */
    unsigned length = take(&c, 2);
    cursor all = part(&c, length);
    return !all.bad && !c.n && read_extensions(all, ret);
}

/* Joins the handshake bytes of whole and half records. BAD when a record is none that may carry a hello. */
static stk_hello_state join(cursor in, uint8_t *out, size_t *ret_n)
{
    size_t n = 0;
    while (in.n) {
        if (in.p[0] != HANDSHAKE)
            return STK_HELLO_BAD;
        if (in.n >= 2 && in.p[1] != 3)
            return STK_HELLO_BAD;
        if (in.n < 5)
            break;
        size_t length = (size_t)in.p[3] << 8 | in.p[4];
        if (length == 0 || length > RECORD_MOST)
            return STK_HELLO_BAD;
        size_t here = stk_min(length, in.n - 5);
        memcpy(out + n, in.p + 5, here);
        n += here;
        in.p += 5 + here;
        in.n -= 5 + here;
        if (n >= 4 && n >= 4 + ((size_t)out[1] << 16 | (size_t)out[2] << 8 | out[3]))
            break;
    }
    *ret_n = n;
    return STK_HELLO_WHOLE;
}

stk_hello_state stk_hello_read(const uint8_t *p, size_t n, stk_hello *ret)
{
    uint8_t message[STK_HELLO_MAX];
    size_t have = 0;
    ret->names = 0;
    ret->ech = false;
    if (n == 0)
        return STK_HELLO_MORE;
    if (p[0] != HANDSHAKE)
        return STK_HELLO_PLAIN;
    size_t looked = stk_min(n, STK_HELLO_MAX);
    if (join((cursor){p, looked, false}, message, &have) == STK_HELLO_BAD ||
        (have && message[0] != CLIENT_HELLO))
        return STK_HELLO_BAD;
    stk_hello_state unfinished = n >= STK_HELLO_MAX ? STK_HELLO_BAD : STK_HELLO_MORE;
    if (have < 4)
        return unfinished;
    size_t length = (size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3];
    if (length + 9 > STK_HELLO_MAX)
        return STK_HELLO_BAD;
    if (have < 4 + length)
        return unfinished;
    return read_body((cursor){message + 4, length, false}, ret) ? STK_HELLO_WHOLE : STK_HELLO_BAD;
}

static bool names_host(const char *name, const char *host, bool *ret_literal)
{
    char canonical[STK_NAME_MAX];
    *ret_literal = false;
    return stk_host_canonical(stk_str_of(name), canonical, ret_literal, NULL) == 0 &&
           strcmp(canonical, host) == 0;
}

stk_reason stk_sni_judge(stk_tls_mode mode, stk_hello_state state, const stk_hello *hello, const char *host)
{
    bool literal = false, require = mode == STK_TLS_REQUIRE;
    if (mode == STK_TLS_OFF)
        return STK_R_ALLOWED;
    if (state == STK_HELLO_PLAIN)
        return require ? STK_R_OPAQUE_TUNNEL : STK_R_ALLOWED;
    if (state != STK_HELLO_WHOLE)
        return STK_R_OPAQUE_TUNNEL;
    if (require && (hello->names != 1 || hello->ech))
        return STK_R_OPAQUE_TUNNEL;
    for (size_t i = 0; i < hello->names; i++)
        if (!names_host(hello->name[i], host, &literal))
            return require && literal ? STK_R_OPAQUE_TUNNEL : STK_R_SNI_MISMATCH;
    return STK_R_ALLOWED;
}
