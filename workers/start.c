#include "proto/base/fail.h"
#include "proto/base/fd.h"
#include "proto/base/log.h"
#include "proto/state/outbox.h"
#include "workers/launch_file.h"
#include "workers/rows.h"
#include "workers/worker_impl.h"
#include <stdio.h>

#define PROBE_LIMIT stk_sec(20)
#define JOIN_AGAIN  stk_sec(1)

static void probe_next(stk_worker *worker);

/* --- what an earlier life left
 * ---------------------------------------------------------------------------------- */

static void on_emitted(void *arg)
{
    stk_worker *worker = arg;
    if (--worker->emitting)
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
    worker->emitting++;
    stk_launch_file_emit(&worker->ctx, journal, sandbox, on_emitted, worker);
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

/* Journals are read when no proxy is left that could write on. */
static void on_reconciled(const stk_err *err, void *arg)
{
    stk_worker *worker = arg;
    if (err)
        stk_log_err(STK_LOG_ERROR, NULL, err, "an earlier life left something behind");
    if (--worker->reconciling)
        return;
    worker->emitting = 1;
    stk_launch_file_each(&worker->ctx, emit_one, worker);
    on_emitted(worker);
}

static void reconcile(stk_worker *worker)
{
    worker->reconciling = worker->ctx.nbackends;
    for (size_t i = 0; i < worker->ctx.nbackends; i++) {
        stk_backend *be = worker->ctx.backends[i].be;
        be->ops->reconcile(be, on_journal, on_reconciled, worker);
    }
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

/* Runs of an earlier life that state knows as started. Their rows were emitted from the launch files just
 * now; this is for a file that was lost with the machine: a repeat is the same row. */
static void settle(stk_worker *worker, const stk_lost_run *lost)
{
    stk_row_subject subject = {.actor = "worker"};
    stk_audit_row row;
    memcpy(subject.tenant, lost->tenant, sizeof(subject.tenant));
    memcpy(subject.agent, lost->agent, sizeof(subject.agent));
    memcpy(subject.run, lost->run, sizeof(subject.run));
    memcpy(subject.assignment, lost->assignment, sizeof(subject.assignment));
    memcpy(subject.worker, lost->worker, sizeof(subject.worker));
    memcpy(subject.sandbox, lost->sandbox, sizeof(subject.sandbox));
    stk_outbox_publish(worker->spec.bus, worker->spec.state, lost->outbox, NULL, NULL);
    if (!lost->started)
        return;
    stk_row_make(&subject, STK_AUDIT_TEARDOWN, 0, STK_STR("{\"reason\":\"worker_lost\"}"), &row);
    stk_row_publish(&worker->ctx, &row, NULL, NULL);
    stk_audit_row_done(&row);
}

static void joined(stk_worker *worker, const stk_op_join *op)
{
    stk_err err;
    worker->ctx.lane = op->lane;
    worker->ctx.lease_until = stk_mono_add(worker->beat_sent, worker->spec.lease);
    for (size_t i = 0; i < op->nlost; i++)
        settle(worker, &op->lost[i]);
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
    if (worker->draining)
        stk_worker_drain_on(worker);
    else if (!worker->joined)
        stk_timer_set(worker->heartbeat, JOIN_AGAIN);
    else
        stk_timer_set(worker->heartbeat, worker->spec.heartbeat);
}

bool stk_worker_settled(const stk_worker *worker)
{
    return worker->probed == worker->ctx.nbackends && worker->recovered && !worker->joining;
}

void stk_worker_maybe_join(stk_worker *worker)
{
    if (!stk_worker_settled(worker))
        return;
    if (worker->draining)
        stk_worker_drain_on(worker);
    if (!stk_view_ready(worker->ctx.view) || worker->joined || worker->draining)
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
