/* What proc.c tells stockade-launch on its fd 3: records of one key byte, a value and a NUL. Plain libc, no
 * allocation in decoding; both ends are of the same build ("v1" comes first and must match). */
#ifndef STK_BASE_LAUNCH_SPEC_H
#define STK_BASE_LAUNCH_SPEC_H

#include "proto/base/buf.h"

enum {
    STK_LAUNCH_ARGS = 4096,
    STK_LAUNCH_ENV = 1024,
    STK_LAUNCH_FDS = 8,
    STK_LAUNCH_CGROUPS = 16,
    STK_LAUNCH_MOST = 2 * 1024 * 1024, /* bytes of a spec */
    STK_LAUNCH_SPEC_FD = 3,
    STK_LAUNCH_ERROR_FD = 4,
    STK_LAUNCH_LOW = 16 /* descriptors of the child are below this, those that wait in the launcher are not */
};

/* Arrays end with NULL. Strings belong to whoever filled it in (the caller, or the bytes that were decoded).
 */
typedef struct stk_launch {
    const char *path;
    const char *cwd;
    const char *umount; /* or NULL */
    const char *args[STK_LAUNCH_ARGS + 1];
    const char *env[STK_LAUNCH_ENV + 1];
    const char *cgroups[STK_LAUNCH_CGROUPS + 1];
    struct {
        int child; /* number in the program */
        int at;    /* number in the launcher */
    } fds[STK_LAUNCH_FDS];
    size_t n_args, n_env, n_cgroups, n_fds;
    int unshare_flags;
    int64_t nofile;
    int64_t parent; /* die with this process; 0 = don't */
} stk_launch;

/* Appends the spec. -STK_E_LIMIT. */
int stk_launch_encode(stk_buf *out, const stk_launch *launch);
/* Fills *ret (zeroed by the caller) with pointers into p. 0 or -STK_E_PROTOCOL. */
int stk_launch_decode(const char *p, size_t n, stk_launch *ret);

/* What the launcher writes to its error descriptor: STK_LAUNCH_READY just before execve; then, only when
 * something failed (also instead of it), one report. After an exec the descriptor is closed. */
#define STK_LAUNCH_READY 'x'
typedef struct stk_launch_report {
    int32_t errnum;
    char step[188]; /* "join cgroup /sys/…", NUL-terminated */
} stk_launch_report;

#endif
