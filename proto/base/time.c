#include "proto/base/time.h"
#include "proto/base/buf.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

static int64_t add_sat(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b > 0 ? INT64_MAX : INT64_MIN;
    return sum;
}

stk_mono stk_mono_add(stk_mono a, stk_span s)
{
    return (stk_mono){add_sat(a.ns, s.ns)};
}

stk_wall stk_wall_add(stk_wall a, stk_span s)
{
    return (stk_wall){add_sat(a.ns, s.ns)};
}

static int64_t clock_ns(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

stk_mono stk_mono_now(void)
{
    return (stk_mono){clock_ns(CLOCK_BOOTTIME)};
}

stk_wall stk_wall_now(void)
{
    return (stk_wall){clock_ns(CLOCK_REALTIME)};
}

struct timeval stk_span_timeval(stk_span s)
{
    int64_t us = s.ns <= 0 ? 0 : s.ns / 1000 + (s.ns % 1000 != 0);
    const int64_t most_us = (int64_t)365 * 86400 * 1000000;
    if (us > most_us)
        us = most_us;
    return (struct timeval){.tv_sec = (time_t)(us / 1000000), .tv_usec = (suseconds_t)(us % 1000000)};
}

static void put_digits(char *at, int n, unsigned value)
{
    for (; n-- > 0; value /= 10)
        at[n] = (char)('0' + value % 10);
}

void stk_wall_format(stk_wall t, char out[STK_WALL_TEXT])
{
    int64_t ms = t.ns / 1000000;
    if (ms < 0)
        ms = 0;
    time_t sec = (time_t)(ms / 1000);
    struct tm tm;
    gmtime_r(&sec, &tm);
    memcpy(out, "0000-00-00T00:00:00.000Z", STK_WALL_TEXT);
    put_digits(out, 4, (unsigned)(tm.tm_year + 1900));
    put_digits(out + 5, 2, (unsigned)(tm.tm_mon + 1));
    put_digits(out + 8, 2, (unsigned)tm.tm_mday);
    put_digits(out + 11, 2, (unsigned)tm.tm_hour);
    put_digits(out + 14, 2, (unsigned)tm.tm_min);
    put_digits(out + 17, 2, (unsigned)tm.tm_sec);
    put_digits(out + 20, 3, (unsigned)(ms % 1000));
}

static bool digits(const char *s, size_t n, int *ret)
{
    int v = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return false;
        v = v * 10 + (s[i] - '0');
    }
    *ret = v;
    return true;
}

/* The fraction after "seconds": nanoseconds and how many bytes it took. */
static bool fraction(const char *s, size_t n, int64_t *ret_ns, size_t *ret_used)
{
    *ret_ns = 0;
    *ret_used = 0;
    if (n == 0 || s[0] != '.')
        return true;
    int64_t scale = 100000000;
    size_t i = 1;
    for (; i < n && s[i] >= '0' && s[i] <= '9'; i++) {
        if (i > 9)
            return false;
        *ret_ns += (s[i] - '0') * scale;
        scale /= 10;
    }
    *ret_used = i;
    return i > 1;
}

int stk_wall_parse(const char *s, size_t n, stk_wall *ret_t)
{
    struct tm tm = {0};
    if (n < 20 || n > 30 || s[4] != '-' || s[7] != '-' || s[10] != 'T' || s[13] != ':' || s[16] != ':')
        return -STK_E_FIELD;
    if (!digits(s, 4, &tm.tm_year) || !digits(s + 5, 2, &tm.tm_mon) || !digits(s + 8, 2, &tm.tm_mday) ||
        !digits(s + 11, 2, &tm.tm_hour) || !digits(s + 14, 2, &tm.tm_min) || !digits(s + 17, 2, &tm.tm_sec))
        return -STK_E_FIELD;
    int64_t ns = 0;
    size_t used = 0;
    if (!fraction(s + 19, n - 19, &ns, &used) || 19 + used + 1 != n || s[n - 1] != 'Z')
        return -STK_E_FIELD;
    tm.tm_year -= 1900;
    tm.tm_mon -= 1;
    struct tm want = tm;
    time_t sec = timegm(&tm);
    if (tm.tm_mon != want.tm_mon || tm.tm_mday != want.tm_mday || tm.tm_hour != want.tm_hour ||
        tm.tm_min != want.tm_min || tm.tm_sec != want.tm_sec || sec < 0 || sec > INT64_MAX / 1000000000 - 1)
        return -STK_E_FIELD;
    ret_t->ns = (int64_t)sec * 1000000000 + ns;
    return 0;
}

static char boot_id[STK_BOOT_ID];
static pthread_once_t boot_once = PTHREAD_ONCE_INIT;

static void read_boot_id(void)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, boot_id, STK_BOOT_ID - 1);
    if (fd >= 0)
        close(fd);
    if (n != STK_BOOT_ID - 1)
        snprintf(boot_id, sizeof(boot_id), "unknown");
}

const char *stk_boot_id(void)
{
    pthread_once(&boot_once, read_boot_id);
    return boot_id;
}
