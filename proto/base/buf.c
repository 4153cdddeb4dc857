#include "proto/base/buf.h"
#include <stdarg.h>
#include <stdio.h>

bool stk_str_eq(stk_str a, stk_str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static unsigned char lower(char c)
{
    unsigned char u = (unsigned char)c;
    return u >= 'A' && u <= 'Z' ? (unsigned char)(u | 0x20) : u;
}

bool stk_str_ieq(stk_str a, stk_str b)
{
    if (a.n != b.n)
        return false;
    for (size_t i = 0; i < a.n; i++)
        if (lower(a.p[i]) != lower(b.p[i]))
            return false;
    return true;
}

bool stk_str_starts(stk_str s, stk_str prefix)
{
    return s.n >= prefix.n && stk_str_eq(stk_str_n(s.p, prefix.n), prefix);
}

bool stk_str_ends(stk_str s, stk_str suffix)
{
    if (suffix.n == 0)
        return true;
    return s.n >= suffix.n && memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0;
}

bool stk_str_copy(stk_str s, char *out, size_t size)
{
    if (size == 0)
        return false;
    out[0] = '\0';
    if (s.n >= size || (s.n && memchr(s.p, '\0', s.n)))
        return false;
    if (s.n)
        memcpy(out, s.p, s.n);
    out[s.n] = '\0';
    return true;
}

bool stk_str_u64(stk_str s, uint64_t max, uint64_t *ret_n)
{
    if (s.n == 0 || (s.n > 1 && s.p[0] == '0'))
        return false;
    uint64_t v = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        if (__builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (unsigned)(s.p[i] - '0'), &v))
            return false;
    }
    if (v > max)
        return false;
    *ret_n = v;
    return true;
}

void stk_buf_init(stk_buf *buf, size_t cap)
{
    *buf = STK_BUF(cap);
}

void stk_buf_done(stk_buf *buf)
{
    free(buf->p);
    *buf = STK_BUF(buf->cap);
}

void stk_buf_reset(stk_buf *buf)
{
    buf->n = 0;
    buf->over = false;
    if (buf->p)
        buf->p[0] = '\0';
}

static void grow(stk_buf *buf, size_t need)
{
    size_t size = buf->size ? buf->size : 64;
    while (size < need)
        size = size > SIZE_MAX / 2 ? need : size * 2;
    if (buf->cap < SIZE_MAX && size > buf->cap + 1)
        size = buf->cap + 1;
    buf->p = stk_xrealloc(buf->p, size);
    buf->size = size;
}

char *stk_buf_room(stk_buf *buf, size_t n)
{
    if (buf->over || n > buf->cap - buf->n || buf->n + n == SIZE_MAX) {
        buf->over = true;
        return NULL;
    }
    if (buf->n + n + 1 > buf->size)
        grow(buf, buf->n + n + 1);
    return buf->p + buf->n;
}

int stk_buf_add(stk_buf *buf, const void *p, size_t n)
{
    char *at = stk_buf_room(buf, n);
    if (!at)
        return -STK_E_LIMIT;
    if (n)
        memcpy(at, p, n);
    buf->n += n;
    buf->p[buf->n] = '\0';
    return 0;
}

int stk_buf_str(stk_buf *buf, stk_str s)
{
    return stk_buf_add(buf, s.p, s.n);
}

int stk_buf_text(stk_buf *buf, const char *s)
{
    return stk_buf_add(buf, s, strlen(s));
}

int stk_buf_byte(stk_buf *buf, char c)
{
    return stk_buf_add(buf, &c, 1);
}

int stk_buf_fmt(stk_buf *buf, const char *fmt, ...)
{
    if (buf->over)
        return -STK_E_LIMIT;
    size_t left = buf->size - buf->n;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(left ? buf->p + buf->n : NULL, left, fmt, args);
    va_end(args);
    if (n >= 0 && (size_t)n < left) {
        buf->n += (size_t)n;
        return 0;
    }
    if (left)
        buf->p[buf->n] = '\0';
    char *at = n < 0 ? NULL : stk_buf_room(buf, (size_t)n);
    if (!at) {
        buf->over = true;
        return -STK_E_LIMIT;
    }
    va_start(args, fmt);
    vsnprintf(at, (size_t)n + 1, fmt, args);
    va_end(args);
    buf->n += (size_t)n;
    return 0;
}

void stk_buf_drop(stk_buf *buf, size_t n)
{
    n = stk_min(n, buf->n);
    if (n == 0)
        return;
    buf->n -= n;
    memmove(buf->p, buf->p + n, buf->n);
    buf->p[buf->n] = '\0';
}

char *stk_buf_take(stk_buf *buf, size_t *ret_n)
{
    if (!buf->p)
        grow(buf, 1);
    buf->p[buf->n] = '\0';
    char *p = buf->p;
    if (ret_n)
        *ret_n = buf->n;
    *buf = STK_BUF(buf->cap);
    return p;
}
