/* Byte slices with a length, and a growable buffer with a cap given at creation. */
#ifndef STK_BASE_BUF_H
#define STK_BASE_BUF_H

#include "proto/base/err.h"

/* A borrowed run of bytes; not NUL-terminated; p may be NULL when n is 0. */
typedef struct stk_str {
    const char *p;
    size_t n;
} stk_str;

#define STK_STR(literal) ((stk_str){"" literal, sizeof(literal) - 1})
static inline stk_str stk_str_of(const char *s)
{
    return (stk_str){s, s ? strlen(s) : 0};
}
static inline stk_str stk_str_n(const void *p, size_t n)
{
    return (stk_str){(const char *)p, n};
}
bool stk_str_eq(stk_str a, stk_str b);
/* ASCII case-insensitive. */
bool stk_str_ieq(stk_str a, stk_str b);
bool stk_str_starts(stk_str s, stk_str prefix);
bool stk_str_ends(stk_str s, stk_str suffix);
/* Copies into a fixed array with NUL; false (and out = "") when it does not fit or holds a NUL byte. */
bool stk_str_copy(stk_str s, char *out, size_t size);
/* Decimal digits only, no sign, no leading zero but "0", <= max. False otherwise. */
bool stk_str_u64(stk_str s, uint64_t max, uint64_t *ret_n);

/* A buffer. Zero-initialise with STK_BUF(cap) or stk_buf_init; `p[n]` is always NUL once something was added.
 * Going over the cap sets `over`, adds nothing more, and every later add returns -STK_E_LIMIT. */
typedef struct stk_buf {
    char *p;
    size_t n;
    size_t size;
    size_t cap; /* most bytes it may hold */
    bool over;
} stk_buf;

#define STK_BUF(most) ((stk_buf){.cap = (most)})
void stk_buf_init(stk_buf *buf, size_t cap);
void stk_buf_done(stk_buf *buf);
/* Forgets the contents, keeps the memory. */
void stk_buf_reset(stk_buf *buf);
int stk_buf_add(stk_buf *buf, const void *p, size_t n);
int stk_buf_str(stk_buf *buf, stk_str s);
int stk_buf_text(stk_buf *buf, const char *s);
int stk_buf_byte(stk_buf *buf, char c);
int stk_buf_fmt(stk_buf *buf, const char *fmt, ...) STK_PRINTF(2, 3);
/* Drops the first n bytes. */
void stk_buf_drop(stk_buf *buf, size_t n);
/* Makes room for n more bytes and returns where they go, or NULL over the cap; add to buf->n yourself. */
char *stk_buf_room(stk_buf *buf, size_t n);
static inline stk_str stk_buf_view(const stk_buf *buf)
{
    return (stk_str){buf->p, buf->n};
}
/* Gives the bytes away (NUL-terminated, never NULL; the caller frees) and empties the buffer. */
char *stk_buf_take(stk_buf *buf, size_t *ret_n);

/* base64 (RFC 4648, with padding, canonical) and lower-case hex. Decoders: 0 or -STK_E_FIELD, and out stays
 * as it was; -STK_E_LIMIT over the cap of out. */
int stk_base64_encode(stk_buf *out, stk_str in);
int stk_base64_decode(stk_buf *out, stk_str in);
void stk_hex(const void *p, size_t n, char *out /* 2n+1 */);
int stk_unhex(stk_str in, void *out, size_t n);

/* UTF-8 (RFC 3629). valid: whole text. repair: each maximal subpart of an ill-formed sequence becomes one
 * U+FFFD (Unicode 3.9, as Python and browsers do), appended to out. */
bool stk_utf8_valid(stk_str s);
/* The first character of s (s.n >= 1): its length and *ret_good, or the length of the bad subpart. */
size_t stk_utf8_step(stk_str s, bool *ret_good);
int stk_utf8_repair(stk_buf *out, stk_str s);
/* one: a single good sequence. True for what a terminal or a viewer acts on instead of showing it: controls
 * of both sets, line separators, bidi controls, zero width, tags. */
bool stk_utf8_acts(stk_str one);

#endif
