/* Has the kernel killed something here for want of memory? Read from the memory cgroup where it is visible.
 */
#ifndef STK_RUNTIME_OOM_H
#define STK_RUNTIME_OOM_H

#include <stdint.h>

typedef struct stk_oom {
    int fd; /* memory.events (v2) or memory.oom_control (v1); -1 = not visible */
} stk_oom;

void stk_oom_init(stk_oom *oom);
void stk_oom_done(stk_oom *oom);
/* Kills so far; 0 when it cannot be known. It counts the whole cgroup: with commands side by side each of
 * them that saw it rise and died by SIGKILL is taken for a victim. */
int64_t stk_oom_kills(const stk_oom *oom);

/* The number behind "oom_kill " in such a file's text; 0 when there is none. */
int64_t stk_oom_parse(const char *text);

#endif
