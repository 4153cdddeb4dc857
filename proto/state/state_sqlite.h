/* The embedded state: one SQLite file, one writer thread, one immediate transaction per operation (grouped
 * into one commit when they queue up), WAL, synchronous=NORMAL: it is an index. It remembers the boot id:
 * another boot counts as "state was lost" for everything that a crash of the machine could have taken; leases
 * keep CLOCK_BOOTTIME. */
#ifndef STK_STATE_STATE_SQLITE_H
#define STK_STATE_STATE_SQLITE_H

#include "proto/state/state.h"

typedef struct stk_state_file stk_state_file;
int stk_state_file_open(const char *path, stk_state_file **ret, stk_err *err) STK_MUST_USE;
/* As in another boot (tests). */
int stk_state_file_open_boot(const char *path, const char *boot_id, stk_state_file **ret,
                             stk_err *err) STK_MUST_USE;
/* The clock of leases and ages (tests); called on the writer's thread. Before the first operation. */
void stk_state_file_set_clock(stk_state_file *file, stk_mono (*clock)(void *arg), void *arg);
/* All handles must be closed. */
void stk_state_file_close(stk_state_file *file);
/* A handle of one loop; all handles of the file share the writer thread and see each other's notifications.
 */
int stk_state_sqlite_new(stk_state_file *file, stk_loop *loop, stk_state **ret, stk_err *err) STK_MUST_USE;

#endif
