#include "proto/base/log.h"
#include "proto/state/outbox.h"
#include "workers/worker_impl.h"

/* The order: no new records, running runs to their end or the deadline, pool removed, lane given back. */

static void finished(stk_worker *worker)
{
    stk_fn drained = worker->drained;
    worker->drained = NULL;
    if (drained)
        drained(worker->drained_arg);
}

static void on_left(stk_op *base, void *arg)
{
    stk_worker *worker = arg;
    stk_op_leave *op = (stk_op_leave *)base;
    for (size_t i = 0; i < op->nlost; i++)
        stk_outbox_publish(worker->spec.bus, worker->spec.state, op->lost[i].outbox, NULL, NULL);
    finished(worker);
}

static void on_pool_empty(void *arg)
{
    stk_worker *worker = arg;
    if (!worker->joined) {
        finished(worker);
        return;
    }
    stk_timer_clear(worker->heartbeat); /* what was sent is answered before LEAVE is */
    stk_op_leave *op = stk_op_new(STK_OP_LEAVE, on_left, worker);
    memcpy(op->in.worker, worker->ctx.worker, sizeof(op->in.worker));
    memcpy(op->in.incarnation, worker->ctx.incarnation, sizeof(op->in.incarnation));
    op->in.now = stk_wall_now();
    stk_state_call(worker->spec.state, op);
}

static void on_idle(void *arg)
{
    stk_worker *worker = arg;
    stk_timer_clear(worker->drain_limit);
    stk_pool_drain(worker->pool, on_pool_empty, worker);
}

static void abandon(stk_job *job, void *arg)
{
    stk_job_abandon(job, "the worker is being stopped");
}

static void on_limit(void *arg)
{
    stk_worker *worker = arg;
    if (!worker->lane && !stk_worker_settled(worker)) {
        stk_log_warn(NULL,
                     "the drain deadline has passed before the start was over: the next start cleans up");
        finished(worker);
        return;
    }
    stk_log_warn(NULL, "the drain deadline has passed: what still runs is given up");
    if (worker->lane)
        stk_lane_each(worker->lane, abandon, NULL);
}

void stk_worker_drain_on(stk_worker *worker)
{
    if (worker->drain_begun)
        return;
    worker->drain_begun = true;
    if (!worker->lane) {
        stk_pool_drain(worker->pool, on_pool_empty, worker);
        return;
    }
    stk_lane_pause(worker->lane);
    stk_lane_when_idle(worker->lane, on_idle, worker);
}

void stk_worker_drain(stk_worker *worker, stk_span deadline, stk_fn done, void *arg)
{
    worker->drained = done;
    worker->drained_arg = arg;
    if (worker->draining && worker->drain_limit) {
        stk_timer_set(worker->drain_limit, deadline);
        return;
    }
    worker->draining = true;
    worker->drain_limit = stk_timer_new(worker->spec.loop, on_limit, worker);
    stk_timer_set(worker->drain_limit, deadline);
    if (stk_worker_settled(worker))
        stk_worker_drain_on(worker);
}
