/* stockade-launch: becomes one child process. Reads its spec on fd 3, says on fd 4 what failed, never
 * returns. */
#include "proto/base/launch_spec.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static stk_launch spec;
static int error_fd = STK_LAUNCH_ERROR_FD;

static _Noreturn void fail(const char *step, const char *what)
{
    stk_launch_report report = {.errnum = errno};
    snprintf(report.step, sizeof(report.step), "%s%s%s", step, *what ? " " : "", what);
    ssize_t ignored = write(error_fd, &report, sizeof(report));
    (void)ignored;
    _exit(127);
}

static void must(bool done, const char *step, const char *what)
{
    if (!done)
        fail(step, what);
}

static void read_spec(void)
{
    struct stat st;
    must(fstat(STK_LAUNCH_SPEC_FD, &st) == 0, "find the spec", "");
    errno = EINVAL;
    must(S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= STK_LAUNCH_MOST, "read the spec", "");
    const char *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, STK_LAUNCH_SPEC_FD, 0);
    must(p != MAP_FAILED, "read the spec", "");
    errno = EPROTO;
    must(stk_launch_decode(p, (size_t)st.st_size, &spec) == 0, "read the spec", "");
}

static void reset_signals(void)
{
    /* The system call itself: libc refuses the two it keeps for threads, and somebody may have ignored them.
     * All zero is SIG_DFL; refused for KILL and STOP, which can't be ignored. */
    static const unsigned long plain[4];
    for (int sig = 1; sig <= 64; sig++)
        syscall(SYS_rt_sigaction, sig, plain, NULL, 8);
    sigset_t none;
    sigemptyset(&none);
    must(sigprocmask(SIG_SETMASK, &none, NULL) == 0, "reset the signal mask", "");
}

static void tie_to_parent(void)
{
    if (!spec.parent)
        return;
    must(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0, "tie to the parent", "");
    if (getppid() != (pid_t)spec.parent)
        _exit(127);
}

static void join_cgroups(void)
{
    for (size_t i = 0; i < spec.n_cgroups; i++) {
        char path[4096];
        int n = snprintf(path, sizeof(path), "%s/cgroup.procs", spec.cgroups[i]);
        errno = ENAMETOOLONG;
        must(n > 0 && (size_t)n < sizeof(path), "join cgroup", spec.cgroups[i]);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        must(fd >= 0 && write(fd, "0", 1) == 1, "join cgroup", spec.cgroups[i]);
        close(fd);
    }
}

static void enter_namespaces(void)
{
    if (!spec.unshare_flags)
        return;
    must(unshare(spec.unshare_flags) == 0, "unshare namespaces", "");
    if (!(spec.unshare_flags & CLONE_NEWNS))
        return;
    must(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "make mounts private", "");
    if (spec.umount)
        must(umount2(spec.umount, MNT_DETACH) == 0, "unmount", spec.umount);
}

static void set_limits(void)
{
    struct rlimit limit = {.rlim_cur = (rlim_t)spec.nofile, .rlim_max = (rlim_t)spec.nofile};
    if (spec.nofile)
        must(setrlimit(RLIMIT_NOFILE, &limit) == 0, "limit open files", "");
}

static bool named(int child)
{
    for (size_t i = 0; i < spec.n_fds; i++)
        if (spec.fds[i].child == child)
            return true;
    return false;
}

/* All that waits is at LOW or above and closes on exec; dup2 puts the named ones, which stay, below. */
static void place_descriptors(void)
{
    error_fd = fcntl(STK_LAUNCH_ERROR_FD, F_DUPFD_CLOEXEC, STK_LAUNCH_LOW);
    if (error_fd < 0)
        _exit(127);
    must(syscall(SYS_close_range, 0u, ~0u, 4u /* CLOSE_RANGE_CLOEXEC */) == 0, "close descriptors", "");
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    must(null >= 0, "open", "/dev/null");
    int high = fcntl(null, F_DUPFD_CLOEXEC, STK_LAUNCH_LOW);
    must(high >= 0, "open", "/dev/null");
    for (int fd = 0; fd < 3; fd++)
        if (!named(fd))
            must(dup2(high, fd) == fd, "place descriptor", "");
    for (size_t i = 0; i < spec.n_fds; i++)
        must(dup2(spec.fds[i].at, spec.fds[i].child) >= 0, "place descriptor", "");
}

int main(void)
{
    read_spec();
    reset_signals();
    tie_to_parent();
    must(setsid() > 0, "begin a session", "");
    umask(022);
    join_cgroups();
    enter_namespaces();
    place_descriptors();
    set_limits();
    must(chdir(spec.cwd) == 0, "enter", spec.cwd);
    const char ready = STK_LAUNCH_READY;
    must(write(error_fd, &ready, 1) == 1, "report", "");
    execve(spec.path, (char *const *)(uintptr_t)spec.args, (char *const *)(uintptr_t)spec.env);
    fail("execute", spec.path);
}
