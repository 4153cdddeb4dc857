/* A token bucket over values: time comes in, nothing is read. For refusals a second and bytes a second. */
#ifndef STK_EGRESS_PROXY_BUCKET_H
#define STK_EGRESS_PROXY_BUCKET_H

#include "proto/base/time.h"

typedef struct stk_bucket {
    int64_t rate;  /* tokens a second; 0 = no limit */
    int64_t burst; /* most it holds                 */
    int64_t level;
    stk_mono at;
} stk_bucket;

/* Starts full. */
void stk_bucket_init(stk_bucket *bucket, int64_t rate, int64_t burst, stk_mono now);
/* Takes up to `want` tokens; returns how many there were. */
int64_t stk_bucket_take(stk_bucket *bucket, int64_t want, stk_mono now);
/* How long until n tokens are there (0: they are). */
stk_span stk_bucket_wait(const stk_bucket *bucket, int64_t n, stk_mono now);
/* Puts back what was taken and not used. */
void stk_bucket_return(stk_bucket *bucket, int64_t n);

#endif
