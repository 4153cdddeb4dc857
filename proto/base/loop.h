/* One thread's event loop: libevent plus a thread-safe mailbox, so that a helper thread inside an adapter can
 * complete a call on the caller's loop. */
#ifndef STK_BASE_LOOP_H
#define STK_BASE_LOOP_H

#include "proto/base/err.h"
#include "proto/base/time.h"
#include <event2/event.h>

typedef struct stk_loop stk_loop;
typedef void (*stk_fn)(void *arg);

int stk_loop_new(stk_loop **ret, stk_err *err) STK_MUST_USE;
/* Call when nothing can post any more; tasks that were posted and not run are dropped. */
void stk_loop_free(stk_loop *loop);
STK_DEFINE_FREEP(stk_loop, stk_loop_freep, stk_loop_free)
struct event_base *stk_loop_base(stk_loop *loop);
/* Runs until stk_loop_stop. */
void stk_loop_run(stk_loop *loop);
/* From any thread. */
void stk_loop_stop(stk_loop *loop);
/* From any thread: run fn(arg) on the loop's thread, in order of posting. Wakes by eventfd, once per batch.
 */
void stk_loop_post(stk_loop *loop, stk_fn fn, void *arg);

/* An intrusive task: no allocation on posting. Must stay alive until it has run. */
typedef struct stk_task stk_task;
struct stk_task {
    stk_task *next;
    stk_fn fn;
    void *arg;
};
void stk_loop_post_task(stk_loop *loop, stk_task *task);

/* Timers: one-shot; re-armed by calling set again; the callback may free the timer. */
typedef struct stk_timer stk_timer;
stk_timer *stk_timer_new(stk_loop *loop, stk_fn fn, void *arg);
void stk_timer_set(stk_timer *timer, stk_span after);
void stk_timer_clear(stk_timer *timer);
void stk_timer_free(stk_timer *timer);
STK_DEFINE_FREEP(stk_timer, stk_timer_freep, stk_timer_free)
/* How late the loop's own 100 ms tick was in the last second, worst case: for /metrics and the watchdog. */
stk_span stk_loop_lag(stk_loop *loop);

#endif
