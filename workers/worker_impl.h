/* The inside of a worker: worker.c (life), start.c (probe, reconcile, join), drain.c (the end). */
#ifndef STK_WORKERS_WORKER_IMPL_H
#define STK_WORKERS_WORKER_IMPL_H

#include "workers/ctx.h"
#include "workers/lane.h"
#include "workers/pool.h"
#include "workers/worker.h"

struct stk_worker {
    stk_worker_spec spec;
    stk_ctx ctx;
    stk_pool *pool;
    stk_lane *lane;
    stk_timer *heartbeat;
    size_t reconciling; /* backends that remove what an earlier life left */
    size_t emitting;    /* … then sandboxes whose rows are being published */
    size_t probed;      /* backends done */
    bool recovered;     /* what an earlier life left is gone and reported */
    bool joining, joined, ended, draining, drain_begun;
    stk_mono beat_sent;
    stk_timer *drain_limit;
    stk_fn drained;
    void *drained_arg;
    uint64_t heartbeats_failed;
};

/* start.c: probe all -> reconcile all -> emit what was left -> configuration read -> join. Goes on by itself.
 */
void stk_worker_start(stk_worker *worker);
/* The configuration was read for the first time, or something else that the start waited for happened. */
void stk_worker_maybe_join(stk_worker *worker);
/* No probe, removal or join is under way. */
bool stk_worker_settled(const stk_worker *worker);
/* drain.c: goes on with a drain that waited for the start to settle. */
void stk_worker_drain_on(stk_worker *worker);
/* A fresh incarnation after the old one was ended by others. */
void stk_worker_rejoin(stk_worker *worker);

#endif
