#include "proto/base/proc.h"
#include "proto/base/fd.h"
#include "proto/base/launch_spec.h"
#include <errno.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* The launcher takes about a millisecond; only a frozen cgroup or a dying machine gets near this. */
enum { EXEC_WAIT_MS = 10000 };

struct stk_proc {
    pid_t pid;
    int pidfd;
    bool watched;
    bool orphan; /* freed by its owner; the watch frees it */
    struct event event;
    stk_proc_done done;
    void *arg;
};

/* Everything that lives only while a child is being started. */
typedef struct start {
    stk_launch *launch;
    stk_buf text;
    int spec_fd;
    int report_r;
    int report_w;
    int raised[STK_LAUNCH_FDS];
    size_t n_raised;
} start;

static void start_done(start *s)
{
    free(s->launch);
    stk_buf_done(&s->text);
    stk_closep(&s->spec_fd);
    stk_closep(&s->report_r);
    stk_closep(&s->report_w);
    for (size_t i = 0; i < s->n_raised; i++)
        close(s->raised[i]);
}

static char launcher[4096];
static int launcher_rc;
static stk_err launcher_err;
static pthread_once_t launcher_once = PTHREAD_ONCE_INIT;

static void find_launcher(void)
{
    launcher_rc = stk_proc_find_helper("stockade-launch", launcher, sizeof(launcher), &launcher_err);
}

/* Moves a descriptor out of the low numbers, which the launcher gives to the child. */
static int raise_fd(int *fd, stk_err *err)
{
    if (*fd >= STK_LAUNCH_LOW)
        return 0;
    int high = fcntl(*fd, F_DUPFD_CLOEXEC, STK_LAUNCH_LOW);
    if (high < 0)
        return stk_err_errno(err, errno, "duplicate descriptor %d", *fd);
    close(*fd);
    *fd = high;
    return 0;
}

static int copy_list(const char **to, size_t most, size_t *ret_n, const char *const *from, const char *what,
                     stk_err *err)
{
    size_t n = 0;
    for (; from && from[n]; n++) {
        if (n == most)
            return stk_err_set(err, STK_E_LIMIT, "more than %zu %s", most, what);
        to[n] = from[n];
    }
    *ret_n = n;
    return 0;
}

static int map_fds(start *s, const stk_proc_spec *spec, stk_err *err)
{
    stk_launch *l = s->launch;
    for (size_t i = 0; i < spec->nfds; i++) {
        int ours = spec->fds[i].ours;
        if (spec->fds[i].child < 0 || spec->fds[i].child >= STK_LAUNCH_LOW || spec->nfds > STK_LAUNCH_FDS)
            return stk_err_set(err, STK_E_INTERNAL, "descriptor %d of a child is out of range",
                               spec->fds[i].child);
        if (ours < STK_LAUNCH_LOW) {
            ours = fcntl(ours, F_DUPFD_CLOEXEC, STK_LAUNCH_LOW);
            if (ours < 0)
                return stk_err_errno(err, errno, "duplicate descriptor %d", spec->fds[i].ours);
            s->raised[s->n_raised++] = ours;
        }
        l->fds[l->n_fds].child = spec->fds[i].child;
        l->fds[l->n_fds++].at = ours;
    }
    return 0;
}

