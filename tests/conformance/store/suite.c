#include "tests/conformance/store/suite.h"

const store_factory *factory;

int world_setup(void **state)
{
    world *w = stk_xcalloc(1, sizeof(*w));
    stk_err err;
    w->self = factory->make();
    assert_int_equal(stk_loop_new(&w->loop, &err), 0);
    w->store = factory->open(w->self, w->loop);
    *state = w;
    return 0;
}

int world_teardown(void **state)
{
    world *w = *state;
    stk_store_close(w->store);
    factory->destroy(w->self);
    stk_loop_free(w->loop);
    free(w);
    return 0;
}

void world_restart(world *w)
{
    stk_store_close(w->store);
    factory->restart(w->self);
    w->store = factory->open(w->self, w->loop);
}

void world_renew(world *w)
{
    stk_store_close(w->store);
    factory->destroy(w->self);
    w->self = factory->make();
    w->store = factory->open(w->self, w->loop);
}

void turn_loop(stk_loop *loop)
{
    const struct timeval most = {0, 10000};
    event_base_loopexit(stk_loop_base(loop), &most);
    event_base_loop(stk_loop_base(loop), EVLOOP_ONCE);
}

static void take_err(answer *a, const stk_err *err)
{
    a->done++;
    if (err)
        a->err = *err;
}

void on_done(const stk_err *err, int64_t offset, size_t stored, size_t bad, void *arg)
{
    answer *a = arg;
    take_err(a, err);
    a->offset = offset;
    a->stored = stored;
    a->bad = bad;
}

static void on_rows(const stk_err *err, const stk_audit_row *rows, size_t n, const char *cursor, void *arg)
{
    answer *a = arg;
    take_err(a, err);
    a->n = n;
    for (size_t i = 0; i < n && i < STK_COUNT(a->ids); i++) {
        memcpy(a->ids[i], rows[i].id, STK_ID_SIZE);
        snprintf(a->details[i], sizeof(a->details[i]), "%.*s", (int)rows[i].details.n,
                 rows[i].details.p ? rows[i].details.p : "");
    }
    snprintf(a->cursor, sizeof(a->cursor), "%s", cursor);
}

static void on_result(const stk_err *err, const stk_event *ev, void *arg)
{
    answer *a = arg;
    take_err(a, err);
    a->found = ev != NULL;
    if (ev) {
        memcpy(a->reason, ev->reason, sizeof(a->reason));
        memcpy(a->assignment, ev->assignment, sizeof(a->assignment));
    }
}

static void on_verify(const stk_err *err, const stk_chain_report *report, void *arg)
{
    answer *a = arg;
    take_err(a, err);
    if (report)
        a->report = *report;
}

static void id_of(const char *prefix, int n, char out[STK_ID_SIZE])
{
    uint8_t bytes[16] = {0, 1};
    bytes[14] = (uint8_t)(n >> 8);
    bytes[15] = (uint8_t)n;
    stk_id_from(prefix, bytes, out);
}

void run_name(int run, char out[STK_ID_SIZE])
{
    id_of("run", run, out);
}

/* Minute `n` after a fixed start; run r belongs to tenant "t<r % 2>" and agent "agent-<r>". */
stk_audit_row make_row(int run, int n)
{
    static const char *const actions[] = {STK_AUDIT_LAUNCH, STK_AUDIT_EGRESS_DENY, STK_AUDIT_EGRESS_ALLOW,
                                          STK_AUDIT_TEARDOWN};
    stk_audit_row row = {.v = 1, .time = {1767225600LL * 1000000000 + n * 60LL * 1000000000}};
    snprintf(row.tenant, sizeof(row.tenant), "t%d", run % 2);
    snprintf(row.agent, sizeof(row.agent), "agent-%d", run);
    snprintf(row.actor, sizeof(row.actor), "worker");
    snprintf(row.action, sizeof(row.action), "%s", actions[n % 4]);
    run_name(run, row.run);
    id_of("asg", run, row.assignment);
    stk_audit_id(row.time, row.run, row.assignment, row.action, (uint64_t)n, row.id);
    return row;
}

stk_event make_event(int run, int assignment, const char *kind, const char *reason)
{
    stk_event ev = {.v = 1,
                    .attempt = 1,
                    .submitted = {1767225600LL * 1000000000},
                    .finished = {1767225601LL * 1000000000}};
    snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
    snprintf(ev.tenant, sizeof(ev.tenant), "t%d", run % 2);
    snprintf(ev.agent, sizeof(ev.agent), "agent-%d", run);
    snprintf(ev.reason, sizeof(ev.reason), "%s", reason);
    run_name(run, ev.run);
    id_of("asg", assignment, ev.assignment);
    id_of("wrk", 1, ev.worker);
    return ev;
}

static answer send_batch(world *w, const stk_store_batch *batch)
{
    answer a = {0};
    stk_store_append(w->store, batch, on_done, &a);
    assert_int_equal(a.done, 0);
    spin_until(w, a.done);
    return a;
}

answer append(world *w, const char *topic, int32_t partition, int64_t from, int64_t to,
              const stk_audit_row *rows, size_t n)
{
    return send_batch(
        w, &(stk_store_batch){
               .topic = topic, .partition = partition, .from = from, .to = to, .rows = rows, .nrows = n});
}

answer append_events(world *w, int64_t from, const stk_event *events, size_t n)
{
    return send_batch(
        w, &(stk_store_batch){
               .topic = EVENTS, .from = from, .to = from + (int64_t)n, .events = events, .nevents = n});
}

void fill(world *w, int32_t partition, int64_t from, int run, int n)
{
    stk_audit_row *rows = stk_xcalloc((size_t)n, sizeof(*rows));
    for (int i = 0; i < n; i++)
        rows[i] = make_row(run, i);
    answer a = append(w, AUDIT, partition, from, from + n, rows, (size_t)n);
    assert_int_equal(a.err.code, STK_OK);
    assert_int_equal(a.stored, n);
    free(rows);
}

answer ask_offset(world *w, const char *topic, int32_t partition)
{
    answer a = {0};
    stk_store_offset(w->store, topic, partition, on_done, &a);
    spin_until(w, a.done);
    return a;
}

answer ask_rows(world *w, const stk_audit_query *query)
{
    answer a = {0};
    stk_store_query(w->store, query, on_rows, &a);
    spin_until(w, a.done);
    return a;
}

answer ask_result(world *w, const char *tenant, const char *run)
{
    answer a = {0};
    stk_store_result(w->store, tenant, run, on_result, &a);
    spin_until(w, a.done);
    return a;
}

answer ask_verify(world *w)
{
    answer a = {0};
    stk_store_verify(w->store, on_verify, &a);
    spin_until(w, a.done);
    assert_int_equal(a.err.code, STK_OK);
    return a;
}
