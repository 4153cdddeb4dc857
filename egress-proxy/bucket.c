#include "egress-proxy/bucket.h"

void stk_bucket_init(stk_bucket *bucket, int64_t rate, int64_t burst, stk_mono now)
{
    *bucket = (stk_bucket){.rate = rate, .burst = burst, .level = burst, .at = now};
}

static int64_t level_at(const stk_bucket *bucket, stk_mono now)
{
    int64_t ns = stk_mono_sub(now, bucket->at).ns;
    if (ns <= 0)
        return bucket->level;
    __int128 more = (__int128)ns * bucket->rate / 1000000000;
    __int128 level = bucket->level + more;
    return level > bucket->burst ? bucket->burst : (int64_t)level;
}

/* Time is only moved on by whole tokens, so that many small takes lose nothing. */
static void refill(stk_bucket *bucket, stk_mono now)
{
    int64_t level = level_at(bucket, now);
    if (level == bucket->burst)
        bucket->at = now;
    else if (level > bucket->level)
        bucket->at.ns += (int64_t)((__int128)(level - bucket->level) * 1000000000 / bucket->rate);
    bucket->level = level;
}

int64_t stk_bucket_take(stk_bucket *bucket, int64_t want, stk_mono now)
{
    if (bucket->rate == 0)
        return want;
    refill(bucket, now);
    int64_t got = want < bucket->level ? want : bucket->level;
    if (got < 0)
        got = 0;
    bucket->level -= got;
    return got;
}

stk_span stk_bucket_wait(const stk_bucket *bucket, int64_t n, stk_mono now)
{
    int64_t lack = bucket->rate ? n - level_at(bucket, now) : 0;
    if (lack <= 0)
        return stk_ns(0);
    return stk_ns((int64_t)(((__int128)lack * 1000000000 + bucket->rate - 1) / bucket->rate));
}

void stk_bucket_return(stk_bucket *bucket, int64_t n)
{
    bucket->level = bucket->level + n > bucket->burst ? bucket->burst : bucket->level + n;
}