static int describe(start *s, const stk_proc_spec *spec, stk_err *err)
{
    static const char *const plain_env[] = {
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", NULL};
    stk_launch *l = s->launch;
    if (!spec->path || spec->path[0] != '/' || !spec->argv || !spec->argv[0])
        return stk_err_set(err, STK_E_INTERNAL, "a child needs an absolute path and arguments");
    l->path = spec->path;
    l->cwd = spec->cwd ? spec->cwd : "/";
    l->umount = spec->umount;
    l->unshare_flags = spec->unshare_flags;
    l->nofile = spec->nofile;
    l->parent = spec->die_with_parent ? getpid() : 0;
    int rc = copy_list(l->args, STK_LAUNCH_ARGS, &l->n_args, spec->argv, "arguments", err);
    if (rc == 0)
        rc = copy_list(l->env, STK_LAUNCH_ENV, &l->n_env, spec->envp ? spec->envp : plain_env, "variables",
                       err);
    if (rc == 0)
        rc = copy_list(l->cgroups, STK_LAUNCH_CGROUPS, &l->n_cgroups, spec->cgroups, "cgroups", err);
    if (rc == 0)
        rc = map_fds(s, spec, err);
    if (rc == 0 && stk_launch_encode(&s->text, l) < 0)
        rc = stk_err_set(err, STK_E_LIMIT, "arguments and environment are longer than %d bytes",
                         STK_LAUNCH_MOST);
    return rc;
}

static int open_report(start *s, bool nowait, stk_err *err)
{
    int fds[2];
    if (nowait) {
        s->report_w = open("/dev/null", O_WRONLY | O_CLOEXEC);
        return s->report_w < 0 ? stk_err_errno(err, errno, "open /dev/null") : 0;
    }
    if (pipe2(fds, O_CLOEXEC) < 0)
        return stk_err_errno(err, errno, "make a pipe");
    s->report_r = fds[0];
    s->report_w = fds[1];
    return 0;
}

static int open_channels(start *s, bool nowait, stk_err *err)
{
    s->spec_fd = memfd_create("stockade-launch", MFD_CLOEXEC);
    if (s->spec_fd < 0)
        return stk_err_errno(err, errno, "make a memory file");
    int rc = stk_fd_write_all(s->spec_fd, s->text.p, s->text.n, err);
    if (rc == 0)
        rc = open_report(s, nowait, err);
    if (rc == 0)
        rc = raise_fd(&s->spec_fd, err);
    return rc < 0 ? rc : raise_fd(&s->report_w, err);
}

static int spawn(start *s, pid_t *ret_pid, stk_err *err)
{
    char *const argv[] = {launcher, NULL};
    char *const envp[] = {NULL};
    posix_spawn_file_actions_t actions;
    int rc = posix_spawn_file_actions_init(&actions);
    if (rc)
        return stk_err_errno(err, rc, "prepare a child");
    rc = posix_spawn_file_actions_adddup2(&actions, s->spec_fd, STK_LAUNCH_SPEC_FD);
    if (!rc)
        rc = posix_spawn_file_actions_adddup2(&actions, s->report_w, STK_LAUNCH_ERROR_FD);
    /* Onto itself: clears close-on-exec in the child alone. */
    for (size_t i = 0; !rc && i < s->launch->n_fds; i++)
        rc = posix_spawn_file_actions_adddup2(&actions, s->launch->fds[i].at, s->launch->fds[i].at);
    if (!rc)
        rc = posix_spawn(ret_pid, launcher, &actions, NULL, argv, envp);
    posix_spawn_file_actions_destroy(&actions);
    return rc ? stk_err_errno(err, rc, "start %s", launcher) : 0;
}

static int reap(int pidfd, stk_proc_end *ret)
{
    siginfo_t info = {.si_pid = 0};
    struct rusage use = {.ru_maxrss = 0};
    long rc;
    do
        rc = syscall(SYS_waitid, P_PIDFD, pidfd, &info, WEXITED, &use);
    while (rc < 0 && errno == EINTR);
    if (rc < 0)
        return -STK_E_SYSTEM;
    bool exited = info.si_code == CLD_EXITED;
    *ret = (stk_proc_end){
        .exited = exited,
        .status = exited ? info.si_status : 0,
        .signal = exited ? 0 : info.si_status,
        .cpu_us = (int64_t)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) * 1000000 + use.ru_utime.tv_usec +
                  use.ru_stime.tv_usec,
    };
    return 0;
}

static int send_signal(int pidfd, int sig)
{
    return (int)syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0);
}

