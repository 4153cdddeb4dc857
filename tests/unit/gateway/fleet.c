/* Scheduler and worker in one, as small as a test needs them. */
#include "proto/message/live.h"
#include "tests/unit/gateway/fixture.h"

static void must(int rc, const stk_err *err)
{
    if (rc < 0)
        fail_msg("%s", err->detail);
}

static void fly(fx *f, void *op)
{
    f->fleet.flying++;
    stk_state_call(f->state, op);
}

static void on_landed(stk_op *op, void *arg)
{
    must(op->rc, &op->err);
    ((fx *)arg)->fleet.flying--;
}

static void on_ended(stk_op *op_, void *arg)
{
    stk_op_finish *op = (stk_op_finish *)op_;
    ((fx *)arg)->fleet.flying--;
    must(op_->rc, &op_->err);
    assert_int_equal(op->outcome, STK_FINISH_WON);
}

static void on_appended(const stk_err *err, int64_t offset, size_t stored, size_t bad, void *arg)
{
    if (err)
        fail_msg("%s", err->detail);
    assert_int_equal(stored, 1);
    ((fx *)arg)->fleet.flying--;
}

static void put_egress(stk_event *ev)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(4096);
    stk_egress_record rec = {.seq = 1,
                             .kind = "decision",
                             .host = "evil.example",
                             .port = 443,
                             .verdict = "deny",
                             .reason = "host_not_allowed",
                             .policy_version = 1,
                             .method = "CONNECT"};
    stk_err err;
    rec.time = stk_wall_now();
    memcpy(rec.run, ev->run, sizeof(rec.run));
    stk_buf_byte(&text, '[');
    must(stk_egress_encode(&rec, &text, &err), &err);
    stk_buf_byte(&text, ']');
    stk_bytes_set(&ev->egress, stk_buf_view(&text));
}

static void end_run(fx *f, const char *reason, const char *detail)
{
    fleet *fl = &f->fleet;
    stk_buf event STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    stk_buf brief STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    stk_event ev = {.v = STK_MESSAGE_VERSION,
                    .kind = "finished",
                    .attempt = 1,
                    .backend = "oci",
                    .isolation = "container",
                    .exit_code = fl->exit_code,
                    .submitted = fl->last.submitted,
                    .started = stk_wall_now(),
                    .finished = stk_wall_now(),
                    .duration = stk_ms(7)};
    stk_result_secret secret = {0};
    stk_err err;
    memcpy(ev.run, fl->last_run, sizeof(ev.run));
    memcpy(ev.tenant, fl->last.tenant, sizeof(ev.tenant));
    memcpy(ev.agent, fl->last.agent, sizeof(ev.agent));
    memcpy(ev.assignment, fl->assignment, sizeof(ev.assignment));
    memcpy(ev.worker, fl->worker, sizeof(ev.worker));
    snprintf(ev.reason, sizeof(ev.reason), "%s", reason);
    snprintf(ev.detail, sizeof(ev.detail), "%s", detail);
    if (!*detail) {
        stk_bytes_set(&secret.stdout_data, stk_str_of(fl->out ? fl->out : ""));
        stk_bytes_set(&secret.stderr_data, stk_str_of(fl->err ? fl->err : ""));
        ev.stdout_bytes = (int64_t)secret.stdout_data.n;
        ev.stderr_bytes = (int64_t)secret.stderr_data.n;
        put_egress(&ev);
        ev.egress_denied = 1;
        must(stk_event_seal(&ev, &secret, f->ring, &err), &err);
    }
    must(stk_event_encode(&ev, &event, &err), &err);
    stk_bytes sealed = ev.secret;
    ev.secret = (stk_bytes){0};
    must(stk_event_encode(&ev, &brief, &err), &err);
    ev.secret = sealed;
    stk_op_finish *op = stk_op_new(STK_OP_FINISH, on_ended, f);
    memcpy(op->in.run, ev.run, sizeof(op->in.run));
    memcpy(op->in.tenant, ev.tenant, sizeof(op->in.tenant));
    memcpy(op->in.assignment, ev.assignment, sizeof(op->in.assignment));
    memcpy(op->in.reason, ev.reason, sizeof(op->in.reason));
    op->in.now = stk_wall_now();
    stk_bytes_set(&op->in.event, stk_buf_view(&event));
    if (fl->cut_result)
        stk_bytes_set(&op->in.result, stk_buf_view(&brief));
    fly(f, op);
    if (fl->cut_result) {
        stk_store_batch batch = {.topic = STK_TOPIC_EVENTS, .to = 1, .events = &ev, .nevents = 1};
        fl->flying++;
        stk_store_append(f->store, &batch, on_appended, f);
    }
    stk_event_done(&ev);
    stk_result_secret_done(&secret);
}

static void on_started(stk_op *op_, void *arg)
{
    fx *f = arg;
    f->fleet.flying--;
    must(op_->rc, &op_->err);
    if (!f->fleet.stay_running)
        end_run(f, "exited", "");
}

static void answer_plan(fx *f)
{
    stk_op_finish *op = stk_op_new(STK_OP_FINISH, on_ended, f);
    memcpy(op->in.run, f->fleet.last_run, sizeof(op->in.run));
    memcpy(op->in.tenant, f->fleet.last.tenant, sizeof(op->in.tenant));
    memcpy(op->in.assignment, f->fleet.assignment, sizeof(op->in.assignment));
    snprintf(op->in.reason, sizeof(op->in.reason), "exited");
    op->in.now = stk_wall_now();
    op->in.plan = true;
    stk_bytes_set(&op->in.result, stk_str_of(f->fleet.plan));
    fly(f, op);
}

