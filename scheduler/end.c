/* How a run ends in the scheduler: refused, expired, cancelled, or after too many attempts. The audit row is
 * durable first (a scheduler that dies in between writes the same row again), then the one arbiter decides,
 * then the event is durable, then the offset is finished. */
#include "scheduler/impl.h"
#include <stdarg.h>
#include <stdio.h>

#define STATE_PAUSE stk_ms(200)

static void drop_job(void *job)
{
    stk__job_free(job);
}

/* --- the event --- */

static void on_outbox_done(stk_op *op, void *arg)
{
    stk__leave(arg); /* what failed here, the sweep publishes once more */
}

static void on_event(void *arg)
{
    stk_job *job = arg;
    stk_scheduler *s = job->s;
    if (job->outbox) {
        stk_op_outbox_done *op = stk_op_new(STK_OP_OUTBOX_DONE, on_outbox_done, s);
        op->in.id = job->outbox;
        stk__enter(s);
        stk_state_call(s->spec.state, op);
    }
    stk__job_close(job);
    stk__pump(s);
}

static void on_finish(stk_op *op_, void *arg)
{
    stk_op_finish *op = (stk_op_finish *)op_;
    stk_job *job = arg;
    stk_scheduler *s = job->s;
    if (stk__leave(s)) {
        stk__job_free(job);
        return;
    }
    if (op_->rc < 0) {
        stk__job_delay(job, STATE_PAUSE);
    } else if (op->outcome == STK_FINISH_LOST) {
        job->reason = STK_REASON_NONE; /* somebody else has it: look again */
        stk__job_queue(job);
    } else {
        stk_failpoint("scheduler.ended", NULL); /* in state and its outbox, no event yet */
        s->counts.ended[job->reason]++;
        job->outbox = op->outbox;
        if (job->plan)
            on_event(job);
        else
            stk__letter_send(stk__letter_new(s, STK_TOPIC_EVENTS, -1, job->req.id, &job->event), on_event,
                             drop_job, job);
    }
}

static int event_text(const stk_job *job, stk_wall now, stk_buf *out, stk_err *err)
{
    const stk_request *req = &job->req;
    stk_event ev = {
        .v = STK_MESSAGE_VERSION, .kind = "finished", .attempt = job->attempts > 0 ? job->attempts : 0};
    snprintf(ev.run, sizeof(ev.run), "%s", req->id);
    snprintf(ev.tenant, sizeof(ev.tenant), "%s", req->tenant);
    snprintf(ev.agent, sizeof(ev.agent), "%s", req->agent);
    snprintf(ev.reason, sizeof(ev.reason), "%s", stk_reason_text(job->reason));
    snprintf(ev.detail, sizeof(ev.detail), "%s", job->detail);
    snprintf(ev.traceparent, sizeof(ev.traceparent), "%s", req->traceparent);
    ev.submitted = req->submitted;
    ev.finished = now;
    ev.labels = req->labels; /* borrowed */
    return stk_event_encode(&ev, out, err);
}

void stk__job_finish(stk_job *job)
{
    stk_scheduler *s = job->s;
    stk_wall now = stk_wall_now();
    stk_err err = {.code = STK_OK};
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    int rc = job->plan ? stk__plan_answer(job, job->detail, &text, &err) : event_text(job, now, &text, &err);
    stk_op_finish *op = stk_op_new(STK_OP_FINISH, on_finish, job);
    memcpy(op->in.run, job->req.id, sizeof(op->in.run));
    memcpy(op->in.tenant, job->req.tenant, sizeof(op->in.tenant));
    snprintf(op->in.reason, sizeof(op->in.reason), "%s",
             stk_reason_text(job->plan ? STK_REASON_EXITED : job->reason));
    op->in.now = now;
    op->in.plan = job->plan;
    if (rc < 0) {
        const stk_who who = {.run = job->req.id, .tenant = job->req.tenant};
        stk_log_err(STK_LOG_ERROR, &who, &err, "the end of this run can't be written");
        stk_op_free(&op->op);
        stk__job_close(job);
        return;
    }
    stk_bytes_set(job->plan ? &op->in.result : &op->in.event, stk_buf_view(&text));
    if (!job->plan)
        stk_bytes_set(&job->event, stk_buf_view(&text));
    s->index.slots[job->item].state = STK_SLOT_BUSY;
    stk__enter(s);
    stk_state_call(s->spec.state, op);
}

/* --- what comes before --- */

static void on_audited(void *arg)
{
    stk__job_finish(arg);
}

static int details_text(const stk_job *job, stk_buf *out)
{
    stk_jw w;
    stk_jw_init(&w, out);
    stk_jw_object(&w);
    stk_jw_ktext(&w, "code", stk_code_text(job->code));
    stk_jw_ktext(&w, "detail", job->detail);
    stk_jw_kint(&w, "attempts", job->attempts > 0 ? job->attempts : 0);
    stk_jw_close(&w, '}');
    return stk_jw_end(&w, NULL);
}

static void audit(void *arg)
{
    stk_job *job = arg;
    const stk_request *req = &job->req;
    const char *action = job->reason == STK_REASON_REFUSED ? STK_AUDIT_REFUSAL : STK_AUDIT_FAILURE;
    stk_audit_row row = {.time = stk_wall_now()};
    stk_buf details STK_AUTO(stk_buf_done) = STK_BUF(4096);
    stk_audit_id(req->submitted, req->id, "", action, 0, row.id);
    snprintf(row.action, sizeof(row.action), "%s", action);
    snprintf(row.actor, sizeof(row.actor), "%s", req->actor[0] ? req->actor : "scheduler");
    snprintf(row.tenant, sizeof(row.tenant), "%s", req->tenant);
    snprintf(row.agent, sizeof(row.agent), "%s", req->agent);
    snprintf(row.run, sizeof(row.run), "%s", req->id);
    if (details_text(job, &details) < 0)
        stk_buf_reset(&details);
    stk_letter *letter = stk__audit_letter(job->s, &row, stk_buf_view(&details));
    if (letter)
        stk__letter_send(letter, on_audited, drop_job, job);
    else
        stk__job_finish(job);
}

void stk__job_end(stk_job *job, stk_reason reason, stk_code code, const char *fmt, ...)
{
    stk_scheduler *s = job->s;
    char text[400], detail[480];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    bool named = reason == STK_REASON_REFUSED || reason == STK_REASON_SANDBOX_FAILED;
    snprintf(detail, sizeof(detail), "%s%s%s", named ? stk_code_text(code) : "", named ? ": " : "", text);
    job->reason = reason;
    job->code = code;
    free(job->detail);
    job->detail = stk_xstrdup(detail);
    s->index.slots[job->item].state = STK_SLOT_BUSY;
    if (job->plan || !named)
        stk__job_finish(job);
    else if (reason == STK_REASON_SANDBOX_FAILED && code == STK_E_SANDBOX)
        stk__letter_send(stk__dead_letter(s, stk_str_of(job->req.id), stk_bytes_view(&job->raw),
                                          job->partition, job->offset, detail),
                         audit, drop_job, job);
    else
        audit(job);
}
