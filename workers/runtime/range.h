/* One byte range of RFC 9110 section 14, pure. */
#ifndef STK_RUNTIME_RANGE_H
#define STK_RUNTIME_RANGE_H

#include "proto/base/buf.h"

typedef enum stk_range {
    STK_RANGE_WHOLE,  /* none, malformed, several, another unit, or of an empty file: the whole is sent */
    STK_RANGE_PART,   /* 206 */
    STK_RANGE_OUTSIDE /* 416 */
} stk_range;

/* value of a Range field for a file of that size. *ret_at and *ret_n are set for STK_RANGE_PART; n > 0. */
stk_range stk_range_parse(stk_str value, uint64_t size, uint64_t *ret_at, uint64_t *ret_n);

#endif
