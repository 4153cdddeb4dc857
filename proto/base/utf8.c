#include "proto/base/buf.h"

/* RFC 3629, section 4: how many bytes a first byte asks for, and what its second byte may be. */
static size_t head(unsigned char c, unsigned char *low, unsigned char *high)
{
    *low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    *high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (c < 0x80)
        return 1;
    if (c < 0xc2 || c > 0xf4)
        return 0;
    return c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

size_t stk_utf8_step(stk_str s, bool *ret_good)
{
    const unsigned char *p = (const unsigned char *)s.p;
    unsigned char low, high;
    size_t need = head(p[0], &low, &high);
    size_t i = 1;
    if (need > 1 && s.n > 1 && p[1] >= low && p[1] <= high)
        for (i = 2; i < need && i < s.n && (p[i] & 0xc0) == 0x80;)
            i++;
    *ret_good = i == need;
    return i;
}

static uint32_t code_point(stk_str one)
{
    uint32_t c = (unsigned char)one.p[0];
    c = one.n == 1 ? c : c & (0x7fu >> one.n);
    for (size_t i = 1; i < one.n; i++)
        c = c << 6 | (one.p[i] & 0x3f);
    return c;
}

bool stk_utf8_acts(stk_str one)
{
    uint32_t c = code_point(one);
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfff9 && c <= 0xfffb) || c >= 0xe0000;
}

/* How many bytes at the start are ASCII. */
static size_t ascii_run(stk_str s)
{
    size_t i = 0;
    for (uint64_t w; i + 8 <= s.n; i += 8) {
        memcpy(&w, s.p + i, 8);
        if (w & 0x8080808080808080u)
            break;
    }
    while (i < s.n && !(s.p[i] & 0x80))
        i++;
    return i;
}

static stk_str skip(stk_str s, size_t n)
{
    return (stk_str){s.p + n, s.n - n};
}

bool stk_utf8_valid(stk_str s)
{
    bool good = true;
    while (s.n) {
        size_t n = ascii_run(s);
        if (n == 0)
            n = stk_utf8_step(s, &good);
        if (!good)
            return false;
        s = skip(s, n);
    }
    return true;
}

int stk_utf8_repair(stk_buf *out, stk_str s)
{
    int rc = 0;
    while (s.n && rc == 0) {
        bool good = true;
        size_t n = ascii_run(s);
        if (n == 0)
            n = stk_utf8_step(s, &good);
        rc = good ? stk_buf_add(out, s.p, n) : stk_buf_add(out, "\xef\xbf\xbd", 3);
        s = skip(s, n);
    }
    return rc;
}
