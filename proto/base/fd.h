/* Small helpers around descriptors and files. All set CLOEXEC. */
#ifndef STK_BASE_FD_H
#define STK_BASE_FD_H

#include "proto/base/buf.h"
#include <sys/types.h>

/* Writes all of it (EINTR and short writes handled; blocking descriptors). */
int stk_fd_write_all(int fd, const void *p, size_t n, stk_err *err) STK_MUST_USE;
int stk_fd_nonblock(int fd, stk_err *err) STK_MUST_USE;
/* Appends a whole regular file, with out of at most out->cap bytes; "-STK_E_LIMIT" over it, -STK_E_NOT_FOUND
 * when missing. */
int stk_file_read(const char *path, stk_buf *out, stk_err *err) STK_MUST_USE;
int stk_file_read_at(int dirfd, const char *name, stk_buf *out, stk_err *err) STK_MUST_USE;
/* Writes by temporary file, fsync, rename, fsync of the directory. */
int stk_file_replace(const char *path, mode_t mode, stk_str content, stk_err *err) STK_MUST_USE;
/* fsync of the directory that holds path. */
int stk_sync_parent(const char *path, stk_err *err) STK_MUST_USE;
/* Plain write of an existing kernel file (cgroup, proc): one write(2). */
int stk_file_put(int dirfd, const char *name, stk_str content, stk_err *err) STK_MUST_USE;
/* mkdir -p of all components with mode; existing directories are fine. */
int stk_mkdirs(const char *path, mode_t mode, stk_err *err) STK_MUST_USE;
/* Removes a tree below dirfd/name without following links; missing is fine. Safe on trees of any depth made
 * by others (no recursion, a fixed number of descriptors), as long as nobody adds to it meanwhile. */
int stk_rmtree(int dirfd, const char *name, stk_err *err) STK_MUST_USE;
/* snprintf for paths that says when it was cut: 0 or -STK_E_LIMIT. */
int stk_path(char *out, size_t size, stk_err *err, const char *fmt, ...) STK_PRINTF(4, 5) STK_MUST_USE;

/* Lock file: opens (creating 0600) and takes an exclusive flock; writes our pid into it. Waits only for a
 * holder that is dead, 2 s at most. -STK_E_CONFLICT names the pid that holds it. The descriptor holds the
 * lock. */
int stk_lock_file(const char *path, int *ret_fd, stk_err *err) STK_MUST_USE;

/* Unix or TCP listeners and dialling. addr: "unix:/path", "127.0.0.1:8080", "[::1]:8080". Numeric only.
 * A stale Unix socket file is replaced. Nonblocking. -STK_E_CONFIG for a malformed address, -STK_E_CONFLICT
 * for a port in use. */
int stk_listen(const char *addr, int backlog, int *ret_fd, stk_err *err) STK_MUST_USE;
/* Starts a nonblocking connect; EINPROGRESS is success. -STK_E_UNAVAILABLE when refused at once. */
int stk_dial(const char *addr, int *ret_fd, stk_err *err) STK_MUST_USE;
/* Text of the bound address of a listener, in the form above; out holds 128. */
void stk_listen_text(int fd, char out[128]);
bool stk_addr_is_loopback(const char *addr); /* Unix sockets count as loopback */

#endif
