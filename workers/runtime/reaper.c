#include "workers/runtime/reaper.h"
#include "proto/base/time.h"
#include "workers/runtime/procs.h"
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

struct stk_minded {
    stk_minded *next;
    stk_reaper *reaper;
    pid_t pid;
    void (*ended)(void *arg);
    void *arg;
};

typedef struct waiter {
    struct waiter *next;
    void (*swept)(bool gone, void *arg);
    void *arg;
    stk_mono since;
} waiter;

struct stk_reaper {
    struct event *on_child;
    struct event *again;
    int fd;
    bool init;          /* PID 1 of a namespace of our own */
    bool ending;        /* nothing is spared any more */
    stk_minded *minded; /* spared */
    waiter *waiting;
};

static const stk_span sweep_every = {3000000};
static const stk_span sweep_most = {5000000000};

static bool is_minder(pid_t pid, void *arg)
{
    const stk_reaper *reaper = arg;
    if (reaper->ending)
        return false;
    for (const stk_minded *m = reaper->minded; m; m = m->next)
        if (m->pid == pid)
            return true;
    return false;
}

static stk_minded *unlink_minded(stk_reaper *reaper, pid_t pid)
{
    for (stk_minded **at = &reaper->minded; *at; at = &(*at)->next)
        if ((*at)->pid == pid) {
            stk_minded *m = *at;
            *at = m->next;
            return m;
        }
    return NULL;
}

/* True when we have no child at all. A command may stop its minder; it goes on at once, so that the command's
 * end is seen when it comes. */
static bool reap(stk_reaper *reaper)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | __WALL);
        if (pid <= 0)
            return pid < 0 && errno == ECHILD;
        if (WIFSTOPPED(status)) {
            if (is_minder(pid, reaper))
                kill(pid, SIGCONT);
            continue;
        }
        stk_minded *m = unlink_minded(reaper, pid);
        if (!m)
            continue;
        if (m->ended && !reaper->ending)
            m->ended(m->arg);
        free(m);
    }
}

/* One round over what must go; true when nothing is left. deep: look below our own children too. */
static bool sweep(stk_reaper *reaper, bool deep)
{
    if (reap(reaper))
        return true;
    if (reaper->init && (reaper->ending || !reaper->minded)) {
        kill(-1, SIGKILL);
        return reap(reaper);
    }
    int children = stk_procs_kill_children(is_minder, reaper);
    if (children == 0)
        return true;
    int below = deep || children < 0 ? stk_procs_kill_below(is_minder, reaper) : 1;
    return children < 0 && below == 0;
}

static void call_waiters(stk_reaper *reaper, bool gone)
{
    stk_mono now = stk_mono_now();
    waiter *late = NULL;
    for (waiter *w = STK_TAKE(reaper->waiting), *next; w; w = next) {
        next = w->next;
        if (!gone && stk_mono_sub(now, w->since).ns < sweep_most.ns) {
            w->next = late;
            late = w;
            continue;
        }
        w->swept(gone, w->arg);
        free(w);
    }
    for (waiter *next; late; late = next) {
        next = late->next;
        late->next = reaper->waiting;
        reaper->waiting = late;
    }
}

static void work(stk_reaper *reaper, bool deep)
{
    if (!reaper->waiting) {
        reap(reaper);
        return;
    }
    call_waiters(reaper, sweep(reaper, deep));
    if (reaper->waiting && !evtimer_pending(reaper->again, NULL)) {
        struct timeval tv = stk_span_timeval(sweep_every);
        evtimer_add(reaper->again, &tv);
    }
}

static void on_child(evutil_socket_t fd, short what, void *arg)
{
    struct signalfd_siginfo info[8];
    while (read(fd, info, sizeof(info)) == (ssize_t)sizeof(info))
        ;
    work(arg, false);
}

static void on_again(evutil_socket_t fd, short what, void *arg)
{
    work(arg, true);
}

int stk_reaper_new(struct event_base *base, stk_reaper **ret, stk_err *err)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        return stk_err_errno(err, errno, "signalfd");
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) {
        close(fd);
        return stk_err_errno(err, errno, "become a subreaper");
    }
    stk_reaper *reaper = stk_xcalloc(1, sizeof(*reaper));
    reaper->fd = fd;
    reaper->init = getpid() == 1;
    reaper->on_child = event_new(base, fd, EV_READ | EV_PERSIST, on_child, reaper);
    reaper->again = evtimer_new(base, on_again, reaper);
    event_add(reaper->on_child, NULL);
    *ret = reaper;
    return 0;
}

void stk_reaper_free(stk_reaper *reaper)
{
    event_free(reaper->on_child);
    event_free(reaper->again);
    close(reaper->fd);
    for (stk_minded *m = reaper->minded, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    for (waiter *w = reaper->waiting, *next; w; w = next) {
        next = w->next;
        free(w);
    }
    free(reaper);
}

stk_minded *stk_reaper_mind(stk_reaper *reaper, pid_t pid, void (*ended)(void *arg), void *arg)
{
    stk_minded *m = stk_xcalloc(1, sizeof(*m));
    *m = (stk_minded){.next = reaper->minded, .reaper = reaper, .pid = pid, .ended = ended, .arg = arg};
    reaper->minded = m;
    return m;
}

void stk_reaper_forget(stk_minded *minded)
{
    minded->ended = NULL;
}

void stk_reaper_condemn(stk_reaper *reaper, stk_minded *minded, void (*swept)(bool gone, void *arg),
                        void *arg)
{
    if (minded)
        free(unlink_minded(reaper, minded->pid));
    waiter *w = stk_xcalloc(1, sizeof(*w));
    *w = (waiter){.next = reaper->waiting, .swept = swept, .arg = arg, .since = stk_mono_now()};
    reaper->waiting = w;
    if (reaper->init && !reaper->minded)
        kill(-1, SIGKILL);
    else
        stk_procs_kill_below(is_minder, reaper);
    struct timeval tv = stk_span_timeval(stk_us(1));
    evtimer_add(reaper->again, &tv);
}

void stk_reaper_end_all(stk_reaper *reaper)
{
    reaper->ending = true;
    stk_mono until = stk_mono_add(stk_mono_now(), stk_sec(2));
    while (!sweep(reaper, true) && stk_mono_before(stk_mono_now(), until))
        usleep(1000);
}
