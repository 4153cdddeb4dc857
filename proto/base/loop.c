#include "proto/base/loop.h"
#include <errno.h>
#include <event2/event_struct.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

enum { TICKS = 10 };
static const int64_t TICK_NS = 100 * 1000000;

struct stk_loop {
    struct event_base *base;
    int wake;
    struct event *wake_event;
    struct event *tick_event;
    _Atomic(stk_task *) posted; /* newest first */
    atomic_bool stop;
    _Atomic(int64_t) due; /* when the next tick should run */
    _Atomic(int64_t) late[TICKS];
    unsigned tick;
};

struct stk_timer {
    struct event event;
    stk_fn fn;
    void *arg;
};

typedef struct posting {
    stk_task task;
    stk_fn fn;
    void *arg;
} posting;

static void run_posting(void *arg)
{
    posting *p = arg;
    stk_fn fn = p->fn;
    void *fn_arg = p->arg;
    free(p);
    fn(fn_arg);
}

static stk_task *take_in_order(stk_loop *loop)
{
    stk_task *newest = atomic_exchange_explicit(&loop->posted, NULL, memory_order_acquire);
    stk_task *first = NULL;
    while (newest) {
        stk_task *next = newest->next;
        newest->next = first;
        first = newest;
        newest = next;
    }
    return first;
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    stk_loop *loop = arg;
    uint64_t count;
    ssize_t ignored = read(fd, &count, sizeof(count));
    (void)ignored;
    for (stk_task *t = take_in_order(loop); t;) {
        stk_task *next = t->next;
        t->fn(t->arg);
        t = next;
    }
    if (atomic_exchange(&loop->stop, false))
        event_base_loopbreak(loop->base);
}

static void arm_tick(stk_loop *loop)
{
    struct timeval tv = stk_span_timeval(stk_ns(TICK_NS));
    atomic_store(&loop->due, stk_mono_now().ns + TICK_NS);
    event_add(loop->tick_event, &tv);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    stk_loop *loop = arg;
    int64_t late = stk_mono_now().ns - atomic_load(&loop->due);
    atomic_store(&loop->late[loop->tick++ % TICKS], late > 0 ? late : 0);
    arm_tick(loop);
}

int stk_loop_new(stk_loop **ret, stk_err *err)
{
    stk_loop *loop STK_AUTO(stk_loop_freep) = stk_xcalloc(1, sizeof(*loop));
    loop->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->wake < 0)
        return stk_err_errno(err, errno, "make an eventfd");
    loop->base = event_base_new();
    if (!loop->base)
        return stk_err_set(err, STK_E_SYSTEM, "make an event loop");
    loop->wake_event = event_new(loop->base, loop->wake, EV_READ | EV_PERSIST, on_wake, loop);
    loop->tick_event = event_new(loop->base, -1, 0, on_tick, loop);
    if (!loop->wake_event || !loop->tick_event || event_add(loop->wake_event, NULL) < 0)
        return stk_err_set(err, STK_E_SYSTEM, "watch the loop's mailbox");
    *ret = STK_TAKE(loop);
    return 0;
}

void stk_loop_free(stk_loop *loop)
{
    if (!loop)
        return;
    for (stk_task *t = take_in_order(loop); t;) {
        stk_task *next = t->next;
        if (t->fn == run_posting)
            free(t->arg);
        t = next;
    }
    if (loop->wake_event)
        event_free(loop->wake_event);
    if (loop->tick_event)
        event_free(loop->tick_event);
    if (loop->base)
        event_base_free(loop->base);
    stk_closep(&loop->wake);
    free(loop);
}

struct event_base *stk_loop_base(stk_loop *loop)
{
    return loop->base;
}

void stk_loop_run(stk_loop *loop)
{
    arm_tick(loop);
    event_base_loop(loop->base, EVLOOP_NO_EXIT_ON_EMPTY);
    event_del(loop->tick_event);
    atomic_store(&loop->due, 0);
}

static void wake(stk_loop *loop)
{
    const uint64_t one = 1;
    ssize_t ignored = write(loop->wake, &one, sizeof(one));
    (void)ignored;
}

void stk_loop_stop(stk_loop *loop)
{
    atomic_store(&loop->stop, true);
    wake(loop);
}

void stk_loop_post_task(stk_loop *loop, stk_task *task)
{
    stk_task *head = atomic_load_explicit(&loop->posted, memory_order_relaxed);
    do
        task->next = head;
    while (!atomic_compare_exchange_weak_explicit(&loop->posted, &head, task, memory_order_release,
                                                  memory_order_relaxed));
    if (!head)
        wake(loop);
}

void stk_loop_post(stk_loop *loop, stk_fn fn, void *arg)
{
    posting *p = stk_xcalloc(1, sizeof(*p));
    *p = (posting){.task = {.fn = run_posting, .arg = p}, .fn = fn, .arg = arg};
    stk_loop_post_task(loop, &p->task);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    stk_timer *timer = arg;
    timer->fn(timer->arg);
}

stk_timer *stk_timer_new(stk_loop *loop, stk_fn fn, void *arg)
{
    stk_timer *timer = stk_xcalloc(1, sizeof(*timer));
    timer->fn = fn;
    timer->arg = arg;
    event_assign(&timer->event, loop->base, -1, 0, on_timer, timer);
    return timer;
}

void stk_timer_set(stk_timer *timer, stk_span after)
{
    if (after.ns == STK_SPAN_NEVER.ns) {
        event_del(&timer->event);
        return;
    }
    struct timeval tv = stk_span_timeval(after);
    event_add(&timer->event, &tv);
}

void stk_timer_clear(stk_timer *timer)
{
    event_del(&timer->event);
}

void stk_timer_free(stk_timer *timer)
{
    if (!timer)
        return;
    event_del(&timer->event);
    free(timer);
}

stk_span stk_loop_lag(stk_loop *loop)
{
    int64_t due = atomic_load(&loop->due);
    int64_t worst = due > 0 ? stk_mono_now().ns - due : 0;
    for (int i = 0; i < TICKS; i++) {
        int64_t late = atomic_load(&loop->late[i]);
        if (late > worst)
            worst = late;
    }
    return stk_ns(worst > 0 ? worst : 0);
}
