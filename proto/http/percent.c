#include "proto/http/head_impl.h"

/* The byte at in.p[*i], decoded, and steps over it; -1 on a malformed escape. */
static int decode_at(stk_str in, size_t *i)
{
    char c = in.p[(*i)++];
    if (c != '%')
        return (uint8_t)c;
    if (in.n - *i < 2)
        return -1;
    int high = stk__hex_of(in.p[*i]), low = stk__hex_of(in.p[*i + 1]);
    *i += 2;
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

int stk_percent_decode(stk_str in, stk_buf *out, stk_err *err)
{
    size_t before = out->n, i = 0;
    while (i < in.n) {
        int c = decode_at(in, &i);
        if (c < 0) {
            out->n = before;
            return stk_err_set(err, STK_E_HTTP, "a percent escape is malformed");
        }
        if (stk_buf_byte(out, (char)c) < 0)
            return stk_err_set(err, STK_E_LIMIT, "the decoded text is too long");
    }
    return 0;
}

static bool is_unreserved(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

int stk_percent_encode(stk_str in, bool keep_slash, stk_buf *out)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < in.n; i++) {
        char c = in.p[i];
        char escape[3] = {'%', digits[(uint8_t)c >> 4], digits[c & 15]};
        bool plain = is_unreserved(c) || (keep_slash && c == '/');
        int rc = plain ? stk_buf_byte(out, c) : stk_buf_add(out, escape, 3);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static bool decodes_to(stk_str in, stk_str want)
{
    size_t i = 0, k = 0;
    while (i < in.n) {
        int c = decode_at(in, &i);
        if (c < 0 || k == want.n || (uint8_t)want.p[k++] != c)
            return false;
    }
    return k == want.n;
}

bool stk_query_get(stk_str query, const char *name, stk_buf *out)
{
    stk_str want = stk_str_of(name);
    while (query.n) {
        const char *amp = memchr(query.p, '&', query.n);
        stk_str pair = {query.p, amp ? (size_t)(amp - query.p) : query.n};
        query = amp ? stk_str_n(amp + 1, query.n - pair.n - 1) : (stk_str){NULL, 0};
        const char *eq = pair.n ? memchr(pair.p, '=', pair.n) : NULL;
        stk_str key = {pair.p, eq ? (size_t)(eq - pair.p) : pair.n};
        if (pair.n == 0 || !decodes_to(key, want))
            continue;
        stk_str value = eq ? stk_str_n(eq + 1, pair.n - key.n - 1) : (stk_str){"", 0};
        return stk_percent_decode(value, out, NULL) == 0;
    }
    return false;
}
