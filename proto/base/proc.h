/* Child processes: a tiny static launcher (`stockade-launch`) is posix_spawned per child, reads its spec on
 * fd 3, sets session, signals, cgroups, limits, namespaces and descriptors, and execs. The parent holds a
 * pidfd and never calls waitpid(-1). Never a shell. The environment is built, never inherited. */
#ifndef STK_BASE_PROC_H
#define STK_BASE_PROC_H

#include "proto/base/field.h"
#include "proto/base/loop.h"
#include <sys/types.h>

typedef struct stk_proc stk_proc;

typedef struct stk_proc_spec {
    const char *path;        /* absolute path of the program                                         */
    const char *const *argv; /* NULL-terminated, argv[0] included                                    */
    const char *const *envp; /* NULL-terminated; NULL = PATH only                                    */
    const char *cwd;         /* NULL = "/"                                                           */
    /* Descriptors of the child: fds[i].child (0 to 15) becomes a duplicate of fds[i].ours; all others are
     * closed. 0, 1, 2 not named here are /dev/null. */
    struct stk_proc_fd {
        int child;
        int ours;
    } fds[8];
    size_t nfds;
    const char *const *cgroups; /* directories whose cgroup.procs gets the child; NULL-terminated or NULL */
    int unshare_flags;          /* CLONE_NEW* for the child, 0 = none                                  */
    const char *umount;         /* after unshare(CLONE_NEWNS): detach this mount (hybrid cgroups), or NULL */
    int64_t nofile;             /* RLIMIT_NOFILE, 0 = as ours                                          */
    bool die_with_parent;       /* PR_SET_PDEATHSIG(SIGKILL), for helpers that hold nothing            */
    bool nowait; /* start does not wait for the exec: what fails before it is exit status 127, without why */
} stk_proc_spec;

/* How it ended. */
typedef struct stk_proc_end {
    bool exited; /* else killed by `signal` */
    int status;  /* exit status */
    int signal;
    int64_t cpu_us; /* user + system time of the child and what it waited for */
} stk_proc_end;

typedef void (*stk_proc_done)(stk_proc *proc, const stk_proc_end *end, void *arg);

/* Path of a helper program: in STOCKADE_LIBEXEC (absolute directories, ':' between them), next to
 * /proc/self/exe, in
 * ../libexec/stockade, or where the build tree has it. -STK_E_NOT_FOUND. */
int stk_proc_find_helper(const char *name, char *out, size_t size, stk_err *err) STK_MUST_USE;
/* Starts it; `done` is called once on `loop` after the child was reaped. A failure before exec (no such
 * program, cgroup refused) is reported by the launcher as -STK_E_SYSTEM here: the call waits for the exec
 * (a close-on-exec pipe), which takes about 1 ms. -STK_E_NOT_FOUND: no launcher; -STK_E_LIMIT: more than 4096
 * arguments, 1024 variables, 16 cgroups or 2 MiB; -STK_E_TIMEOUT: 10 s without an exec (a frozen cgroup). */
int stk_proc_start(stk_loop *loop, const stk_proc_spec *spec, stk_proc_done done, void *arg, stk_proc **ret,
                   stk_err *err) STK_MUST_USE;
pid_t stk_proc_pid(const stk_proc *proc);
/* By pidfd: never hits a reused pid. Gone already is fine. */
void stk_proc_kill(stk_proc *proc, int sig);
/* Forgets the callback; kills and reaps in the background when still running, as long as the loop goes on. A
 * child that is to be waited for at shutdown is killed and freed in its `done`. */
void stk_proc_free(stk_proc *proc);
STK_DEFINE_FREEP(stk_proc, stk_proc_freep, stk_proc_free)

/* A short helper program run to its end with a deadline: collects stdout and stderr (the first `most` bytes
 * of each; the rest is read and dropped), gives it `input` (copied) as stdin. `done` gets the end, or
 * timed_out with the child and its process group killed. out and errout are borrowed for the length of
 * `done`. What the child left running is not waited for. The spec must not name descriptors 1 and 2, nor 0
 * when there is input. */
typedef void (*stk_run_done)(const stk_proc_end *end, bool timed_out, stk_str out, stk_str errout, void *arg);
int stk_proc_collect(stk_loop *loop, const stk_proc_spec *spec, stk_str input, size_t most, stk_span limit,
                     stk_run_done done, void *arg, stk_err *err) STK_MUST_USE;
/* Blocking form, for tools and set-up (never on a loop that serves): stdout is appended to out (NULL:
 * dropped), stderr dropped. -STK_E_TIMEOUT after a kill; -STK_E_LIMIT when it wrote more than fits in out. */
int stk_proc_run(const stk_proc_spec *spec, stk_span limit, stk_proc_end *ret_end, stk_buf *out,
                 stk_err *err) STK_MUST_USE;

#endif
