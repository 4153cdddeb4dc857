#include "api-gateway/gateway.h"
#include "audit-consumer/audit_consumer.h"
#include "deploy/standalone/part.h"
#include "proto/base/fd.h"
#include "scheduler/scheduler.h"
#include "workers/worker.h"
#include <stdio.h>

static bool always_ready(stk_part *part)
{
    return true;
}

/* --- audit consumer
 * ------------------------------------------------------------------------------------------------ */

static int audit_open(stk_part *part, stk_err *err)
{
    stk_auditor_spec spec = {.loop = part->loop, .bus = part->bus, .store = part->store};
    part->trimmer = stk_trimmer_new(part->loop, part->bus, stk_standalone_topics, STK_STANDALONE_TOPICS);
    return stk_auditor_new(&spec, (stk_auditor **)&part->program, err);
}

static bool audit_quiet(stk_part *part, bool hurry)
{
    return stk_auditor_quiet(part->program);
}

static void audit_metrics(stk_part *part, stk_buf *out)
{
    stk_auditor_stats s = stk_auditor_stats_get(part->program);
    stk_buf_fmt(out,
                "# HELP stockade_audit_stored_total Audit rows and results stored.\n# TYPE "
                "stockade_audit_stored_total counter\n"
                "stockade_audit_stored_total %llu\n"
                "# HELP stockade_audit_dead_total Records sent to stk.dead.\n# TYPE "
                "stockade_audit_dead_total counter\n"
                "stockade_audit_dead_total %llu\n"
                "# HELP stockade_audit_waiting Records read and not stored yet.\n# TYPE "
                "stockade_audit_waiting gauge\n"
                "stockade_audit_waiting %llu\n",
                (unsigned long long)s.stored, (unsigned long long)s.dead, (unsigned long long)s.waiting);
}

static void audit_close(stk_part *part)
{
    stk_trimmer_free(part->trimmer);
    stk_auditor_free(part->program);
}

const stk_part_ops stk_part_audit = {"audit",       audit_open,  audit_quiet,
                                     audit_metrics, audit_close, always_ready};

/* --- scheduler
 * -------------------------------------------------------------------------------------------------------- */

static int scheduler_open(stk_part *part, stk_err *err)
{
    const stk_settings *s = &part->up->settings;
    stk_scheduler_spec spec = {.loop = part->loop,
                               .bus = part->bus,
                               .state = part->state,
                               .running_cap = s->running_cap,
                               .max_attempts = s->max_attempts,
                               .heartbeat = s->heartbeat};
    return stk_scheduler_new(&spec, (stk_scheduler **)&part->program, err);
}

static bool scheduler_quiet(stk_part *part, bool hurry)
{
    return stk_scheduler_quiet(part->program);
}

static void scheduler_metrics(stk_part *part, stk_buf *out)
{
    stk_scheduler_metrics(part->program, out);
}

static void scheduler_close(stk_part *part)
{
    stk_scheduler_free(part->program);
}

const stk_part_ops stk_part_scheduler = {"scheduler",       scheduler_open,  scheduler_quiet,
                                         scheduler_metrics, scheduler_close, always_ready};

/* --- worker
 * ------------------------------------------------------------------------------------------------------------
 */

static void fill_env(const stk_part *part, stk_backend_env *env)
{
    const stk_settings *s = &part->up->settings;
    env->loop = part->loop;
    memcpy(env->worker, part->up->worker, sizeof(env->worker));
    snprintf(env->run_dir, sizeof(env->run_dir), "%s", s->run_dir);
    snprintf(env->state_dir, sizeof(env->state_dir), "%s", s->state_dir);
    snprintf(env->rootfs, sizeof(env->rootfs), "%s", s->rootfs);
    snprintf(env->cgroup, sizeof(env->cgroup), "%s", s->cgroup);
    snprintf(env->runtime, sizeof(env->runtime), "%s", s->runtime);
    env->internal = s->internal;
    size_t used = 0;
    for (size_t i = 0; i < s->resolvers.n && used < sizeof(env->resolvers); i++)
        used += (size_t)snprintf(env->resolvers + used, sizeof(env->resolvers) - used, "%s%s", i ? "," : "",
                                 s->resolvers.v[i].p);
}

static int worker_open(stk_part *part, stk_err *err)
{
    const stk_settings *s = &part->up->settings;
    stk_worker_spec spec = {.loop = part->loop,
                            .bus = part->bus,
                            .state = part->state,
                            .ring = part->up->ring,
                            .slots = s->slots,
                            .lanes = STK_STANDALONE_LANES,
                            .lease = s->lease,
                            .heartbeat = s->heartbeat};
    fill_env(part, &spec.env);
    return stk_worker_new(&spec, (stk_worker **)&part->program, err);
}

static void on_drained(void *arg)
{
    stk_part *part = arg;
    part->quiet = true;
}

static bool worker_quiet(stk_part *part, bool hurry)
{
    if (!part->drain_called || (hurry && !part->hurried)) {
        part->drain_called = true;
        part->hurried = hurry;
        stk_worker_drain(part->program, hurry ? stk_ms(1) : part->up->settings.drain, on_drained, part);
    }
    return part->quiet;
}

static void worker_metrics(stk_part *part, stk_buf *out)
{
    stk_worker_metrics(part->program, out);
}

static void worker_close(stk_part *part)
{
    stk_worker_free(part->program);
}

static bool worker_ready(stk_part *part)
{
    return stk_worker_stats_get(part->program).ready;
}

const stk_part_ops stk_part_worker = {"worker",       worker_open,  worker_quiet,
                                      worker_metrics, worker_close, worker_ready};

/* --- gateway
 * ------------------------------------------------------------------------------------------------------------
 */

static void all_metrics(stk_buf *out, void *arg)
{
    stk_up *up = arg;
    pthread_mutex_lock(&up->mutex);
    for (size_t i = 0; i < STK_COUNT(up->metrics); i++)
        if (up->metrics[i].n)
            stk_buf_str(out, stk_buf_view(&up->metrics[i]));
    pthread_mutex_unlock(&up->mutex);
}

static int gateway_open(stk_part *part, stk_err *err)
{
    stk_up *up = part->up;
    char tokens[512];
    int rc = stk_path(tokens, sizeof(tokens), err, "%s/tokens.json", up->settings.state_dir);
    if (rc < 0)
        return rc;
    stk_gateway_spec spec = {.loop = part->loop,
                             .bus = part->bus,
                             .state = part->state,
                             .store = part->store,
                             .ring = up->ring,
                             .listen = up->settings.listen,
                             .auth_none = up->settings.auth == STK_AUTH_NONE,
                             .body_max = up->settings.body_max,
                             .queued_cap = up->settings.queued_cap,
                             .wait_default = up->settings.wait_default};
    spec.tokens_file = tokens;
    rc = stk_gateway_new(&spec, (stk_gateway **)&part->program, err);
    if (rc < 0)
        return rc;
    stk_gateway_metrics(part->program, all_metrics, up);
    pthread_mutex_lock(&up->mutex);
    snprintf(up->address, sizeof(up->address), "%s", stk_gateway_address(part->program));
    pthread_mutex_unlock(&up->mutex);
    return 0;
}

static bool gateway_quiet(stk_part *part, bool hurry)
{
    return stk_gateway_quiet(part->program) || hurry;
}

static void no_metrics(stk_part *part, stk_buf *out)
{
}

static void gateway_close(stk_part *part)
{
    stk_gateway_free(part->program);
}

const stk_part_ops stk_part_gateway = {"gateway",  gateway_open,  gateway_quiet,
                                       no_metrics, gateway_close, always_ready};
