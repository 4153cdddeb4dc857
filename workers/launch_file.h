/* spool/<sandbox>.launch: the launch row of the run in that sandbox, written before the row is published.
 * After kill -9 the next start reads it: it says whose the proxy's journal is, and it lets the teardown row
 * be written. */
#ifndef STK_WORKERS_LAUNCH_FILE_H
#define STK_WORKERS_LAUNCH_FILE_H

#include "workers/rows.h"

int stk_launch_file_write(const stk_ctx *ctx, const stk_audit_row *launch, stk_err *err) STK_MUST_USE;
void stk_launch_file_remove(const stk_ctx *ctx, const char *sandbox);
/* Publishes what an earlier life did not: launch row (a repeat is dropped by the store), the rows of the
 * journal's records, teardown row; then removes both files. done once all is durable. */
void stk_launch_file_emit(stk_ctx *ctx, const char *journal, const char *sandbox, void (*done)(void *arg),
                          void *arg);
/* Every .launch file of the spool: fn(sandbox). */
void stk_launch_file_each(const stk_ctx *ctx, void (*fn)(const char *sandbox, void *arg), void *arg);

#endif