static void on_assigned(stk_op *op_, void *arg)
{
    stk_op_assign *op = (stk_op_assign *)op_;
    fx *f = arg;
    fleet *fl = &f->fleet;
    fl->flying--;
    must(op_->rc, &op_->err);
    assert_int_equal(op->outcome, STK_ASSIGN_OK);
    if (strcmp(fl->last.kind, "plan") == 0) {
        answer_plan(f);
        return;
    }
    if (fl->refuse) {
        end_run(f, "refused", fl->refuse);
        return;
    }
    stk_op_start *start = stk_op_new(STK_OP_START, on_started, f);
    memcpy(start->in.run, fl->last_run, sizeof(start->in.run));
    memcpy(start->in.assignment, fl->assignment, sizeof(start->in.assignment));
    memcpy(start->in.worker, fl->worker, sizeof(start->in.worker));
    memcpy(start->in.incarnation, fl->incarnation, sizeof(start->in.incarnation));
    start->in.now = stk_wall_now();
    fly(f, start);
}

static void assign(fx *f, const stk_bus_msg *msg)
{
    fleet *fl = &f->fleet;
    stk_op_assign *op = stk_op_new(STK_OP_ASSIGN, on_assigned, f);
    stk_id_new("asg", stk_wall_now(), fl->assignment);
    memcpy(op->in.run, fl->last.id, sizeof(op->in.run));
    memcpy(op->in.tenant, fl->last.tenant, sizeof(op->in.tenant));
    memcpy(op->in.agent, fl->last.agent, sizeof(op->in.agent));
    memcpy(op->in.kind, fl->last.kind, sizeof(op->in.kind));
    memcpy(op->in.retry, fl->last.retry, sizeof(op->in.retry));
    memcpy(op->in.assignment, fl->assignment, sizeof(op->in.assignment));
    memcpy(op->in.worker, fl->worker, sizeof(op->in.worker));
    memcpy(op->in.incarnation, fl->incarnation, sizeof(op->in.incarnation));
    op->in.priority = fl->last.priority;
    op->in.submitted = fl->last.submitted;
    op->in.partition = msg->partition;
    op->in.offset = msg->offset;
    op->in.attempt = 1;
    op->in.plan = strcmp(fl->last.kind, "plan") == 0;
    stk_bytes_set(&op->in.record, STK_STR("{}"));
    fly(f, op);
}

static void on_request(stk_consumer *consumer, const stk_bus_msg *msg, void *arg)
{
    fx *f = arg;
    fleet *fl = &f->fleet;
    stk_err err;
    stk_request_done(&fl->last);
    stk_run_secret_done(&fl->secret);
    must(stk_request_decode(msg->value, &fl->last, &err), &err);
    must(stk_request_open(&fl->last, f->ring, &fl->secret, &err), &err);
    memcpy(fl->last_run, fl->last.id, sizeof(fl->last_run));
    assert_true(stk_str_eq(msg->key, stk_str_of(fl->last.id)));
    assert_true(stk_str_eq(stk_bus_header_get(msg, "tenant"), stk_str_of(fl->last.tenant)));
    assert_true(stk_str_eq(stk_bus_header_get(msg, "kind"), stk_str_of(fl->last.kind)));
    bool plan = strcmp(fl->last.kind, "plan") == 0;
    fl->plans += plan;
    fl->requests += !plan;
    if (!fl->hold && !(plan && !fl->plan))
        assign(f, msg);
    stk_bus_finish(consumer, msg->partition, msg->offset);
}

void fleet_start(fx *f)
{
    static const stk_consumer_ops ops = {.on_message = on_request};
    const stk_consumer_spec spec = {.topic = STK_TOPIC_REQUESTS, .group = "schedulers"};
    stk_err err;
    f->fleet.f = f;
    stk_id_new("wrk", stk_wall_now(), f->fleet.worker);
    stk_id_new("inc", stk_wall_now(), f->fleet.incarnation);
    stk_op_join *op = stk_op_new(STK_OP_JOIN, on_landed, f);
    memcpy(op->in.worker, f->fleet.worker, sizeof(op->in.worker));
    memcpy(op->in.incarnation, f->fleet.incarnation, sizeof(op->in.incarnation));
    snprintf(op->in.host, sizeof(op->in.host), "here");
    op->in.slots = 8;
    op->in.lanes = 4;
    op->in.lease = stk_sec(600);
    op->in.now = stk_wall_now();
    stk_bytes_set(&op->in.backends, STK_STR("[{\"name\":\"oci\",\"ok\":true,\"isolation\":\"container\"}]"));
    fly(f, op);
    fx_until(f, !f->fleet.flying);
    must(stk_bus_subscribe(f->bus, &spec, &ops, f, &f->fleet.consumer, &err), &err);
}

void fleet_stop(fx *f)
{
    if (f->fleet.consumer)
        stk_bus_unsubscribe(f->fleet.consumer);
    f->fleet.consumer = NULL;
    fx_until(f, !f->fleet.flying);
    stk_request_done(&f->fleet.last);
    stk_run_secret_done(&f->fleet.secret);
}

void fleet_end(fx *f)
{
    end_run(f, "exited", "");
}

void fleet_output(fx *f, int64_t offset, bool is_stderr, const char *text)
{
    stk_err err;
    stk_op_output_add *op = stk_op_new(STK_OP_OUTPUT_ADD, on_landed, f);
    memcpy(op->in.run, f->fleet.last_run, sizeof(op->in.run));
    memcpy(op->in.assignment, f->fleet.assignment, sizeof(op->in.assignment));
    op->in.offset = offset;
    op->in.length = (int64_t)strlen(text);
    must(stk_live_seal(f->ring, f->fleet.last_run, offset, is_stderr, stk_str_of(text), &op->in.sealed, &err),
         &err);
    fly(f, op);
}
