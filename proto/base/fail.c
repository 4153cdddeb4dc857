#include "proto/base/fail.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { POINTS_MOST = 16 };

typedef enum action { KILL, FAIL, STOP, SLEEP } action;

static struct point {
    char name[64];
    action what;
    unsigned at;       /* the hit it acts at; 0 = every one */
    unsigned sleep_ms; /* of SLEEP */
    atomic_uint hits;
} points[POINTS_MOST];
static size_t n_points;
static const char *log_path;

bool stk__failpoints_armed;

static bool number(const char *s, size_t n, unsigned *ret)
{
    unsigned v = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9' || v > 100000000)
            return false;
        v = v * 10 + (unsigned)(s[i] - '0');
    }
    *ret = v;
    return n > 0;
}

static bool word_is(const char *s, size_t n, const char *word)
{
    return n == strlen(word) && memcmp(s, word, n) == 0;
}

static bool parse_action(const char *s, size_t n, struct point *p)
{
    const char *at = memchr(s, '@', n);
    if (at && (!number(at + 1, n - (size_t)(at - s) - 1, &p->at) || p->at == 0))
        return false;
    n = at ? (size_t)(at - s) : n;
    if (n > 6 && memcmp(s, "sleep:", 6) == 0) {
        p->what = SLEEP;
        return number(s + 6, n - 6, &p->sleep_ms);
    }
    static const char *const words[] = {[KILL] = "kill", [FAIL] = "error", [STOP] = "stop"};
    for (size_t i = 0; i < STK_COUNT(words); i++) {
        if (word_is(s, n, words[i])) {
            p->what = (action)i;
            return true;
        }
    }
    return false;
}

static bool parse_point(const char *s, size_t n, struct point *p)
{
    const char *eq = memchr(s, '=', n);
    size_t name = eq ? (size_t)(eq - s) : 0;
    if (name == 0 || name >= sizeof(p->name))
        return false;
    memcpy(p->name, s, name);
    p->name[name] = '\0';
    p->at = 0;
    atomic_store(&p->hits, 0);
    return parse_action(eq + 1, n - name - 1, p);
}

int stk_failpoints_init(stk_err *err)
{
    const char *s = getenv("STK_FAILPOINTS");
    log_path = getenv("STK_FAILPOINT_LOG");
    n_points = 0;
    stk__failpoints_armed = false;
#ifndef STK_FAILPOINTS_ON
    if (s && *s)
        return stk_err_set(err, STK_E_CONFIG, "STK_FAILPOINTS is set, but this build has no failpoints");
#endif
    while (s && *s) {
        size_t n = strcspn(s, ",");
        if (n_points == POINTS_MOST || !parse_point(s, n, &points[n_points]))
            return stk_err_set(err, STK_E_CONFIG,
                               "STK_FAILPOINTS: '%.*s' is not name=kill|error|stop|sleep:MS[@n]",
                               (int)stk_min(n, 100), s);
        n_points++;
        s += n + (s[n] == ',');
    }
    stk__failpoints_armed = n_points > 0;
    return 0;
}

static void note(const char *name, unsigned hit)
{
    char text[128];
    int n = snprintf(text, sizeof(text), "%s %u %d\n", name, hit, (int)getpid());
    int fd STK_AUTO(stk_closep) = open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text, (size_t)n) != n)
        abort(); /* a test that can't see the hit proves nothing */
}

static int act(const struct point *p, stk_err *err)
{
    struct timespec ts = {.tv_sec = p->sleep_ms / 1000, .tv_nsec = (long)(p->sleep_ms % 1000) * 1000000};
    switch (p->what) {
    case KILL:
        kill(getpid(), SIGKILL);
        abort();
    case STOP:
        kill(getpid(), SIGSTOP);
        return 0;
    case SLEEP:
        while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
            ;
        return 0;
    case FAIL:
        break;
    }
    return stk_err_set(err, STK_E_INJECTED, "failpoint %s", p->name);
}

int stk__failpoint_hit(const char *name, stk_err *err)
{
    int rc = 0;
    for (size_t i = 0; i < n_points; i++) {
        struct point *p = &points[i];
        if (strcmp(p->name, name) != 0)
            continue;
        unsigned hit = atomic_fetch_add(&p->hits, 1) + 1;
        if (log_path)
            note(name, hit);
        if (p->at == 0 || p->at == hit)
            rc = act(p, err);
    }
    return rc;
}
