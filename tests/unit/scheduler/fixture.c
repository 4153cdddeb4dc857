#include "tests/unit/scheduler/fixture.h"
#include "proto/base/fd.h"
#include "proto/message/event.h"

static stk_mono clock_of(void *arg)
{
    const rig *r = arg;
    return (stk_mono){stk_mono_now().ns + __atomic_load_n(&r->clock_ahead, __ATOMIC_SEQ_CST)};
}

static void on_heard(stk_consumer *consumer, const stk_bus_msg *msg, void *arg)
{
    ear *e = arg;
    e->v = stk_xrealloc(e->v, (e->n + 1) * sizeof(*e->v));
    heard *h = &e->v[e->n++];
    h->value = stk_xmemdup(msg->value.p, msg->value.n);
    h->partition = msg->partition;
    stk_str_copy(msg->key, h->key, sizeof(h->key));
    stk_bus_finish(consumer, msg->partition, msg->offset);
}
static const stk_consumer_ops hearing = {.on_message = on_heard};

static void listen_to(rig *r, const char *topic, ear *e)
{
    const stk_consumer_spec spec = {.topic = topic};
    assert_int_equal(stk_bus_subscribe(r->bus, &spec, &hearing, e, &e->consumer, NULL), 0);
}

static void forget(ear *e)
{
    stk_bus_unsubscribe(e->consumer);
    for (size_t i = 0; i < e->n; i++)
        free(e->v[i].value);
    free(e->v);
}

