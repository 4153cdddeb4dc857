#include "tests/unit/workers/rig.h"
#include "proto/base/fd.h"
#include "proto/message/assignment.h"
#include <fcntl.h>

#define AGENT "helper"

/* --- notes */

void rig_note(void *arg, const char *what)
{
    rig *r = arg;
    assert_true(r->nnotes < RIG_NOTES);
    snprintf(r->notes[r->nnotes++], sizeof(r->notes[0]), "%s", what);
}

size_t rig_noted(const rig *r, const char *what)
{
    size_t n = 0;
    for (size_t i = 0; i < r->nnotes; i++)
        n += strcmp(r->notes[i], what) == 0;
    return n;
}

static size_t first(const rig *r, const char *what)
{
    for (size_t i = 0; i < r->nnotes; i++)
        if (strcmp(r->notes[i], what) == 0)
            return i;
    fail_msg("no %s in: %s", what, rig_story(r));
    return 0;
}

bool rig_before(const rig *r, const char *a, const char *b)
{
    return first(r, a) < first(r, b);
}

const char *rig_story(const rig *r)
{
    static char text[RIG_NOTES * 24];
    size_t n = 0;
    text[0] = '\0';
    for (size_t i = 0; i < r->nnotes && n < sizeof(text) - 64; i++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s ", r->notes[i]);
    return text;
}

/* --- waiting */

void rig_until(rig *r, bool (*holds)(rig *r, void *arg), void *arg)
{
    int64_t deadline = stk_mono_now().ns + stk_sec(10).ns;
    while (!holds(r, arg)) {
        if (stk_mono_now().ns > deadline)
            fail_msg("it does not come true: %s", rig_story(r));
        event_base_loop(stk_loop_base(r->loop), EVLOOP_ONCE);
    }
}

void rig_turn(rig *r, stk_span span)
{
    struct timeval tv = stk_span_timeval(span);
    event_base_loopexit(stk_loop_base(r->loop), &tv);
    event_base_loop(stk_loop_base(r->loop), 0);
}

static bool noted(rig *r, void *what)
{
    return rig_noted(r, what) > 0;
}

void rig_until_noted(rig *r, const char *what)
{
    rig_until(r, noted, (void *)(uintptr_t)what);
}

static bool job_done(rig *r, void *arg)
{
    return !r->job;
}

void rig_until_done(rig *r)
{
    rig_until(r, job_done, NULL);
}

/* --- configuration */

static bool landed(rig *r, void *arg)
{
    return r->flying == 0;
}

static bool view_has(rig *r, void *arg)
{
    const stk_tenant_view *one = stk_view_tenant(r->ctx.view, "t");
    int64_t newest = one ? one->sandbox_version : 0;
    if (one && one->org_version > newest)
        newest = one->org_version;
    if (one && one->pools_version > newest)
        newest = one->pools_version;
    return newest == r->version;
}

void rig_config(rig *r, const char *name, const char *doc)
{
    stk_config_record rec = {
        .v = 1, .tenant = "t", .version = ++r->version, .updated = stk_wall_now(), .actor = "test"};
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(1 << 20);
    stk_err err;
    char key[64];
    snprintf(rec.name, sizeof(rec.name), "%s", name);
    stk_bytes_set(&rec.doc, stk_str_of(doc));
    if (stk_config_record_encode(&rec, &text, &err) < 0)
        fail_msg("%s %s", err.pointer, err.detail);
    snprintf(key, sizeof(key), "t/%s", name);
    const stk_bus_out out = {
        .topic = STK_TOPIC_CONFIG, .partition = -1, .key = stk_str_of(key), .value = stk_buf_view(&text)};
    stk_bus_publish(&r->bus_recorder, &out, NULL, NULL);
    rig_until(r, view_has, NULL);
    stk_config_record_done(&rec);
}

static void on_config(const stk_tenant_view *tenant, void *arg)
{
}

/* --- state operations of the test itself */

static void on_own(stk_op *op, void *arg)
{
    stk_op **ret = arg;
    size_t sizes[STK_OP_KINDS] = {
        [STK_OP_JOIN] = sizeof(stk_op_join),          [STK_OP_QUEUE] = sizeof(stk_op_queue),
        [STK_OP_ASSIGN] = sizeof(stk_op_assign),      [STK_OP_RUN_GET] = sizeof(stk_op_run_get),
        [STK_OP_CANCEL] = sizeof(stk_op_cancel),      [STK_OP_POOL_TAKE] = sizeof(stk_op_pool_take),
        [STK_OP_POOL_LIST] = sizeof(stk_op_pool_list)};
    stk_op *mine = stk_op_new(op->kind, NULL, NULL);
    size_t size = sizes[op->kind] - sizeof(*op);
    assert_true(sizes[op->kind] > 0);
    memcpy((char *)mine + sizeof(*op), (char *)op + sizeof(*op), size); /* what it holds moves */
    memset((char *)op + sizeof(*op), 0, size);
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
    op->done = on_own;
    op->arg = &answer;
    stk_state_call(r->st, op);
    rig_until(r, answered, &answer);
    if (answer->rc < 0)
        fail_msg("%s: %s", stk_op_name(answer->kind), answer->err.detail);
    return answer;
}

static void join(rig *r)
{
    stk_op_join *op = stk_op_new(STK_OP_JOIN, NULL, NULL);
    memcpy(op->in.worker, r->ctx.worker, sizeof(op->in.worker));
    memcpy(op->in.incarnation, r->ctx.incarnation, sizeof(op->in.incarnation));
    snprintf(op->in.host, sizeof(op->in.host), "here");
    op->in.slots = 64;
    op->in.lanes = 2;
    op->in.lease = stk_sec(3600);
    op->in.now = stk_wall_now();
    op = rig_call(r, op);
    assert_int_equal(op->outcome, STK_JOIN_OK);
    r->ctx.lane = op->lane;
    r->ctx.lease_until = stk_mono_add(stk_mono_now(), stk_sec(3600));
    stk_op_free(&op->op);
}

const char *rig_state(rig *r, const char *run)
{
    static char out[48];
    stk_op_run_get *op = stk_op_new(STK_OP_RUN_GET, NULL, NULL);
    snprintf(op->in.run, sizeof(op->in.run), "%s", run);
    op = rig_call(r, op);
    if (op->row.state == STK_RUN_FINISHED)
        snprintf(out, sizeof(out), "finished:%s", op->row.reason);
    else
        snprintf(out, sizeof(out), "%s", op->found ? stk_run_state_text(op->row.state) : "unknown");
    stk_op_free(&op->op);
    return out;
}

/* --- life */

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
}

