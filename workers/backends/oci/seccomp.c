#include "workers/backends/oci/oci.h"

/* What an ordinary program needs. Everything else answers ENOSYS, so that clone3 and faccessat2 users fall
 * back. */
static const char *const plain[] = {
    "accept",
    "accept4",
    "access",
    "alarm",
    "arch_prctl",
    "bind",
    "brk",
    "capget",
    "chdir",
    "chmod",
    "chown",
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "close",
    "close_range",
    "connect",
    "copy_file_range",
    "creat",
    "dup",
    "dup2",
    "dup3",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "eventfd",
    "eventfd2",
    "execve",
    "execveat",
    "exit",
    "exit_group",
    "faccessat",
    "faccessat2",
    "fadvise64",
    "fallocate",
    "fchdir",
    "fchmod",
    "fchmodat",
    "fchown",
    "fchownat",
    "fcntl",
    "fdatasync",
    "fgetxattr",
    "flistxattr",
    "flock",
    "fork",
    "fremovexattr",
    "fsetxattr",
    "fstat",
    "fstatfs",
    "fsync",
    "ftruncate",
    "futex",
    "futex_waitv",
    "futimesat",
    "get_robust_list",
    "getcpu",
    "getcwd",
    "getdents",
    "getdents64",
    "getegid",
    "geteuid",
    "getgid",
    "getgroups",
    "getitimer",
    "getpeername",
    "getpgid",
    "getpgrp",
    "getpid",
    "getppid",
    "getpriority",
    "getrandom",
    "getresgid",
    "getresuid",
    "getrlimit",
    "getrusage",
    "getsid",
    "getsockname",
    "getsockopt",
    "gettid",
    "gettimeofday",
    "getuid",
    "getxattr",
    "inotify_add_watch",
    "inotify_init",
    "inotify_init1",
    "inotify_rm_watch",
    "ioprio_get",
    "ioprio_set",
    "kill",
    "lchown",
    "lgetxattr",
    "link",
    "linkat",
    "listen",
    "listxattr",
    "llistxattr",
    "lremovexattr",
    "lseek",
    "lsetxattr",
    "lstat",
    "madvise",
    "membarrier",
    "memfd_create",
    "mincore",
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "mlock",
    "mlock2",
    "mlockall",
    "mmap",
    "mprotect",
    "mq_getsetattr",
    "mq_notify",
    "mq_open",
    "mq_timedreceive",
    "mq_timedsend",
    "mq_unlink",
    "mremap",
    "msgctl",
    "msgget",
    "msgrcv",
    "msgsnd",
    "msync",
    "munlock",
    "munlockall",
    "munmap",
    "nanosleep",
    "newfstatat",
    "open",
    "openat",
    "openat2",
    "pause",
    "pidfd_open",
    "pidfd_send_signal",
    "pipe",
    "pipe2",
    "poll",
    "ppoll",
    "prctl",
    "pread64",
    "preadv",
    "preadv2",
    "pselect6",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "read",
    "readahead",
    "readlink",
    "readlinkat",
    "readv",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "remap_file_pages",
    "removexattr",
    "rename",
    "renameat",
    "renameat2",
    "restart_syscall",
    "rmdir",
    "rseq",
    "rt_sigaction",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigqueueinfo",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "rt_tgsigqueueinfo",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_getaffinity",
    "sched_getattr",
    "sched_getparam",
    "sched_getscheduler",
    "sched_rr_get_interval",
    "sched_setaffinity",
    "sched_yield",
    "seccomp",
    "select",
    "semctl",
    "semget",
    "semop",
    "semtimedop",
    "sendfile",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "set_robust_list",
    "set_tid_address",
    "setfsgid",
    "setfsuid",
    "setgid",
    "setgroups",
    "setitimer",
    "setpgid",
    "setregid",
    "setresgid",
    "setresuid",
    "setreuid",
    "setrlimit",
    "setsid",
    "setsockopt",
    "setuid",
    "setxattr",
    "shmat",
    "shmctl",
    "shmdt",
    "shmget",
    "shutdown",
    "sigaltstack",
    "signalfd",
    "signalfd4",
    "socketpair",
    "splice",
    "stat",
    "statfs",
    "statx",
    "symlink",
    "symlinkat",
    "sync",
    "sync_file_range",
    "syncfs",
    "sysinfo",
    "tee",
    "tgkill",
    "time",
    "timer_create",
    "timer_delete",
    "timer_getoverrun",
    "timer_gettime",
    "timer_settime",
    "timerfd_create",
    "timerfd_gettime",
    "timerfd_settime",
    "times",
    "tkill",
    "truncate",
    "umask",
    "uname",
    "unlink",
    "unlinkat",
    "utime",
    "utimensat",
    "utimes",
    "vfork",
    "vmsplice",
    "wait4",
    "waitid",
    "waitpid",
    "write",
    "writev",
};

