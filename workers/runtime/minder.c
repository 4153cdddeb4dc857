#include "workers/runtime/minder.h"
#include "proto/base/time.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define REPORT_FD 3

/* What the vforked child leaves in the shared memory when exec fails. */
typedef struct failure {
    int errnum;
    stk_start_stage stage;
} failure;

static void report(const stk_report *r)
{
    while (write(REPORT_FD, r, sizeof(*r)) < 0 && errno == EINTR)
        ;
}

static _Noreturn void fail(int errnum, stk_start_stage stage)
{
    report(&(stk_report){.kind = STK_REPORT_FAILED, .value = errnum, .stage = stage});
    _exit(0);
}

static void close_from(unsigned first)
{
    if (syscall(SYS_close_range, first, ~0U, 0) == 0)
        return;
    struct rlimit most = {.rlim_cur = 1024};
    getrlimit(RLIMIT_NOFILE, &most);
    for (unsigned fd = first; fd < stk_min(most.rlim_cur, 65536); fd++)
        close((int)fd);
}

static void arrange_descriptors(const stk_minder_spec *spec)
{
    if (fchdir(spec->cwd) < 0) {
        dup3(spec->report, REPORT_FD, O_CLOEXEC);
        fail(errno, STK_STAGE_CWD);
    }
    for (int i = 0; i < 3; i++)
        dup2(spec->stdio[i], i);
    if (spec->report != REPORT_FD)
        dup3(spec->report, REPORT_FD, O_CLOEXEC);
    close_from(REPORT_FD + 1);
}

static failure try_exec(const char *path, const stk_minder_spec *spec)
{
    execve(path, spec->argv, spec->envp);
    failure f = {errno, STK_STAGE_EXEC};
    if (f.errnum == ENOENT && access(path, F_OK) == 0)
        f.stage = STK_STAGE_INTERPRETER;
    return f;
}

static bool looks_further(failure f)
{
    return f.stage == STK_STAGE_EXEC &&
           (f.errnum == ENOENT || f.errnum == ENOTDIR || f.errnum == EACCES || f.errnum == ENAMETOOLONG);
}

/* As execvpe, but a file without a known format stays an error: there is no shell to fall back on. */
static failure exec_search(const stk_minder_spec *spec)
{
    const char *name = spec->argv[0];
    if (strchr(name, '/'))
        return try_exec(name, spec);
    size_t name_n = strlen(name);
    failure result = {ENOENT, STK_STAGE_EXEC};
    for (const char *dir = spec->path, *next; dir; dir = next) {
        const char *colon = strchr(dir, ':');
        size_t n = colon ? (size_t)(colon - dir) : strlen(dir);
        next = colon ? colon + 1 : NULL;
        char path[PATH_MAX];
        if (n + name_n + 3 > sizeof(path))
            continue;
        memcpy(path, n ? dir : ".", n ? n : 1);
        n = n ? n : 1;
        path[n] = '/';
        memcpy(path + n + 1, name, name_n + 1);
        failure f = try_exec(path, spec);
        if (!looks_further(f))
            return f;
        if (f.errnum == EACCES)
            result = f;
    }
    return result;
}

/* The vforked child: only system calls, nothing that the minder could not have done to it. */
static _Noreturn void become_command(const stk_minder_spec *spec, volatile failure *ret)
{
    sigset_t none;
    sigemptyset(&none);
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    failure f = exec_search(spec);
    ret->errnum = f.errnum;
    ret->stage = f.stage;
    _exit(127);
}

static pid_t start(const stk_minder_spec *spec)
{
    volatile failure why = {0, STK_STAGE_EXEC};
    pid_t pid = vfork();
    if (pid == 0)
        become_command(spec, &why);
    if (pid < 0)
        fail(errno, STK_STAGE_FORK);
    if (why.errnum)
        fail(why.errnum, why.stage);
    return pid;
}

static void wait_for_all(pid_t leader)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, __WALL);
        if (pid < 0 && errno == EINTR)
            continue;
        if (pid < 0)
            return;
        if (pid != leader)
            continue;
        int64_t at = stk_mono_now().ns;
        while ((pid = waitpid(-1, NULL, WNOHANG | __WALL)) > 0)
            ;
        report(&(stk_report){.kind = STK_REPORT_LEFT, .value = status, .survivors = pid == 0, .at = at});
        if (pid < 0)
            return;
    }
}

_Noreturn void stk_minder_main(const stk_minder_spec *spec, pid_t parent)
{
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(0);
    prctl(PR_SET_NAME, "minder");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    arrange_descriptors(spec);
    pid_t leader = start(spec);
    report(&(stk_report){.kind = STK_REPORT_STARTED, .at = stk_mono_now().ns});
    for (int fd = 0; fd < 3; fd++)
        close(fd);
    wait_for_all(leader);
    _exit(0);
}