/* So that waiting looks again now and then. */
static void start_tick(rig *r)
{
    struct timeval tv = stk_span_timeval(stk_ms(20));
    r->tick = event_new(stk_loop_base(r->loop), -1, EV_PERSIST, on_tick, NULL);
    event_add(r->tick, &tv);
}

static void open_files(rig *r)
{
    static const stk_bus_topic topics[] = {{STK_TOPIC_REQUESTS, 2, false}, {STK_TOPIC_ASSIGNMENTS, 2, false},
                                           {STK_TOPIC_EVENTS, 2, false},   {STK_TOPIC_AUDIT, 2, false},
                                           {STK_TOPIC_CONFIG, 1, true},    {STK_TOPIC_DEAD, 1, false}};
    char path[128];
    stk_err err;
    snprintf(path, sizeof(path), "%s/bus.db", r->dir);
    const stk_bus_file_spec bus = {.path = path, .topics = topics, .ntopics = STK_COUNT(topics)};
    if (stk_loop_new(&r->loop, &err) < 0 || stk_bus_file_open(&bus, &r->bus_file, &err) < 0 ||
        stk_bus_sqlite_new(r->bus_file, r->loop, &r->bus, &err) < 0)
        fail_msg("%s", err.detail);
    snprintf(path, sizeof(path), "%s/state.db", r->dir);
    if (stk_state_file_open(path, &r->state_file, &err) < 0 ||
        stk_state_sqlite_new(r->state_file, r->loop, &r->st, &err) < 0)
        fail_msg("%s", err.detail);
    snprintf(path, sizeof(path), "%s/keys", r->dir);
    if (stk_keyring_create(path, &err) < 0 || stk_keyring_load(path, &r->ring, &err) < 0)
        fail_msg("%s", err.detail);
}

