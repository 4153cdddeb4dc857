#include "proto/base/fail.h"
#include "proto/base/fd.h"
#include "proto/base/log.h"
#include "proto/state/outbox.h"
#include "workers/launch_file.h"
#include "workers/worker_impl.h"
#include <stdio.h>

#define PROBE_LIMIT stk_sec(20)
#define JOIN_AGAIN  stk_sec(1)

static void probe_next(stk_worker *worker);

/* --- what an earlier life left
 * ---------------------------------------------------------------------------------- */

static void one_less(void *arg)
{
    stk_worker *worker = arg;
    if (--worker->starting)
        return;
    worker->recovered = true;
    stk_worker_maybe_join(worker);
}

static void emit_one(const char *sandbox, void *arg)
{
    stk_worker *worker = arg;
    char journal[256];
    if (stk_path(journal, sizeof(journal), NULL, "%s/%s.jsonl", worker->ctx.spool, sandbox) < 0)
        return;
    worker->starting++;
    stk_launch_file_emit(&worker->ctx, journal, sandbox, one_less, worker);
}

/* A journal without a launch file served nobody. One with it is reported with the launch file. */
static void on_journal(const char *path, const char *sandbox, void *arg)
{
    stk_worker *worker = arg;
    char launch[256];
    if (stk_path(launch, sizeof(launch), NULL, "%s/%s.launch", worker->ctx.spool, sandbox) == 0 &&
        access(launch, F_OK) < 0)
        unlink(path);
}

static void on_reconciled(const stk_err *err, void *arg)
{
    stk_worker *worker = arg;
    if (err)
        stk_log_err(STK_LOG_ERROR, NULL, err, "an earlier life left something behind");
    one_less(worker);
}

static void reconcile(stk_worker *worker)
{
    worker->starting = 1;
    for (size_t i = 0; i < worker->ctx.nbackends; i++) {
        stk_backend *be = worker->ctx.backends[i].be;
        worker->starting++;
        be->ops->reconcile(be, on_journal, on_reconciled, worker);
    }
    stk_launch_file_each(&worker->ctx, emit_one, worker);
    one_less(worker);
}

/* --- probes
 * ----------------------------------------------------------------------------------------------------------
 */

static void on_probe(const stk_probe *probe, void *arg)
{
    stk_worker *worker = arg;
    stk_worker_backend *one = &worker->ctx.backends[worker->probed++];
    one->probe = *probe;
    if (probe->ok)
        stk_log_info(NULL, "backend %s: %s (%s), probed in %lld ms", one->be->ops->name, probe->runtime,
                     stk_strength_text(probe->strength), (long long)stk_span_ms(probe->took));
    else
        stk_log_warn(NULL, "backend %s is lacking: %s; to get it: %s", one->be->ops->name, probe->reason,
                     probe->remedy);
    probe_next(worker);
}

static void probe_next(stk_worker *worker)
{
    if (worker->probed == worker->ctx.nbackends) {
        stk_worker_maybe_join(worker);
        return;
    }
    stk_backend *be = worker->ctx.backends[worker->probed].be;
    be->ops->probe(be, PROBE_LIMIT, on_probe, worker);
}

/* --- join
 * ---------------------------------------------------------------------------------------------------------------
 */

static void joined(stk_worker *worker, const stk_op_join *op)
{
    stk_err err;
    worker->ctx.lane = op->lane;
    worker->ctx.lease_until = stk_mono_add(worker->beat_sent, worker->spec.lease);
    for (size_t i = 0; i < op->nlost; i++)
        stk_outbox_publish(worker->spec.bus, worker->spec.state, op->lost[i].outbox, NULL, NULL);
    if (stk_lane_new(&worker->ctx, worker->pool, op->lane_offset, &worker->lane, &err) < 0) {
        stk_log_err(STK_LOG_ERROR, NULL, &err, "no lane");
        return;
    }
    worker->joined = true;
    stk_log_info(NULL, "joined as %s, lane %d, %lld slots%s", worker->ctx.worker, op->lane,
                 (long long)worker->spec.slots, op->nlost ? ", runs of an earlier life were settled" : "");
    stk_pool_tend(worker->pool);
}

static void on_join(stk_op *base, void *arg)
{
    stk_worker *worker = arg;
    stk_op_join *op = (stk_op_join *)base;
    worker->joining = false;
    if (base->rc < 0)
        stk_log_err(STK_LOG_WARN, NULL, &base->err, "joining failed; trying again");
    else if (op->outcome == STK_JOIN_NO_LANE)
        stk_log_warn(NULL,
                     "no free lane among %d: this worker is not ready; add partitions to stk.assignments",
                     worker->spec.lanes);
    else
        joined(worker, op);
    if (!worker->joined)
        stk_timer_set(worker->heartbeat, JOIN_AGAIN);
    else
        stk_timer_set(worker->heartbeat, worker->spec.heartbeat);
}

void stk_worker_maybe_join(stk_worker *worker)
{
    bool probed = worker->probed == worker->ctx.nbackends;
    if (!probed || !worker->recovered || !stk_view_ready(worker->ctx.view) || worker->joining ||
        worker->joined || worker->draining)
        return;
    worker->joining = true;
    worker->beat_sent = stk_mono_now();
    stk_op_join *op = stk_op_new(STK_OP_JOIN, on_join, worker);
    memcpy(op->in.worker, worker->ctx.worker, sizeof(op->in.worker));
    memcpy(op->in.incarnation, worker->ctx.incarnation, sizeof(op->in.incarnation));
    gethostname(op->in.host, sizeof(op->in.host) - 1);
    op->in.slots = worker->spec.slots;
    op->in.lanes = worker->spec.lanes;
    op->in.lease = worker->spec.lease;
    op->in.now = stk_wall_now();
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(16384);
    stk_ctx_backends_write(&worker->ctx, &text);
    stk_bytes_set(&op->in.backends, stk_buf_view(&text));
    stk_state_call(worker->spec.state, op);
}

void stk_worker_rejoin(stk_worker *worker)
{
    stk_lane_free(STK_TAKE(worker->lane));
    worker->joined = false;
    worker->ended = false;
    stk_id_new("inc", stk_wall_now(), worker->ctx.incarnation);
    stk_worker_maybe_join(worker);
}

void stk_worker_start(stk_worker *worker)
{
    reconcile(worker);
    probe_next(worker);
}
