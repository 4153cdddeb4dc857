/* POST /v1/runs/{id}/cancel: the intent is stored first; a run that has not started ends at once. */
#include "api-gateway/runs.h"
#include "proto/base/log.h"
#include "proto/message/assignment.h"
#include "proto/message/event.h"
#include "proto/state/outbox.h"
#include <stdio.h>

static void answer_state(stk_gw_exchange *ex, int status, stk_run_state state, const char *reason)
{
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(1024);
    char location[32 + STK_AGENT_MAX];
    stk_jw w;
    snprintf(location, sizeof(location), "Location: /v1/runs/%s\r\n", ex->param);
    stk_jw_init(&w, &body);
    stk_jw_object(&w);
    stk_jw_ktext(&w, "id", ex->param);
    stk_jw_ktext(&w, "state", stk_run_state_text(state));
    if (reason)
        stk_jw_ktext(&w, "reason", reason);
    else
        stk_jw_kbool(&w, "cancel_asked", true);
    stk_jw_close(&w, '}');
    stk_gw_answer_json(ex, status, status == 202 ? location : "", &body);
}

static void answer_passed(stk_gw_exchange *ex, const char *reason)
{
    stk_err err;
    if (strcmp(reason, stk_reason_text(STK_REASON_CANCELLED)) == 0) {
        answer_state(ex, 200, STK_RUN_FINISHED, reason);
        return;
    }
    stk_err_set(&err, STK_E_CONFLICT, "%s has finished already%s%s", ex->param, *reason ? ": " : "", reason);
    stk_gw_answer_err(ex, &err);
}

static void answer_unknown(stk_gw_exchange *ex)
{
    stk_err err;
    stk_err_set(&err, STK_E_NOT_FOUND, "no run %s", ex->param);
    stk_gw_answer_err(ex, &err);
}

static void on_finished_out(bool ok, size_t published, void *arg)
{
    stk_gw_exchange *ex STK_AUTO(stk_gw_leave) = arg;
    /* Not out yet: a sweeper publishes it; the run is over all the same. */
    if (!stk_gw_over(ex))
        answer_state(ex, 200, STK_RUN_FINISHED, stk_reason_text(STK_REASON_CANCELLED));
}

static void on_lane(stk_publish_outcome outcome, int32_t partition, int64_t offset, const stk_err *err,
                    void *arg)
{
    stk_gw_exchange *ex STK_AUTO(stk_gw_leave) = arg;
    if (stk_gw_over(ex))
        return;
    /* The worker's heartbeat learns of it as well. */
    if (outcome != STK_PUBLISHED)
        stk_log_err(STK_LOG_WARN, &(stk_who){.run = ex->param, .tenant = ex->caller.tenant}, err,
                    "the cancel record was not published");
    answer_state(ex, 202, STK_RUN_RUNNING, NULL);
}

static void tell_worker(stk_gw_exchange *ex, const stk_op_cancel *op)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    stk_assignment asg = {.v = STK_MESSAGE_VERSION, .kind = "cancel", .assigned = stk_wall_now()};
    stk_err err = {0};
    stk_str_copy(stk_str_of(ex->param), asg.run, sizeof(asg.run));
    memcpy(asg.assignment, op->assignment, sizeof(asg.assignment));
    memcpy(asg.worker, op->worker, sizeof(asg.worker));
    memcpy(asg.incarnation, op->incarnation, sizeof(asg.incarnation));
    if (op->lane < 0 || stk_assignment_encode(&asg, &text, &err) < 0) {
        answer_state(ex, 202, STK_RUN_RUNNING, NULL);
        return;
    }
    stk_bus_out out = {.topic = STK_TOPIC_ASSIGNMENTS,
                       .partition = op->lane,
                       .key = stk_str_of(asg.run),
                       .value = stk_buf_view(&text)};
    stk_bus_publish(ex->gw->spec.bus, &out, on_lane, stk_gw_ref(ex));
}

