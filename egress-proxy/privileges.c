#include "egress-proxy/privileges.h"
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <seccomp.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>

#define NOBODY 65534

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static const int allowed[] = {
    SCMP_SYS(accept4),       SCMP_SYS(brk),
    SCMP_SYS(clock_gettime), SCMP_SYS(close),
    SCMP_SYS(connect),       SCMP_SYS(dup),
    SCMP_SYS(epoll_ctl),     SCMP_SYS(epoll_pwait),
    SCMP_SYS(epoll_wait),    SCMP_SYS(exit),
    SCMP_SYS(exit_group),    SCMP_SYS(fstat),
    SCMP_SYS(futex),         SCMP_SYS(getpeername),
    SCMP_SYS(getpid),        SCMP_SYS(getrandom),
    SCMP_SYS(getsockname),   SCMP_SYS(getsockopt),
    SCMP_SYS(gettid),        SCMP_SYS(gettimeofday),
    SCMP_SYS(madvise),       SCMP_SYS(mremap),
    SCMP_SYS(munmap),        SCMP_SYS(pipe2),
    SCMP_SYS(poll),          SCMP_SYS(pread64),
    SCMP_SYS(read),          SCMP_SYS(recvfrom),
    SCMP_SYS(recvmsg),       SCMP_SYS(restart_syscall),
    SCMP_SYS(rt_sigaction),  SCMP_SYS(rt_sigprocmask),
    SCMP_SYS(rt_sigreturn),  SCMP_SYS(sendmsg),
    SCMP_SYS(sendto),        SCMP_SYS(setsockopt),
    SCMP_SYS(shutdown),      SCMP_SYS(splice),
    SCMP_SYS(tgkill),        SCMP_SYS(write),
    SCMP_SYS(writev),
};

/* Allowed only where an argument is harmless: (argument & mask) == value. */
static const struct {
    int call;
    unsigned arg;
    uint64_t mask, value;
} narrowed[] = {
    {SCMP_SYS(socket), 0, UINT32_MAX, AF_INET},
    {SCMP_SYS(socket), 0, UINT32_MAX, AF_INET6},
    {SCMP_SYS(mmap), 2, PROT_EXEC, 0},
    {SCMP_SYS(mprotect), 2, PROT_EXEC, 0},
    {SCMP_SYS(newfstatat), 3, AT_EMPTY_PATH, AT_EMPTY_PATH},
    {SCMP_SYS(fcntl), 1, UINT32_MAX, F_GETFL},
    {SCMP_SYS(fcntl), 1, UINT32_MAX, F_SETFL},
    {SCMP_SYS(fcntl), 1, UINT32_MAX, F_GETPIPE_SZ},
    {SCMP_SYS(fcntl), 1, UINT32_MAX, F_SETPIPE_SZ},
};

static int drop_user(stk_err *err)
{
    if (geteuid() != 0)
        return 0;
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap) >= 0; cap++)
        prctl(PR_CAPBSET_DROP, cap);
    /* EPERM, EINVAL: root of a user namespace that maps nobody else; the capabilities still go below. */
    if (setgroups(0, NULL) < 0 && errno != EPERM)
        return stk_err_errno(err, errno, "drop the groups");
    if (setresgid(NOBODY, NOBODY, NOBODY) < 0 && errno != EPERM && errno != EINVAL)
        return stk_err_errno(err, errno, "change the group");
    if (setresuid(NOBODY, NOBODY, NOBODY) < 0 && errno != EPERM && errno != EINVAL)
        return stk_err_errno(err, errno, "change the user");
    return 0;
}

static int drop_capabilities(stk_err *err)
{
    cap_t none = cap_init();
    if (!none)
        return stk_err_errno(err, errno, "clear the capabilities");
    int rc = cap_set_proc(none);
    int why = errno;
    cap_free(none);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    return rc < 0 ? stk_err_errno(err, why, "clear the capabilities") : 0;
}

static int add_rules(scmp_filter_ctx ctx)
{
    int rc = 0;
    for (size_t i = 0; i < STK_COUNT(allowed) && rc == 0; i++)
        rc = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, allowed[i], 0);
    for (size_t i = 0; i < STK_COUNT(narrowed) && rc == 0; i++) {
        struct scmp_arg_cmp cmp =
            SCMP_CMP64(narrowed[i].arg, SCMP_CMP_MASKED_EQ, narrowed[i].mask, narrowed[i].value);
        rc = seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, narrowed[i].call, 1, &cmp);
    }
    return rc;
}

static int filter_calls(stk_err *err)
{
    if (SANITIZED)
        return 0;
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_KILL_PROCESS);
    if (!ctx)
        return stk_err_set(err, STK_E_NOMEM, "no memory for the filter of system calls");
    int rc = add_rules(ctx);
    if (rc == 0)
        rc = seccomp_load(ctx);
    seccomp_release(ctx);
    return rc < 0 ? stk_err_errno(err, -rc, "load the filter of system calls") : 0;
}

/* As many descriptors as the caller's hard limit grants: two a tunnel, and pipes while data moves. */
static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int stk_privileges_drop(stk_err *err)
{
    const struct rlimit none = {0, 0};
    raise_descriptors();
    tzset(); /* the C library reads the time zone's file at the first date it writes, even one in UTC */
    setrlimit(RLIMIT_CORE, &none);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return stk_err_errno(err, errno, "give up new privileges");
    int rc = drop_user(err);
    if (rc == 0)
        rc = drop_capabilities(err);
    if (rc == 0 && prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        rc = stk_err_errno(err, errno, "refuse to be dumped");
    return rc == 0 ? filter_calls(err) : rc;
}
