#include "workers/worker.h"
#include "proto/base/fd.h"
#include "proto/base/log.h"
#include "workers/worker_impl.h"
#include <stdio.h>
#include <sys/sysinfo.h>

/* --- identity
 * ------------------------------------------------------------------------------------------------------ */

int stk_worker_identity(const char *state_dir, char out[STK_WORKER_MAX], int *ret_lock_fd, stk_err *err)
{
    char path[512];
    int lock = -1;
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(64);
    int rc = stk_path(path, sizeof(path), err, "%s/worker.lock", state_dir);
    if (rc == 0)
        rc = stk_lock_file(path, &lock, err);
    if (rc < 0)
        return rc;
    rc = stk_path(path, sizeof(path), err, "%s/worker.id", state_dir);
    if (rc == 0)
        rc = stk_file_read(path, &text, err);
    if (rc == -STK_E_NOT_FOUND) {
        stk_id_new("wrk", stk_wall_now(), out);
        rc = stk_file_replace(path, 0600, stk_str_of(out), err);
    } else if (rc == 0 && (!stk_id_valid("wrk", stk_buf_view(&text)) ||
                           !stk_str_copy(stk_buf_view(&text), out, STK_WORKER_MAX))) {
        rc = stk_err_set(err, STK_E_CORRUPT, "%s holds no worker id: remove it to get a new one", path);
    }
    if (rc < 0)
        close(lock);
    else
        *ret_lock_fd = lock;
    return rc;
}

/* --- what others ask
 * ------------------------------------------------------------------------------------------------ */

stk_worker_backend *stk_ctx_backend(stk_ctx *ctx, const char *name)
{
    for (size_t i = 0; i < ctx->nbackends; i++)
        if (strcmp(ctx->backends[i].be->ops->name, name) == 0)
            return &ctx->backends[i];
    return NULL;
}

void stk_ctx_backends_write(const stk_ctx *ctx, stk_buf *out)
{
    stk_jw w;
    stk_jw_init(&w, out);
    stk_jw_array(&w);
    for (size_t i = 0; i < ctx->nbackends; i++) {
        const stk_worker_backend *one = &ctx->backends[i];
        stk_jw_object(&w);
        stk_jw_ktext(&w, "name", one->be->ops->name);
        stk_jw_kbool(&w, "ok", one->probe.ok);
        stk_jw_ktext(&w, "isolation", stk_strength_text(one->probe.strength));
        stk_jw_ktext(&w, "runtime", one->probe.runtime);
        stk_jw_ktext(&w, "reason", one->probe.reason);
        stk_jw_ktext(&w, "remedy", one->probe.remedy);
        stk_jw_ktext(&w, "notes", one->probe.notes);
        stk_jw_close(&w, '}');
    }
    stk_jw_close(&w, ']');
}

stk_worker_stats stk_worker_stats_get(const stk_worker *worker)
{
    stk_pool_counts pool = stk_pool_counts_get(worker->pool);
    stk_worker_stats stats = {.slots = worker->spec.slots,
                              .warm = pool.ready,
                              .creating = pool.creating,
                              .failures = pool.failures,
                              .ready = worker->joined && !worker->draining};
    if (worker->lane) {
        stk_lane_counts lane = stk_lane_counts_get(worker->lane);
        stats.running = lane.running;
        stats.runs = lane.runs;
        stats.warm_hits = lane.warm;
        stats.cold_starts = lane.runs - lane.warm;
    }
    return stats;
}

void stk_worker_metrics(const stk_worker *worker, stk_buf *out)
{
    stk_worker_stats s = stk_worker_stats_get(worker);
    stk_buf_fmt(
        out,
        "# HELP stockade_worker_slots Runs this worker takes at once.\n# TYPE stockade_worker_slots gauge\n"
        "stockade_worker_slots %lld\n"
        "# HELP stockade_worker_running Assignments in progress.\n# TYPE stockade_worker_running gauge\n"
        "stockade_worker_running %lld\n"
        "# HELP stockade_pool_warm Warm sandboxes that wait for a run.\n# TYPE stockade_pool_warm gauge\n"
        "stockade_pool_warm %lld\n"
        "# HELP stockade_runs_total Assignments taken, by start.\n# TYPE stockade_runs_total counter\n"
        "stockade_runs_total{start=\"warm\"} %llu\nstockade_runs_total{start=\"cold\"} %llu\n"
        "# HELP stockade_pool_failures_total Sandboxes a pool could not make.\n# TYPE "
        "stockade_pool_failures_total counter\n"
        "stockade_pool_failures_total %llu\n"
        "# HELP stockade_loop_lag_seconds How late the loop's tick was in the last second.\n"
        "# TYPE stockade_loop_lag_seconds gauge\nstockade_loop_lag_seconds{loop=\"worker\"} %.6f\n",
        (long long)s.slots, (long long)s.running, (long long)s.warm, (unsigned long long)s.warm_hits,
        (unsigned long long)s.cold_starts, (unsigned long long)s.failures,
        stk_span_sec(stk_loop_lag(worker->spec.loop)));
}

/* --- heartbeat
 * -------------------------------------------------------------------------------------------------------- */

static void abandon(stk_job *job, void *arg)
{
    stk_job_abandon(job, arg);
}

static void on_idle_after_end(void *arg)
{
    stk_worker_rejoin(arg);
}