rig *rig_new(void)
{
    static const stk_bus_topic topics[] = {
        {STK_TOPIC_REQUESTS, 2, false}, {STK_TOPIC_ASSIGNMENTS, LANES, false}, {STK_TOPIC_EVENTS, 2, false},
        {STK_TOPIC_AUDIT, 2, false},    {STK_TOPIC_CONFIG, 1, true},           {STK_TOPIC_DEAD, 1, false}};
    rig *r = stk_xcalloc(1, sizeof(*r));
    char path[128];
    stk_err err = {.code = STK_OK};
    snprintf(r->dir, sizeof(r->dir), "/tmp/stk-sched-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    snprintf(path, sizeof(path), "%s/bus.db", r->dir);
    const stk_bus_file_spec bus = {.path = path, .topics = topics, .ntopics = STK_COUNT(topics)};
    if (stk_loop_new(&r->loop, &err) < 0 || stk_bus_file_open(&bus, &r->bus_file, &err) < 0 ||
        stk_bus_sqlite_new(r->bus_file, r->loop, &r->bus, &err) < 0)
        fail_msg("%s", err.detail);
    snprintf(path, sizeof(path), "%s/state.db", r->dir);
    if (stk_state_file_open(path, &r->state_file, &err) < 0)
        fail_msg("%s", err.detail);
    stk_state_file_set_clock(r->state_file, clock_of, r);
    if (stk_state_sqlite_new(r->state_file, r->loop, &r->st, &err) < 0)
        fail_msg("%s", err.detail);
    r->spec =
        (stk_scheduler_spec){.loop = r->loop, .bus = r->bus, .state = r->st, .heartbeat = stk_sec(3600)};
    listen_to(r, STK_TOPIC_ASSIGNMENTS, &r->assignments);
    listen_to(r, STK_TOPIC_EVENTS, &r->events);
    listen_to(r, STK_TOPIC_AUDIT, &r->audit);
    listen_to(r, STK_TOPIC_DEAD, &r->dead);
    return r;
}

void rig_free(rig *r)
{
    if (r->sched)
        rig_stop(r);
    forget(&r->assignments);
    forget(&r->events);
    forget(&r->audit);
    forget(&r->dead);
    stk_bus_close(r->bus);
    stk_state_close(r->st);
    event_base_loop(stk_loop_base(r->loop), EVLOOP_NONBLOCK);
    stk_bus_file_close(r->bus_file);
    stk_state_file_close(r->state_file);
    stk_loop_free(r->loop);
    static const char *const names[] = {"bus.db",   "bus.db-wal",   "bus.db-shm",
                                        "state.db", "state.db-wal", "state.db-shm"};
    for (size_t i = 0; i < STK_COUNT(names); i++) {
        char path[128];
        snprintf(path, sizeof(path), "%s/%s", r->dir, names[i]);
        unlink(path);
    }
    rmdir(r->dir);
    free(r);
}

void rig_start(rig *r)
{
    stk_err err = {.code = STK_OK};
    if (stk_scheduler_new(&r->spec, &r->sched, &err) < 0)
        fail_msg("%s", err.detail);
}

static bool is_quiet(rig *r, void *arg)
{
    return stk_scheduler_quiet(r->sched);
}

void rig_stop(rig *r)
{
    rig_until(r, is_quiet, NULL);
    stk_scheduler_free(r->sched);
    r->sched = NULL;
}

void rig_until(rig *r, bool (*holds)(rig *r, void *arg), void *arg)
{
    int64_t deadline = stk_mono_now().ns + stk_sec(10).ns;
    while (!holds(r, arg)) {
        if (stk_mono_now().ns > deadline)
            fail_msg("it does not come true: %zu assignments, %zu events, %zu rows, %zu dead",
                     r->assignments.n, r->events.n, r->audit.n, r->dead.n);
        event_base_loop(stk_loop_base(r->loop), EVLOOP_ONCE);
    }
}

void rig_turn(rig *r, stk_span span)
{
    struct timeval tv = stk_span_timeval(span);
    event_base_loopexit(stk_loop_base(r->loop), &tv);
    event_base_loop(stk_loop_base(r->loop), 0);
}

/* --- messages --- */

static void on_published(stk_publish_outcome outcome, int32_t partition, int64_t offset, const stk_err *err,
                         void *arg)
{
    assert_int_equal(outcome, STK_PUBLISHED);
    ((rig *)arg)->flying--;
}

static bool landed(rig *r, void *arg)
{
    return r->flying == 0;
}

void rig_publish(rig *r, const char *topic, const char *key, stk_str value)
{
    const stk_bus_out out = {.topic = topic, .partition = -1, .key = stk_str_of(key), .value = value};
    r->flying++;
    stk_bus_publish(r->bus, &out, on_published, r);
    rig_until(r, landed, NULL);
}

void rig_config(rig *r, const char *tenant, const char *doc)
{
    stk_config_record rec = {.v = 1,
                             .name = STK_CONF_AGENT_SANDBOX,
                             .version = ++r->config_version,
                             .updated = stk_wall_now(),
                             .actor = "test"};
    stk_buf text = STK_BUF(1 << 20);
    stk_err err;
    char key[128];
    snprintf(rec.tenant, sizeof(rec.tenant), "%s", tenant);
    stk_bytes_set(&rec.doc, stk_str_of(doc));
    if (stk_config_record_encode(&rec, &text, &err) < 0)
        fail_msg("%s %s", err.pointer, err.detail);
    snprintf(key, sizeof(key), "%s/%s", tenant, rec.name);
    rig_publish(r, STK_TOPIC_CONFIG, key, stk_buf_view(&text));
    stk_buf_done(&text);
    stk_config_record_done(&rec);
}

char *rig_request(const ask *a, char out_run[STK_ID_SIZE])
{
    stk_request req = {.v = 1,
                       .actor = "test",
                       .submitted = stk_wall_now(),
                       .priority = a->priority,
                       .config_version = a->config_version};
    stk_buf text = STK_BUF(1 << 20);
    stk_err err;
    stk_id_new("run", req.submitted, req.id);
    snprintf(req.kind, sizeof(req.kind), "%s", a->kind ? a->kind : "run");
    snprintf(req.tenant, sizeof(req.tenant), "%s", a->tenant ? a->tenant : "t");
    snprintf(req.agent, sizeof(req.agent), "%s", a->agent ? a->agent : "helper");
    snprintf(req.backend, sizeof(req.backend), "%s", a->backend ? a->backend : "auto");
    snprintf(req.retry, sizeof(req.retry), "%s", a->retry ? a->retry : "never");
    req.timeout = stk_sec(10);
    if (a->deadline.ns)
        req.deadline = stk_wall_add(req.submitted, a->deadline);
    stk_bytes_set(&req.secret, STK_STR("sealed"));
    if (stk_request_encode(&req, &text, &err) < 0)
        fail_msg("%s %s", err.pointer, err.detail);
    memcpy(out_run, req.id, STK_ID_SIZE);
    stk_request_done(&req);
    return stk_buf_take(&text, NULL);
}

void rig_submit(rig *r, const ask *a, char out_run[STK_ID_SIZE])
{
    char *text = rig_request(a, out_run);
    rig_publish(r, STK_TOPIC_REQUESTS, out_run, stk_str_of(text));
    free(text);
}

size_t rig_count(const ear *e, const char *key)
{
    size_t n = 0;
    for (size_t i = 0; i < e->n; i++)
        n += strcmp(e->v[i].key, key) == 0;
    return n;
}

void rig_assignment(rig *r, size_t n, stk_assignment *ret)
{
    stk_err err;
    assert_in_range(n, 0, r->assignments.n - 1);
    memset(ret, 0, sizeof(*ret));
    if (stk_assignment_decode(stk_str_of(r->assignments.v[n].value), ret, &err) < 0)
        fail_msg("%s %s", err.pointer, err.detail);
}

size_t rig_rows(rig *r, const char *action, const char *run)
{
    size_t n = 0;
    for (size_t i = 0; i < r->audit.n; i++) {
        stk_audit_row row = {.v = 0};
        stk_err err;
        if (stk_audit_decode(stk_str_of(r->audit.v[i].value), &row, &err) < 0)
            fail_msg("%s %s", err.pointer, err.detail);
        n += strcmp(row.action, action) == 0 && strcmp(row.run, run) == 0;
        stk_audit_row_done(&row);
    }
    return n;
}

/* --- state --- */

static void on_answer(stk_op *op, void *arg)
{
    stk_op **ret = arg;
    /* The port frees the operation after this: what it holds moves to the test's own. */
    stk_op *mine = stk_op_new(op->kind, NULL, NULL);
    size_t size = op->kind == STK_OP_JOIN      ? sizeof(stk_op_join)
                  : op->kind == STK_OP_RUN_GET ? sizeof(stk_op_run_get)
                  : op->kind == STK_OP_FINISH  ? sizeof(stk_op_finish)
                  : op->kind == STK_OP_START   ? sizeof(stk_op_start)
                  : op->kind == STK_OP_CANCEL  ? sizeof(stk_op_cancel)
                  : op->kind == STK_OP_SUBMIT  ? sizeof(stk_op_submit)
                  : op->kind == STK_OP_COUNTS  ? sizeof(stk_op_counts)
                  : op->kind == STK_OP_REQUEUE ? sizeof(stk_op_requeue)
                                               : sizeof(stk_op_pool_put);
    memcpy((char *)mine + sizeof(*op), (char *)op + sizeof(*op), size - sizeof(*op));
    memset((char *)op + sizeof(*op), 0, size - sizeof(*op));
    mine->rc = op->rc;
    mine->err = op->err;
    *ret = mine;
}

static bool answered(rig *r, void *arg)
{
    return *(stk_op **)arg != NULL;
}

void *rig_call(rig *r, void *op_)
{
    stk_op *op = op_, *answer = NULL;
    op->done = on_answer;
    op->arg = &answer;
    stk_state_call(r->st, op);
    rig_until(r, answered, &answer);
    if (answer->rc < 0)
        fail_msg("%s: %s", stk_op_name(answer->kind), answer->err.detail);
    return answer;
}

hand rig_worker(rig *r, int64_t slots, const char *backends, stk_span lease)
{
    hand w = {.lane = -1};
    stk_op_join *op = stk_op_new(STK_OP_JOIN, NULL, NULL);
    stk_id_new("wrk", stk_wall_now(), w.id);
    stk_id_new("inc", stk_wall_now(), w.incarnation);
    memcpy(op->in.worker, w.id, sizeof(w.id));
    memcpy(op->in.incarnation, w.incarnation, sizeof(w.incarnation));
    snprintf(op->in.host, sizeof(op->in.host), "here");
    op->in.slots = slots;
    op->in.lanes = LANES;
    op->in.lease = lease;
    op->in.now = stk_wall_now();
    stk_bytes_set(&op->in.backends, stk_str_of(backends));
    op = rig_call(r, op);
    assert_int_equal(op->outcome, STK_JOIN_OK);
    w.lane = op->lane;
    stk_op_free(&op->op);
    return w;
}

void rig_pool_put(rig *r, const hand *w, const char *tenant, const stk_agent_limits *limits,
                  const char *sandbox)
{
    stk_op_pool_put *op = stk_op_new(STK_OP_POOL_PUT, NULL, NULL);
    snprintf(op->in.sandbox, sizeof(op->in.sandbox), "%s", sandbox);
    snprintf(op->in.tenant, sizeof(op->in.tenant), "%s", tenant);
    snprintf(op->in.pool, sizeof(op->in.pool), "pool");
    snprintf(op->in.backend, sizeof(op->in.backend), "oci");
    memcpy(op->in.worker, w->id, sizeof(op->in.worker));
    memcpy(op->in.incarnation, w->incarnation, sizeof(op->in.incarnation));
    op->in.made = stk_wall_now();
    stk_template_key(tenant, "oci", "", limits, op->in.template_key);
    op = rig_call(r, op);
    assert_true(op->taken_in);
    stk_op_free(&op->op);
}

const char *rig_state(rig *r, const char *run)
{
    static char out[48];
    stk_op_run_get *op = stk_op_new(STK_OP_RUN_GET, NULL, NULL);
    snprintf(op->in.run, sizeof(op->in.run), "%s", run);
    op = rig_call(r, op);
    if (!op->found)
        snprintf(out, sizeof(out), "unknown");
    else if (op->row.state == STK_RUN_FINISHED)
        snprintf(out, sizeof(out), "finished:%s", op->row.reason);
    else
        snprintf(out, sizeof(out), "%s", stk_run_state_text(op->row.state));
    stk_op_free(&op->op);
    return out;
}

bool rig_begin(rig *r, const hand *w, const stk_assignment *asg)
{
    stk_op_start *op = stk_op_new(STK_OP_START, NULL, NULL);
    memcpy(op->in.run, asg->run, sizeof(op->in.run));
    memcpy(op->in.assignment, asg->assignment, sizeof(op->in.assignment));
    memcpy(op->in.worker, w->id, sizeof(op->in.worker));
    memcpy(op->in.incarnation, w->incarnation, sizeof(op->in.incarnation));
    op->in.now = stk_wall_now();
    op = rig_call(r, op);
    bool ok = op->outcome == STK_START_OK;
    stk_op_free(&op->op);
    return ok;
}

bool rig_end(rig *r, const stk_assignment *asg, const char *tenant)
{
    stk_event ev = {.v = 1,
                    .kind = "finished",
                    .reason = "exited",
                    .attempt = asg->attempt,
                    .submitted = asg->assigned,
                    .finished = stk_wall_now()};
    stk_buf text = STK_BUF(1 << 16);
    stk_err err;
    memcpy(ev.run, asg->run, sizeof(ev.run));
    memcpy(ev.assignment, asg->assignment, sizeof(ev.assignment));
    snprintf(ev.tenant, sizeof(ev.tenant), "%s", tenant);
    snprintf(ev.agent, sizeof(ev.agent), "helper");
    if (stk_event_encode(&ev, &text, &err) < 0)
        fail_msg("%s %s", err.pointer, err.detail);
    stk_op_finish *op = stk_op_new(STK_OP_FINISH, NULL, NULL);
    memcpy(op->in.run, asg->run, sizeof(op->in.run));
    memcpy(op->in.assignment, asg->assignment, sizeof(op->in.assignment));
    snprintf(op->in.tenant, sizeof(op->in.tenant), "%s", tenant);
    snprintf(op->in.reason, sizeof(op->in.reason), "exited");
    op->in.now = stk_wall_now();
    stk_bytes_set(&op->in.event, stk_buf_view(&text));
    stk_buf_done(&text);
    op = rig_call(r, op);
    bool won = op->outcome == STK_FINISH_WON;
    stk_op_free(&op->op);
    return won;
}