/* Reads until the launcher's end is closed, by exec or by its death. */
static int await_exec(start *s, const char *path, stk_err *err)
{
    char got[1 + sizeof(stk_launch_report)];
    size_t n = 0;
    stk_mono deadline = stk_mono_add(stk_mono_now(), stk_ms(EXEC_WAIT_MS));
    stk_closep(&s->report_w);
    s->report_w = -1;
    while (n < sizeof(got)) {
        struct pollfd wait = {.fd = s->report_r, .events = POLLIN};
        int64_t left = stk_span_ms(stk_mono_sub(deadline, stk_mono_now()));
        int ready = poll(&wait, 1, left > 0 ? (int)left : 0);
        if (ready == 0)
            return stk_err_set(err, STK_E_TIMEOUT, "start %s: the launcher does not get on", path);
        ssize_t more = ready < 0 ? -1 : read(s->report_r, got + n, sizeof(got) - n);
        if (more < 0 && errno != EINTR)
            return stk_err_errno(err, errno, "start %s", path);
        if (more == 0)
            break;
        n += more > 0 ? (size_t)more : 0;
    }
    if (n == 1 && got[0] == STK_LAUNCH_READY)
        return 0;
    stk_launch_report report;
    if (n < sizeof(report))
        return stk_err_set(err, STK_E_SYSTEM, "start %s: the launcher was killed", path);
    memcpy(&report, got + n - sizeof(report), sizeof(report));
    report.step[sizeof(report.step) - 1] = '\0';
    return stk_err_errno(err, report.errnum, "start %s: %s", path, report.step);
}

static void on_exit_event(evutil_socket_t fd, short what, void *arg)
{
    stk_proc *proc = arg;
    stk_proc_end end = {.exited = false, .signal = SIGKILL};
    reap(proc->pidfd, &end);
    stk_closep(&proc->pidfd);
    proc->pidfd = -1;
    proc->watched = false;
    if (proc->orphan)
        free(proc);
    else
        proc->done(proc, &end, proc->arg);
}

static void kill_and_reap(int pidfd)
{
    stk_proc_end end;
    send_signal(pidfd, SIGKILL);
    reap(pidfd, &end);
}

/* From a pid that only we can reap, so that it can't have been reused. */
static int open_pidfd(pid_t pid, int *ret_fd, stk_err *err)
{
    *ret_fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (*ret_fd >= 0)
        return 0;
    int why = errno;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    return stk_err_errno(err, why, "watch a child");
}

int stk_proc_start(stk_loop *loop, const stk_proc_spec *spec, stk_proc_done done, void *arg, stk_proc **ret,
                   stk_err *err)
{
    start s STK_AUTO(start_done) = {
        .text = STK_BUF(STK_LAUNCH_MOST), .spec_fd = -1, .report_r = -1, .report_w = -1};
    s.launch = stk_xcalloc(1, sizeof(*s.launch));
    pthread_once(&launcher_once, find_launcher);
    if (launcher_rc < 0)
        return stk_err_set(err, launcher_err.code, "%s", launcher_err.detail);
    int rc = describe(&s, spec, err);
    if (rc == 0)
        rc = open_channels(&s, spec->nowait, err);
    stk_proc *proc STK_AUTO(stk_freep) = stk_xcalloc(1, sizeof(*proc));
    *proc = (stk_proc){.pidfd = -1, .watched = true, .done = done, .arg = arg};
    if (rc == 0)
        rc = spawn(&s, &proc->pid, err);
    if (rc == 0)
        rc = open_pidfd(proc->pid, &proc->pidfd, err);
    if (rc < 0)
        return rc;
    if (!spec->nowait)
        rc = await_exec(&s, spec->path, err);
    event_assign(&proc->event, stk_loop_base(loop), proc->pidfd, EV_READ, on_exit_event, proc);
    if (rc == 0 && event_add(&proc->event, NULL) < 0)
        rc = stk_err_set(err, STK_E_SYSTEM, "watch a child");
    if (rc < 0) {
        kill_and_reap(proc->pidfd);
        stk_closep(&proc->pidfd);
        return rc;
    }
    *ret = STK_TAKE(proc);
    return 0;
}

pid_t stk_proc_pid(const stk_proc *proc)
{
    return proc->pid;
}

void stk_proc_kill(stk_proc *proc, int sig)
{
    if (proc->pidfd >= 0)
        send_signal(proc->pidfd, sig);
}

void stk_proc_free(stk_proc *proc)
{
    if (!proc)
        return;
    if (proc->watched) {
        proc->orphan = true;
        send_signal(proc->pidfd, SIGKILL);
    } else {
        free(proc);
    }
}