static void on_cancel(stk_op *op_, void *arg)
{
    stk_op_cancel *op = (stk_op_cancel *)op_;
    stk_gw_exchange *ex STK_AUTO(stk_gw_leave) = arg;
    const stk_gateway *gw = ex->gw;
    if (stk_gw_over(ex))
        return;
    if (op_->rc < 0)
        stk_gw_answer_err(ex, &op_->err);
    else if (op->outcome == STK_CANCEL_FINISHED)
        stk_outbox_publish(gw->spec.bus, gw->spec.state, op->outbox, on_finished_out, stk_gw_ref(ex));
    else if (op->outcome == STK_CANCEL_ASKED)
        tell_worker(ex, op);
    else if (op->outcome == STK_CANCEL_PASSED)
        answer_passed(ex, "");
    else
        answer_unknown(ex);
}

/* What `finished` says of a run that never started. */
static int write_event(const stk_run_row *row, stk_wall now, stk_bytes *ret, stk_err *err)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    stk_event ev = {
        .v = STK_MESSAGE_VERSION, .kind = "finished", .submitted = row->submitted, .finished = now};
    memcpy(ev.run, row->id, sizeof(ev.run));
    memcpy(ev.tenant, row->tenant, sizeof(ev.tenant));
    memcpy(ev.agent, row->agent, sizeof(ev.agent));
    snprintf(ev.reason, sizeof(ev.reason), "%s", stk_reason_text(STK_REASON_CANCELLED));
    snprintf(ev.detail, sizeof(ev.detail), "cancelled before it started");
    ev.attempt = row->attempt;
    ev.labels = row->labels; /* borrowed */
    int rc = stk_event_encode(&ev, &text, err);
    if (rc == 0)
        stk_bytes_set(ret, stk_buf_view(&text));
    return rc;
}

static void on_stored(const stk_err *err, const stk_event *ev, void *arg)
{
    stk_gw_exchange *ex STK_AUTO(stk_gw_leave) = arg;
    if (stk_gw_over(ex))
        return;
    if (ev)
        answer_passed(ex, ev->reason);
    else if (err)
        stk_gw_answer_err(ex, err);
    else
        answer_unknown(ex);
}

static void on_row(stk_op *op_, void *arg)
{
    stk_op_run_get *op = (stk_op_run_get *)op_;
    stk_gw_exchange *ex STK_AUTO(stk_gw_leave) = arg;
    stk_wall now = stk_wall_now();
    stk_err err;
    if (stk_gw_over(ex))
        return;
    if (op_->rc < 0) {
        stk_gw_answer_err(ex, &op_->err);
    } else if (!op->found) {
        stk_store_result(ex->gw->spec.store, ex->caller.tenant, ex->param, on_stored, stk_gw_ref(ex));
    } else if (strcmp(op->row.kind, "run") != 0) {
        answer_unknown(ex);
    } else if (op->row.state == STK_RUN_FINISHED) {
        answer_passed(ex, op->row.reason);
    } else {
        stk_op_cancel *cancel = stk_gw_op(ex, STK_OP_CANCEL, on_cancel);
        memcpy(cancel->in.run, op->row.id, sizeof(cancel->in.run));
        memcpy(cancel->in.tenant, op->row.tenant, sizeof(cancel->in.tenant));
        cancel->in.now = now;
        if (write_event(&op->row, now, &cancel->in.event, &err) == 0) {
            stk_state_call(ex->gw->spec.state, cancel);
            return;
        }
        stk_gw_answer_err(ex, &err);
        stk_op_free(&cancel->op);
        stk_gw_unref_exchange(ex);
    }
}

void stk_gw_run_cancel(stk_gw_exchange *ex)
{
    stk_err err;
    if (stk_gw_run_id_check(ex, &err) < 0) {
        stk_gw_answer_err(ex, &err);
        return;
    }
    stk_op_run_get *op = stk_gw_op(ex, STK_OP_RUN_GET, on_row);
    stk_str_copy(stk_str_of(ex->param), op->in.run, sizeof(op->in.run));
    memcpy(op->in.tenant, ex->caller.tenant, sizeof(op->in.tenant));
    stk_state_call(ex->gw->spec.state, op);
}
