/* How far a string's bytes stand for themselves; for json_read.c and json_write.c only. */
#ifndef STK_BASE_JSON_SCAN_H
#define STK_BASE_JSON_SCAN_H

#include "proto/base/buf.h"

#define STK__EACH_BYTE 0x0101010101010101u

/* Marks at least the lowest byte of w that is '"', '\\', below 0x20 or not ASCII; a mark above it may be
 * false. */
static inline uint64_t stk__json_special(uint64_t w)
{
    uint64_t quote = w ^ (STK__EACH_BYTE * '"');
    uint64_t slash = w ^ (STK__EACH_BYTE * '\\');
    uint64_t marks = (w - STK__EACH_BYTE * 0x20) | (quote - STK__EACH_BYTE) | (slash - STK__EACH_BYTE) | w;
    return marks & (STK__EACH_BYTE * 0x80);
}

static inline bool stk__json_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* The number of bytes at the start of s that need no look: not '"', '\\', a control byte or part of a longer
 * character. */
static inline size_t stk__json_plain_run(stk_str s)
{
    size_t i = 0;
    for (uint64_t w; i + 8 <= s.n; i += 8) {
        memcpy(&w, s.p + i, 8);
        uint64_t marks = stk__json_special(w);
        if (marks)
            break;
    }
    while (i < s.n && stk__json_plain((unsigned char)s.p[i]))
        i++;
    return i;
}

#endif