rig *rig_new(void)
{
    rig *r = stk_xcalloc(1, sizeof(*r));
    stk_err err;
    snprintf(r->dir, sizeof(r->dir), "/tmp/stk-worker-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    open_files(r);
    start_tick(r);
    rig_record(r);
    r->ctx = (stk_ctx){.loop = r->loop,
                       .bus = &r->bus_recorder,
                       .state = &r->state_recorder,
                       .ring = r->ring,
                       .nbackends = 1};
    stk_id_new("wrk", stk_wall_now(), r->ctx.worker);
    stk_id_new("inc", stk_wall_now(), r->ctx.incarnation);
    snprintf(r->ctx.spool, sizeof(r->ctx.spool), "%s/spool", r->dir);
    assert_int_equal(stk_mkdirs(r->ctx.spool, 0700, &err), 0);
    fake_init(&r->be, r->loop, r->ctx.spool);
    r->be.log = rig_note;
    r->be.log_arg = r;
    r->ctx.backends[0] = (stk_worker_backend){&r->be.be, {.ok = true, .strength = STK_STRENGTH_CONTAINER}};
    if (stk_syncer_new(r->loop, &r->ctx.syncer, &err) < 0 ||
        stk_view_new(&r->bus_recorder, on_config, NULL, &r->ctx.view, &err) < 0)
        fail_msg("%s", err.detail);
    join(r);
    rig_config(r, STK_CONF_AGENT_SANDBOX,
               "{\"enabled\":true,\"agents\":{\"" AGENT "\":{\"allow\":[\"api.vendor.com\"]}}}");
    r->nnotes = 0;
    return r;
}

void rig_free(rig *r)
{
    stk_err err;
    rig_until(r, landed, NULL);
    assert_int_equal(fake_alive(&r->be), 0);
    stk_view_free(r->ctx.view);
    stk_syncer_free(r->ctx.syncer);
    stk_bus_close(r->bus);
    stk_state_close(r->st);
    event_base_loop(stk_loop_base(r->loop), EVLOOP_NONBLOCK);
    stk_bus_file_close(r->bus_file);
    stk_state_file_close(r->state_file);
    event_free(r->tick);
    stk_loop_free(r->loop);
    stk_keyring_free(r->ring);
    stk_event_done(&r->event);
    assert_int_equal(stk_rmtree(AT_FDCWD, r->dir, &err), 0);
    free(r);
}

/* --- assignments and jobs */

static void make_request(rig *r, const char *retry, stk_request *req, stk_buf *text)
{
    stk_run_secret secret = {0};
    stk_err err;
    *req = (stk_request){.v = 1,
                         .kind = "run",
                         .tenant = "t",
                         .actor = "test",
                         .agent = AGENT,
                         .backend = "oci",
                         .submitted = stk_wall_now(),
                         .timeout = stk_sec(30),
                         .priority = 5,
                         .config_version = 1};
    stk_id_new("run", req->submitted, req->id);
    snprintf(req->retry, sizeof(req->retry), "%s", retry);
    stk_strv_add(&secret.command, STK_STR("echo"));
    stk_strv_add(&secret.command, STK_STR("hello"));
    if (stk_request_seal(req, &secret, r->ring, &err) < 0 || stk_request_encode(req, text, &err) < 0)
        fail_msg("%s %s", err.pointer, err.detail);
    stk_run_secret_done(&secret);
}

stk_assignment rig_assign(rig *r, const char *sandbox, const char *retry)
{
    stk_request req;
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(1 << 20);
    make_request(r, retry, &req, &text);
    stk_op_queue *queue = stk_op_new(STK_OP_QUEUE, NULL, NULL);
    memcpy(queue->in.run, req.id, sizeof(queue->in.run));
    snprintf(queue->in.tenant, sizeof(queue->in.tenant), "t");
    snprintf(queue->in.agent, sizeof(queue->in.agent), AGENT);
    snprintf(queue->in.kind, sizeof(queue->in.kind), "run");
    snprintf(queue->in.retry, sizeof(queue->in.retry), "%s", retry);
    queue->in.submitted = req.submitted;
    stk_op_free(rig_call(r, queue));
    stk_assignment asg = {
        .v = 1, .kind = "assign", .backend = "oci", .attempt = 1, .assigned = stk_wall_now()};
    stk_id_new("asg", asg.assigned, asg.assignment);
    memcpy(asg.run, req.id, sizeof(asg.run));
    memcpy(asg.worker, r->ctx.worker, sizeof(asg.worker));
    memcpy(asg.incarnation, r->ctx.incarnation, sizeof(asg.incarnation));
    snprintf(asg.sandbox, sizeof(asg.sandbox), "%s", sandbox);
    stk_bytes_set(&asg.request, stk_buf_view(&text));
    stk_op_assign *op = stk_op_new(STK_OP_ASSIGN, NULL, NULL);
    memcpy(op->in.run, req.id, sizeof(op->in.run));
    snprintf(op->in.tenant, sizeof(op->in.tenant), "t");
    snprintf(op->in.agent, sizeof(op->in.agent), AGENT);
    snprintf(op->in.kind, sizeof(op->in.kind), "run");
    snprintf(op->in.retry, sizeof(op->in.retry), "%s", retry);
    memcpy(op->in.assignment, asg.assignment, sizeof(op->in.assignment));
    memcpy(op->in.worker, asg.worker, sizeof(op->in.worker));
    memcpy(op->in.incarnation, asg.incarnation, sizeof(op->in.incarnation));
    op->in.attempt = 1;
    stk_bytes_set(&op->in.record, STK_STR("{}"));
    op = rig_call(r, op);
    assert_int_equal(op->outcome, STK_ASSIGN_OK);
    stk_op_free(&op->op);
    stk_request_done(&req);
    return asg;
}

static stk_box *take_warm(const char *sandbox, void *arg)
{
    rig *r = arg;
    return STK_TAKE(r->warm);
}

static void on_done(stk_job *job, void *arg)
{
    rig *r = arg;
    r->job = NULL;
    r->jobs_done++;
}

void rig_job(rig *r, const char *sandbox, const char *retry)
{
    const stk_job_ops ops = {.take_warm = take_warm, .on_done = on_done, .arg = r};
    stk_assignment asg = rig_assign(r, sandbox, retry);
    stk_err err;
    assert_int_equal(stk_job_new(&r->ctx, &asg, 7, &ops, &r->job, &err), 0);
}

void rig_end_job(rig *r)
{
    rig_until_done(r);
    assert_int_equal(r->jobs_done, 1);
    assert_int_equal(rig_noted(r, "launch"), rig_noted(r, "teardown"));
    assert_int_equal(r->be.made, r->be.destroyed);
    assert_true(rig_noted(r, "execute") <= 1);
    if (rig_noted(r, "execute"))
        assert_true(rig_before(r, "launch", "execute"));
    if (rig_noted(r, "launch"))
        assert_true(rig_before(r, "launch", "teardown"));
    rig_free(r);
}
