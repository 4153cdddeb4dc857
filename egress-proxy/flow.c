#include "egress-proxy/flow.h"

#define WAKE_TOKENS 16384 /* smaller grants cost more than they move */

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    stk_flow *flow = arg;
    stk_flow_wait *wait;
    size_t n = 0;
    for (wait = TAILQ_FIRST(&flow->waiting); wait; wait = TAILQ_NEXT(wait, link))
        n++;
    /* Once each, in turn: who waits again goes to the end. A callback may end others, which leave the list
     * then. */
    while (n-- > 0 && (wait = TAILQ_FIRST(&flow->waiting))) {
        stk_flow_forget(flow, wait);
        wait->on_tokens(wait->arg);
    }
}

void stk_flow_init(stk_flow *flow, struct event_base *base)
{
    flow->base = base;
    flow->moved = flow->most = 0;
    stk_bucket_init(&flow->rate, 0, 0, stk_mono_now());
    TAILQ_INIT(&flow->waiting);
    evtimer_assign(&flow->timer, base, on_timer, flow);
    stk_pipes_init(&flow->pipes);
}

void stk_flow_done(stk_flow *flow)
{
    evtimer_del(&flow->timer);
    stk_pipes_done(&flow->pipes);
}

void stk_flow_limits(stk_flow *flow, int64_t most, int64_t bytes_per_second)
{
    flow->most = most;
    if (flow->rate.rate == bytes_per_second)
        return;
    int64_t burst = bytes_per_second / 4;
    stk_bucket_init(&flow->rate, bytes_per_second, burst < WAKE_TOKENS ? WAKE_TOKENS : burst, stk_mono_now());
}

int64_t stk_flow_take(stk_flow *flow, int64_t want, stk_flow_wait *wait)
{
    if (flow->most) {
        if (flow->moved >= flow->most)
            return -1;
        if (want > flow->most - flow->moved)
            want = flow->most - flow->moved;
    }
    if (flow->rate.rate == 0)
        return want;
    stk_mono now = stk_mono_now();
    int64_t got = stk_bucket_take(&flow->rate, want, now);
    if (got > 0 || wait->waiting)
        return got;
    wait->waiting = true;
    TAILQ_INSERT_TAIL(&flow->waiting, wait, link);
    if (!evtimer_pending(&flow->timer, NULL)) {
        int64_t n = want < WAKE_TOKENS ? want : WAKE_TOKENS;
        struct timeval tv = stk_span_timeval(stk_bucket_wait(&flow->rate, n, now));
        evtimer_add(&flow->timer, &tv);
    }
    return 0;
}

void stk_flow_moved(stk_flow *flow, int64_t took, int64_t used)
{
    flow->moved += used;
    if (flow->rate.rate && took > used)
        stk_bucket_return(&flow->rate, took - used);
}

void stk_flow_forget(stk_flow *flow, stk_flow_wait *wait)
{
    if (!wait->waiting)
        return;
    wait->waiting = false;
    TAILQ_REMOVE(&flow->waiting, wait, link);
}
