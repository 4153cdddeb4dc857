/* Which processes there are below us, from /proc. Nothing is kept between calls. */
#ifndef STK_RUNTIME_PROCS_H
#define STK_RUNTIME_PROCS_H

#include "proto/base/base.h"
#include <sys/types.h>

typedef bool (*stk_spare)(pid_t child, void *arg);

/* SIGKILLs our own children but those that `spare` names. Returns how many were there, zombies included; none
 * can be missed as long as nobody reaps meanwhile. -1 when the kernel does not list children. */
int stk_procs_kill_children(stk_spare spare, void *arg);
/* SIGKILLs all descendants but spared children and what is below them. A process that forks during the walk
 * may be missed: walk again. Returns how many were seen, -1 without /proc. */
int stk_procs_kill_below(stk_spare spare, void *arg);

#endif
