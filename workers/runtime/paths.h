/* Opening below the root without ever leaving it, whatever links the sandboxed code made. */
#ifndef STK_RUNTIME_PATHS_H
#define STK_RUNTIME_PATHS_H

#include "proto/base/err.h"

/* openat2 with RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS and O_CLOEXEC; where the kernel has none (ENOSYS, or
 * EPERM from old seccomp lists), a walk by components that follows no link at all. "" and "." are the root.
 * Descriptor, or -1 with errno (EXDEV: it leaves the root). */
int stk_open_beneath(int root, const char *path, int flags, unsigned mode);

#endif
