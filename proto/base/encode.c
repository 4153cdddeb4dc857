#include "proto/base/buf.h"

static const char b64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int stk_base64_encode(stk_buf *out, stk_str in)
{
    if (in.n > SIZE_MAX / 4 * 3 - 3) {
        out->over = true;
        return -STK_E_LIMIT;
    }
    size_t total = (in.n + 2) / 3 * 4;
    char *at = stk_buf_room(out, total);
    if (!at)
        return -STK_E_LIMIT;
    const unsigned char *p = (const unsigned char *)in.p;
    for (size_t left = in.n; left > 0; p += 3, at += 4) {
        size_t take = stk_min(left, 3);
        uint32_t v = (uint32_t)p[0] << 16 | (take > 1 ? (uint32_t)p[1] << 8 : 0) | (take > 2 ? p[2] : 0u);
        at[0] = b64[v >> 18];
        at[1] = b64[v >> 12 & 63];
        at[2] = take > 1 ? b64[v >> 6 & 63] : '=';
        at[3] = take > 2 ? b64[v & 63] : '=';
        left -= take;
    }
    out->n += total;
    out->p[out->n] = '\0';
    return 0;
}

static int sextet(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

int stk_base64_decode(stk_buf *out, stk_str in)
{
    if (in.n % 4)
        return -STK_E_FIELD;
    size_t pad = in.n == 0 ? 0 : in.p[in.n - 1] != '=' ? 0 : in.p[in.n - 2] != '=' ? 1 : 2;
    size_t total = in.n / 4 * 3 - pad;
    char *at = stk_buf_room(out, total);
    if (!at)
        return -STK_E_LIMIT;
    uint32_t v = 0;
    unsigned bits = 0;
    for (size_t i = 0; i < in.n - pad; i++) {
        int s = sextet(in.p[i]);
        if (s < 0)
            goto bad;
        v = (v << 6 | (uint32_t)s) & 0xffffff;
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            *at++ = (char)(v >> bits);
        }
    }
    if (v & ((1u << bits) - 1))
        goto bad;
    out->n += total;
    out->p[out->n] = '\0';
    return 0;
bad:
    out->p[out->n] = '\0';
    return -STK_E_FIELD;
}

void stk_hex(const void *p, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *in = p;
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[in[i] >> 4];
        out[2 * i + 1] = digits[in[i] & 15];
    }
    out[2 * n] = '\0';
}

static int nibble(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int stk_unhex(stk_str in, void *out, size_t n)
{
    if (in.n / 2 != n || in.n % 2)
        return -STK_E_FIELD;
    unsigned char *to = out;
    for (size_t i = 0; i < n; i++) {
        int high = nibble(in.p[2 * i]);
        int low = nibble(in.p[2 * i + 1]);
        if (high < 0 || low < 0)
            return -STK_E_FIELD;
        to[i] = (unsigned char)(high << 4 | low);
    }
    return 0;
}
