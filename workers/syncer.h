/* A thread that makes journals durable: fdatasync of a descriptor, then a callback on the loop, in order of
 * asking. */
#ifndef STK_WORKERS_SYNCER_H
#define STK_WORKERS_SYNCER_H

#include "proto/base/loop.h"

typedef struct stk_syncer stk_syncer;
/* errnum: 0 or why the file may not be durable. */
typedef void (*stk_sync_done)(int errnum, void *arg);

int stk_syncer_new(stk_loop *loop, stk_syncer **ret, stk_err *err) STK_MUST_USE;
/* Duplicates fd; done is called once on the loop, after the data written before this call is on disk. */
void stk_syncer_sync(stk_syncer *syncer, int fd, stk_sync_done done, void *arg);
/* Waits for the thread; callbacks not yet delivered are dropped. */
void stk_syncer_free(stk_syncer *syncer);

#endif
