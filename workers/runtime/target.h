/* Which file a request means, and what is said when it can't be had. */
#ifndef STK_RUNTIME_TARGET_H
#define STK_RUNTIME_TARGET_H

#include "workers/runtime/routes.h"
#include <limits.h>

/* What stands behind `prefix` in the request's path, percent-decoded exactly once, relative to the root; ""
 * is the root. -STK_E_HTTP for a malformed escape (400), -STK_E_FORBIDDEN for a NUL byte or a path that
 * leaves the root (403), -STK_E_NOT_FOUND for one that is too long. */
int stk_target_of(const stk_exchange *ex, const char *prefix, char out[PATH_MAX], stk_err *err) STK_MUST_USE;
/* An absolute path is taken when the root's own path stands before it, textually. Nothing else is looked at:
 * whether it leaves by ".." or a link, the kernel says when it is opened. */
int stk_target_relative(const stk_runtime *rt, stk_str path, char out[PATH_MAX], stk_err *err) STK_MUST_USE;
/* The error for a failed call on a path, with the answer's status. */
int stk_target_errno(int errnum, stk_err *err);
/* The directory of a path, as an O_PATH descriptor, and its last name. make: missing directories are made.
 * -STK_E_FORBIDDEN for the root itself and for "..". */
int stk_target_parent(int root, const char *path, bool make, char ret_name[NAME_MAX + 1], int *ret_dir,
                      stk_err *err) STK_MUST_USE;
/* A regular file for reading, never waiting and never through a link. */
int stk_target_open(int root, const char *path, int *ret_fd, uint64_t *ret_size, stk_err *err) STK_MUST_USE;

#endif
