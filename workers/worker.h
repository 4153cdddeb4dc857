/* The worker: takes one lane of stk.assignments, keeps warm pools, runs each assignment in a sandbox and
 * proves what happened.
 *
 * Order for a run (architecture, "A run's life"): take warm or create -> newest policy to its proxy -> launch
 * row acknowledged by the bus -> start (state) -> lease checked by the local clock -> execute -> result
 * durable on stk.events -> finish (state) -> destroy -> teardown row -> offset finished. If anything fails
 * after the launch row, the teardown row is still written. */
#ifndef STK_WORKERS_WORKER_H
#define STK_WORKERS_WORKER_H

#include "proto/base/crypto.h"
#include "proto/bus/bus.h"
#include "proto/state/state.h"
#include "workers/sandbox.h"

typedef struct stk_worker stk_worker;

typedef struct stk_worker_spec { /* borrowed until free */
    stk_loop *loop;
    stk_bus *bus;
    stk_state *state;
    const stk_keyring *ring;
    stk_backend_env env; /* worker id included */
    int64_t slots;       /* runs at once; 0 = 2 x processors */
    int32_t lanes;       /* partitions of stk.assignments */
    stk_span lease;      /* > 3 x heartbeat */
    stk_span heartbeat;
} stk_worker_spec;

typedef struct stk_worker_stats {
    int64_t slots, running, warm, creating;
    uint64_t runs, warm_hits, cold_starts, failures;
    bool ready; /* joined, reconciled, probed */
} stk_worker_stats;

/* Reads or creates the worker's id ("wrk-…") in state_dir/worker.id under a lock. */
int stk_worker_identity(const char *state_dir, char out[STK_WORKER_MAX], int *ret_lock_fd,
                        stk_err *err) STK_MUST_USE;

/* Probes, reconciles what an earlier life left (journals first), joins, and only then takes work. */
int stk_worker_new(const stk_worker_spec *spec, stk_worker **ret, stk_err *err) STK_MUST_USE;
stk_worker_stats stk_worker_stats_get(const stk_worker *worker);
void stk_worker_metrics(const stk_worker *worker, stk_buf *out);
/* Drain: no new work; running runs go on until `deadline`, then are requeued or lost; pooled sandboxes are
 * destroyed; leaves. `done` once. */
void stk_worker_drain(stk_worker *worker, stk_span deadline, stk_fn done, void *arg);
void stk_worker_free(stk_worker *worker);

#endif
