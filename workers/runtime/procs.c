#include "workers/runtime/procs.h"
#include "proto/base/buf.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>

#define MOST 65536 /* more processes than any limit of ours allows */

typedef struct proc {
    pid_t pid, parent;
    bool below;
} proc;

typedef struct table {
    proc *v;
    size_t n, size;
} table;

static int open_children(void)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
    return open(path, O_RDONLY | O_CLOEXEC);
}

int stk_procs_kill_children(stk_spare spare, void *arg)
{
    int fd STK_AUTO(stk_closep) = open_children();
    if (fd < 0)
        return -1;
    char buf[4096];
    int seen = 0;
    pid_t pid = 0;
    for (ssize_t n; (n = read(fd, buf, sizeof(buf))) > 0;)
        for (ssize_t i = 0; i < n; i++) {
            if (buf[i] >= '0' && buf[i] <= '9') {
                pid = pid * 10 + (buf[i] - '0');
                continue;
            }
            if (pid > 1 && !spare(pid, arg)) {
                seen++;
                kill(pid, SIGKILL);
            }
            pid = 0;
        }
    return seen;
}

/* The fourth field of stat, behind a name that may hold anything. */
static pid_t parent_of(int procfd, pid_t pid)
{
    char path[32], text[512];
    snprintf(path, sizeof(path), "%d/stat", (int)pid);
    int fd STK_AUTO(stk_closep) = openat(procfd, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return end && strlen(end) > 4 ? (pid_t)strtol(end + 4, NULL, 10) : -1;
}

static void add(table *t, pid_t pid, pid_t parent)
{
    if (t->n == t->size) {
        t->size = t->size ? t->size * 2 : 128;
        t->v = stk_xrealloc(t->v, t->size * sizeof(*t->v));
    }
    t->v[t->n++] = (proc){pid, parent, false};
}

static int by_pid(const void *a, const void *b)
{
    const proc *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static int scan(DIR *dir, table *t)
{
    for (struct dirent *e; (e = readdir(dir)) && t->n < MOST;) {
        uint64_t pid;
        if (!stk_str_u64(stk_str_of(e->d_name), INT32_MAX, &pid))
            continue;
        pid_t parent = parent_of(dirfd(dir), (pid_t)pid);
        if (parent >= 0)
            add(t, (pid_t)pid, parent);
    }
    if (t->n > 0)
        qsort(t->v, t->n, sizeof(*t->v), by_pid);
    return 0;
}

static bool is_below(const table *t, const proc *p, pid_t self, stk_spare spare, void *arg)
{
    if (p->parent == self)
        return !spare(p->pid, arg);
    proc key = {.pid = p->parent};
    const proc *parent = bsearch(&key, t->v, t->n, sizeof(*t->v), by_pid);
    return parent && parent->below;
}

static int mark(table *t, pid_t self, stk_spare spare, void *arg)
{
    int marked = 0;
    for (bool more = true; more;) {
        more = false;
        for (size_t i = 0; i < t->n; i++)
            if (!t->v[i].below && is_below(t, &t->v[i], self, spare, arg)) {
                t->v[i].below = more = true;
                marked++;
            }
    }
    return marked;
}

/* Not our child, so its pid may be another's by now: look again through a pidfd before the signal. */
static void kill_checked(int procfd, const proc *p)
{
    int fd STK_AUTO(stk_closep) = (int)syscall(SYS_pidfd_open, p->pid, 0);
    if (fd < 0 && errno != ENOSYS)
        return;
    if (parent_of(procfd, p->pid) != p->parent)
        return;
    if (fd < 0)
        kill(p->pid, SIGKILL);
    else
        syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
}

int stk_procs_kill_below(stk_spare spare, void *arg)
{
    DIR *dir = opendir("/proc");
    if (!dir)
        return -1;
    table t = {NULL, 0, 0};
    scan(dir, &t);
    pid_t self = getpid();
    int marked = mark(&t, self, spare, arg);
    for (size_t i = 0; i < t.n; i++) {
        if (!t.v[i].below)
            continue;
        if (t.v[i].parent == self)
            kill(t.v[i].pid, SIGKILL);
        else
            kill_checked(dirfd(dir), &t.v[i]);
    }
    closedir(dir);
    free(t.v);
    return marked;
}