/* Others ended us: nothing we hold counts any more. */
static void ended(stk_worker *worker)
{
    if (worker->ended || worker->draining)
        return;
    worker->ended = true;
    worker->ctx.lease_until = (stk_mono){0};
    stk_log_warn(NULL, "the lease is lost: everything here is ended, then this worker joins anew");
    stk_pool_renounce(worker->pool);
    stk_lane_pause(worker->lane);
    stk_lane_each(worker->lane, abandon, (void *)(uintptr_t) "the worker lost its lease");
    stk_lane_when_idle(worker->lane, on_idle_after_end, worker);
}

static void on_heartbeat(stk_op *base, void *arg)
{
    stk_worker *worker = arg;
    stk_op_heartbeat *op = (stk_op_heartbeat *)base;
    if (base->rc < 0) {
        worker->heartbeats_failed++;
        return;
    }
    if (op->outcome == STK_HEARTBEAT_ENDED) {
        ended(worker);
        return;
    }
    worker->ctx.lease_until = stk_mono_add(worker->beat_sent, worker->spec.lease);
    for (size_t i = 0; worker->lane && i < op->cancels.n; i++) {
        stk_job *job = stk_lane_job(worker->lane, op->cancels.v[i].p);
        if (job)
            stk_job_cancel(job);
    }
}

static void beat(stk_worker *worker)
{
    stk_buf stats STK_AUTO(stk_buf_done) = STK_BUF(1024);
    stk_worker_stats s = stk_worker_stats_get(worker);
    stk_buf_fmt(&stats, "{\"running\":%lld,\"warm\":%lld,\"creating\":%lld,\"runs\":%llu,\"warm_hits\":%llu}",
                (long long)s.running, (long long)s.warm, (long long)s.creating, (unsigned long long)s.runs,
                (unsigned long long)s.warm_hits);
    worker->beat_sent = stk_mono_now();
    stk_op_heartbeat *op = stk_op_new(STK_OP_HEARTBEAT, on_heartbeat, worker);
    memcpy(op->in.worker, worker->ctx.worker, sizeof(op->in.worker));
    memcpy(op->in.incarnation, worker->ctx.incarnation, sizeof(op->in.incarnation));
    op->in.lease = worker->spec.lease;
    op->in.draining = worker->draining;
    op->in.slots = worker->spec.slots;
    stk_bytes_set(&op->in.stats, stk_buf_view(&stats));
    stk_state_call(worker->spec.state, op);
}

static void on_tick(void *arg)
{
    stk_worker *worker = arg;
    if (!worker->joined) {
        stk_worker_maybe_join(worker);
        return;
    }
    beat(worker);
    if (!stk_mono_before(stk_mono_now(), worker->ctx.lease_until))
        ended(worker);
    stk_pool_tend(worker->pool);
    stk_timer_set(worker->heartbeat, worker->spec.heartbeat);
}

/* --- configuration
 * ------------------------------------------------------------------------------------------------------ */

static void policy_changed(stk_job *job, void *arg)
{
    stk_job_policy_changed(job);
}

static void on_config(const stk_tenant_view *tenant, void *arg)
{
    stk_worker *worker = arg;
    if (!worker->joined) {
        stk_worker_maybe_join(worker);
        return;
    }
    stk_lane_each(worker->lane, policy_changed, NULL);
    stk_pool_tend(worker->pool);
}

/* --- life
 * ----------------------------------------------------------------------------------------------------------------
 */

static int set_up(stk_worker *worker, stk_err *err)
{
    const stk_worker_spec *spec = &worker->spec;
    stk_ctx *ctx = &worker->ctx;
    int rc = stk_path(ctx->spool, sizeof(ctx->spool), err, "%s/journal", spec->env.state_dir);
    if (rc == 0)
        rc = stk_syncer_new(spec->loop, &ctx->syncer, err);
    if (rc == 0)
        rc = stk_pool_new(ctx, &worker->pool, err);
    if (rc == 0)
        rc = stk_backend_oci_new(&spec->env, &ctx->backends[0].be, err);
    if (rc == 0)
        ctx->nbackends = 1;
    return rc < 0 ? rc : stk_view_new(spec->bus, on_config, worker, &ctx->view, err);
}

int stk_worker_new(const stk_worker_spec *spec, stk_worker **ret, stk_err *err)
{
    stk_worker *worker = stk_xcalloc(1, sizeof(*worker));
    worker->spec = *spec;
    if (!worker->spec.slots)
        worker->spec.slots = 2 * get_nprocs();
    worker->ctx = (stk_ctx){.loop = spec->loop,
                            .bus = spec->bus,
                            .state = spec->state,
                            .ring = spec->ring,
                            .internal = spec->env.internal};
    memcpy(worker->ctx.worker, spec->env.worker, sizeof(worker->ctx.worker));
    stk_id_new("inc", stk_wall_now(), worker->ctx.incarnation);
    worker->heartbeat = stk_timer_new(spec->loop, on_tick, worker);
    int rc = set_up(worker, err);
    if (rc < 0) {
        stk_worker_free(worker);
        return rc;
    }
    stk_worker_start(worker);
    *ret = worker;
    return 0;
}

void stk_worker_free(stk_worker *worker)
{
    if (worker->lane)
        stk_lane_free(worker->lane);
    if (worker->pool)
        stk_pool_free(worker->pool);
    if (worker->ctx.view)
        stk_view_free(worker->ctx.view);
    for (size_t i = 0; i < worker->ctx.nbackends; i++)
        worker->ctx.backends[i].be->ops->close(worker->ctx.backends[i].be);
    if (worker->ctx.syncer)
        stk_syncer_free(worker->ctx.syncer);
    stk_timer_free(worker->heartbeat);
    if (worker->drain_limit)
        stk_timer_free(worker->drain_limit);
    free(worker);
}