#define CLONE_NAMESPACES 0x7E020000 /* all CLONE_NEW* flags (linux/sched.h) */
#define TIOCSTI          0x5412

static cJSON *rule(cJSON *list, const char *name)
{
    cJSON *item = cJSON_CreateObject();
    cJSON *names = cJSON_AddArrayToObject(item, "names");
    if (name)
        cJSON_AddItemToArray(names, cJSON_CreateString(name));
    cJSON_AddStringToObject(item, "action", "SCMP_ACT_ALLOW");
    cJSON_AddItemToArray(list, item);
    return item;
}

/* Called again: that too. */
static void only_if(cJSON *item, int index, const char *op, double value, double value_two)
{
    cJSON *args = cJSON_GetObjectItem(item, "args");
    if (!args)
        args = cJSON_AddArrayToObject(item, "args");
    cJSON *arg = cJSON_CreateObject();
    cJSON_AddNumberToObject(arg, "index", index);
    cJSON_AddNumberToObject(arg, "value", value);
    cJSON_AddNumberToObject(arg, "valueTwo", value_two);
    cJSON_AddStringToObject(arg, "op", op);
    cJSON_AddItemToArray(args, arg);
}

cJSON *stk_oci_seccomp(void)
{
    static const int families[] = {1 /* AF_UNIX */, 2 /* AF_INET */, 10 /* AF_INET6 */};
    static const char *const own[] = {"prlimit64", "sched_setattr", "sched_setparam", "sched_setscheduler"};
    cJSON *profile = cJSON_CreateObject();
    cJSON_AddStringToObject(profile, "defaultAction", "SCMP_ACT_ERRNO");
    cJSON_AddNumberToObject(profile, "defaultErrnoRet", 38 /* ENOSYS */);
    cJSON *arches = cJSON_AddArrayToObject(profile, "architectures");
#if defined(__aarch64__)
    cJSON_AddItemToArray(arches, cJSON_CreateString("SCMP_ARCH_AARCH64"));
#else
    cJSON_AddItemToArray(arches, cJSON_CreateString("SCMP_ARCH_X86_64"));
#endif
    cJSON *list = cJSON_AddArrayToObject(profile, "syscalls");
    cJSON *names = cJSON_GetObjectItem(rule(list, NULL), "names");
    for (size_t i = 0; i < STK_COUNT(plain); i++)
        cJSON_AddItemToArray(names, cJSON_CreateString(plain[i]));
    only_if(rule(list, "clone"), 0, "SCMP_CMP_MASKED_EQ", CLONE_NAMESPACES, 0);
    only_if(rule(list, "ioctl"), 1, "SCMP_CMP_NE", TIOCSTI, 0);
    only_if(rule(list, "personality"), 0, "SCMP_CMP_EQ", 0, 0);
    /* Of itself alone: the runtime, with the same uid, keeps its limits, and its turn when a deadline comes.
     */
    for (size_t i = 0; i < STK_COUNT(own); i++)
        only_if(rule(list, own[i]), 0, "SCMP_CMP_EQ", 0, 0);
    cJSON *nice = rule(list, "setpriority");
    only_if(nice, 0, "SCMP_CMP_EQ", 0 /* PRIO_PROCESS */, 0);
    only_if(nice, 1, "SCMP_CMP_EQ", 0, 0);
    for (size_t i = 0; i < STK_COUNT(families); i++)
        only_if(rule(list, "socket"), 0, "SCMP_CMP_EQ", families[i], 0);
    return profile;
}
