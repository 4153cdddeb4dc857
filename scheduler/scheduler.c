#include "scheduler/scheduler.h"
#include "scheduler/impl.h"

static void release(stk_scheduler *s)
{
    stk_fair_free(s->fair);
    stk_index_done(&s->index);
    free(s);
}

void stk__enter(stk_scheduler *s)
{
    s->inflight++;
}

bool stk__leave(stk_scheduler *s)
{
    s->inflight--;
    if (!s->dead)
        return false;
    if (!s->inflight)
        release(s);
    return true;
}

static void on_capacity(const char *what, void *arg)
{
    stk_scheduler *s = arg;
    stk_fair_unpark(s->fair);
    stk_fleet_stale(s);
}

/* Requests are read only when every tenant's configuration is known. */
static void on_docs_ready(void *scheduler)
{
    stk_scheduler *s = scheduler;
    const stk_consumer_spec spec = {
        .topic = STK_TOPIC_REQUESTS, .group = STK_SCHED_GROUP, .window = (size_t)s->spec.index_max};
    stk_err err = {.code = STK_OK};
    if (!s->consumer && !s->draining &&
        stk_bus_subscribe(s->spec.bus, &spec, &stk__intake_ops, s, &s->consumer, &err) < 0)
        stk_log_err(STK_LOG_ERROR, NULL, &err, "requests can't be read");
}

int stk_scheduler_new(const stk_scheduler_spec *spec, stk_scheduler **ret, stk_err *err)
{
    stk_scheduler *s = stk_xcalloc(1, sizeof(*s));
    s->spec = *spec;
    s->spec.max_attempts = spec->max_attempts > 0 ? spec->max_attempts : 3;
    s->spec.payload_bytes = spec->payload_bytes ? spec->payload_bytes : STK_SCHED_BYTES;
    s->spec.index_max = spec->index_max > 0 ? spec->index_max : 1000000;
    s->fair = stk_fair_new((size_t)s->spec.index_max, stk_sec(30));
    s->sweep_timer = stk_timer_new(spec->loop, stk__sweep, s);
    s->due_timer = stk_timer_new(spec->loop, stk__due, s);
    stk_fleet_init(&s->fleet, s);
    s->watch = stk_state_watch(spec->state, "capacity", on_capacity, s);
    int rc = stk__docs_new(s, on_docs_ready, err);
    if (rc < 0) {
        stk_scheduler_free(s);
        return stk_err_wrap(err, "start the scheduler");
    }
    stk__sweep(s);
    *ret = s;
    return 0;
}

bool stk_scheduler_quiet(stk_scheduler *s)
{
    if (!s->draining) {
        s->draining = true;
        stk_timer_clear(s->sweep_timer);
        stk__intake_flow(s);
    }
    return s->inflight == 0;
}

void stk_scheduler_free(stk_scheduler *s)
{
    if (!s)
        return;
    stk_state_unwatch(s->spec.state, s->watch);
    stk__docs_free(s->docs);
    s->docs = NULL;
    if (s->consumer)
        stk_bus_unsubscribe(s->consumer);
    s->consumer = NULL;
    stk_timer_free(s->sweep_timer);
    stk_timer_free(s->due_timer);
    stk_fleet_done(&s->fleet);
    for (size_t i = 0; i < s->index.size; i++)
        stk__job_free(s->index.slots[i].job);
    s->dead = true;
    if (!s->inflight)
        release(s);
}

/* --- /metrics --- */

static void histogram(const stk_scheduler *s, stk_buf *out)
{
    static const char *const bounds[] = {"0.0005", "0.001", "0.0025", "0.005", "0.01", "0.025",
                                         "0.1",    "0.5",   "1",      "10",    "60",   "+Inf"};
    uint64_t sum = 0;
    stk_buf_text(out, "# TYPE stockade_scheduler_wait_seconds histogram\n");
    for (size_t i = 0; i < STK_COUNT(bounds); i++) {
        sum += s->counts.waits[i];
        stk_buf_fmt(out, "stockade_scheduler_wait_seconds_bucket{le=\"%s\"} %llu\n", bounds[i],
                    (unsigned long long)sum);
    }
    stk_buf_fmt(out, "stockade_scheduler_wait_seconds_sum %.6f\nstockade_scheduler_wait_seconds_count %llu\n",
                s->counts.wait_sum, (unsigned long long)sum);
}

void stk_scheduler_metrics(const stk_scheduler *s, stk_buf *out)
{
    const struct {
        const char *name, *type;
        uint64_t value;
    } rows[] = {
        {"stockade_scheduler_requests_read_total", "counter", s->counts.read},
        {"stockade_scheduler_assigned_total", "counter", s->counts.assigned},
        {"stockade_scheduler_assigned_warm_total", "counter", s->counts.warm},
        {"stockade_scheduler_published_again_total", "counter", s->counts.again},
        {"stockade_scheduler_retries_total", "counter", s->counts.retried},
        {"stockade_scheduler_dead_letters_total", "counter", s->counts.dead},
        {"stockade_scheduler_queued", "gauge", stk_fair_listed(s->fair)},
        {"stockade_scheduler_unfinished", "gauge", stk_fair_count(s->fair)},
        {"stockade_scheduler_tenants", "gauge", stk_fair_tenants(s->fair)},
        {"stockade_scheduler_payload_bytes", "gauge", s->index.bytes},
        {"stockade_scheduler_workers_live", "gauge", s->fleet.live},
        {"stockade_scheduler_slots", "gauge", (uint64_t)s->fleet.slots},
        {"stockade_scheduler_slots_used", "gauge", (uint64_t)s->fleet.used},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++)
        stk_buf_fmt(out, "# TYPE %s %s\n%s %llu\n", rows[i].name, rows[i].type, rows[i].name,
                    (unsigned long long)rows[i].value);
    stk_buf_text(out, "# TYPE stockade_scheduler_ended_total counter\n");
    for (int i = STK_REASON_NONE + 1; i < STK_REASONS; i++)
        if (s->counts.ended[i])
            stk_buf_fmt(out, "stockade_scheduler_ended_total{reason=\"%s\"} %llu\n",
                        stk_reason_text((stk_reason)i), (unsigned long long)s->counts.ended[i]);
    stk_buf_fmt(out,
                "# TYPE stockade_scheduler_oldest_seconds gauge\nstockade_scheduler_oldest_seconds %.3f\n",
                stk_span_sec(stk_fair_oldest(s->fair, stk_mono_now())));
    histogram(s, out);
}
