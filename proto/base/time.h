/* Time has types: mixing an instant of the wall clock with a monotonic one does not compile.
 *
 * stk_mono: CLOCK_BOOTTIME, for timeouts and leases; goes on during suspend, never jumps.
 * stk_wall: CLOCK_REALTIME, for show and for ids only; nothing is decided by it.
 * stk_span: a length of time. All hold nanoseconds. */
#ifndef STK_BASE_TIME_H
#define STK_BASE_TIME_H

#include "proto/base/base.h"
#include <sys/time.h>

typedef struct stk_mono {
    int64_t ns;
} stk_mono;
typedef struct stk_wall {
    int64_t ns;
} stk_wall;
typedef struct stk_span {
    int64_t ns;
} stk_span;

#define STK_SPAN_NEVER ((stk_span){INT64_MAX})

static inline stk_span stk_ns(int64_t n)
{
    return (stk_span){n};
}
static inline stk_span stk_us(int64_t n)
{
    return (stk_span){n * 1000};
}
static inline stk_span stk_ms(int64_t n)
{
    return (stk_span){n * 1000000};
}
static inline stk_span stk_sec(int64_t n)
{
    return (stk_span){n * 1000000000};
}
static inline double stk_span_sec(stk_span s)
{
    return (double)s.ns / 1e9;
}
static inline int64_t stk_span_ms(stk_span s)
{
    return s.ns / 1000000;
}

/* a + s, saturating. */
stk_mono stk_mono_add(stk_mono a, stk_span s);
stk_wall stk_wall_add(stk_wall a, stk_span s);
/* later - earlier; may be negative. */
static inline stk_span stk_mono_sub(stk_mono later, stk_mono earlier)
{
    return (stk_span){later.ns - earlier.ns};
}
static inline stk_span stk_wall_sub(stk_wall later, stk_wall earlier)
{
    return (stk_span){later.ns - earlier.ns};
}
static inline bool stk_mono_before(stk_mono a, stk_mono b)
{
    return a.ns < b.ns;
}
static inline bool stk_wall_before(stk_wall a, stk_wall b)
{
    return a.ns < b.ns;
}

/* The clocks. Only code that acts calls these; what decides takes time as a value. */
stk_mono stk_mono_now(void);
stk_wall stk_wall_now(void);
/* For timers of libevent; never negative, at least 1 us when s > 0. */
struct timeval stk_span_timeval(stk_span s);

/* RFC 3339 in UTC with milliseconds, "2026-01-02T03:04:05.678Z", 24 characters + NUL. */
#define STK_WALL_TEXT 25
void stk_wall_format(stk_wall t, char out[STK_WALL_TEXT]);
/* The inverse (fraction of 0 to 9 digits; only "Z"). 0 or -STK_E_FIELD. */
int stk_wall_parse(const char *s, size_t n, stk_wall *ret_t);

#define STK_BOOT_ID 37
/* This boot's id from /proc (36 characters + NUL), read once. */
const char *stk_boot_id(void);

#endif
