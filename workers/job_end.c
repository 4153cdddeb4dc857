#include "proto/base/fail.h"
#include "proto/state/outbox.h"
#include "workers/job_impl.h"
#include <stdio.h>

#define DRAIN_LIMIT stk_sec(2)
#define RETRY_AFTER stk_ms(200)

/* The way out, in order. A step that has nothing to do is passed. */
enum { END_WAIT, END_DRAIN, END_RESULT, END_VERDICT, END_DESTROY, END_ROWS, END_DONE };

static void after(stk_job *job, int step)
{
    job->end_at = step;
    stk_job_end_step(job);
}

/* --- END_DRAIN: every egress record is here before the result is made
 * ---------------------------------------- */

static void on_drain_limit(void *arg)
{
    stk_job *job = arg;
    if (job->end_at == END_DRAIN)
        after(job, END_RESULT);
}

void stk_job_on_drained(stk_box *box, void *arg)
{
    on_drain_limit(arg);
}

static void drain(stk_job *job)
{
    if (!job->box_ready) {
        after(job, END_RESULT);
        return;
    }
    if (!stk_box_drain(job->box)) {
        after(job, END_RESULT);
        return;
    }
    job->drain_timer = stk_timer_new(job->ctx->loop, on_drain_limit, job);
    stk_timer_set(job->drain_timer, DRAIN_LIMIT);
}

/* --- END_RESULT: the evidence is durable before anybody is told
 * ------------------------------------------------ */

static void on_result(bool durable, void *arg)
{
    if (stk_failpoint("worker.after_result", NULL) == 0)
        after(arg, END_VERDICT);
}

static void result(stk_job *job)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    stk_err err;
    if (!job->started || job->giving_back) {
        after(job, END_VERDICT);
    } else if (stk_job_event_text(job, "result", true, &text, &err) < 0) {
        stk_log_err(STK_LOG_ERROR, &job->who, &err, "no result");
        after(job, END_VERDICT);
    } else {
        stk_publish_surely(job->ctx, STK_TOPIC_EVENTS, job->asg.run, stk_buf_view(&text), on_result, job);
    }
}

/* --- END_VERDICT: one terminal state, by compare-and-set
 * -------------------------------------------------------- */

static void verdict(stk_job *job);

static void on_retry(void *arg)
{
    stk_job *job = arg;
    if (job->end_at == END_VERDICT)
        verdict(job);
}

static void retry_verdict(stk_job *job, const stk_err *err)
{
    stk_log_err(STK_LOG_WARN, &job->who, err, "state does not take the verdict; trying again");
    if (!job->limit_timer)
        job->limit_timer = stk_timer_new(job->ctx->loop, on_retry, job);
    stk_timer_set(job->limit_timer, RETRY_AFTER);
}

static void on_flushed(bool ok, size_t published, void *arg)
{
    stk_job *job = arg;
    job->rows--; /* a failed one is the sweeper's */
    stk_job_end_step(job);
}

static void publish_outbox(stk_job *job, int64_t id)
{
    if (!id)
        return;
    job->rows++;
    stk_outbox_publish(job->ctx->bus, job->ctx->state, id, on_flushed, job);
}

static void on_finish(stk_op *base, void *arg)
{
    stk_job *job = arg;
    stk_op_finish *op = (stk_op_finish *)base;
    if (base->rc < 0) {
        retry_verdict(job, &base->err);
        return;
    }
    job->lost_race = op->outcome == STK_FINISH_LOST;
    if (stk_failpoint("worker.after_finish", NULL) == 0)
        publish_outbox(job, op->outbox);
    after(job, END_DESTROY);
}

static void on_requeue(stk_op *base, void *arg)
{
    stk_job *job = arg;
    stk_op_requeue *op = (stk_op_requeue *)base;
    if (base->rc < 0) {
        retry_verdict(job, &base->err);
        return;
    }
    job->lost_race = op->outcome == STK_REQUEUE_STALE;
    publish_outbox(job, op->outbox);
    after(job, END_DESTROY);
}

static void requeue(stk_job *job)
{
    stk_op_requeue *op = stk_op_new(STK_OP_REQUEUE, on_requeue, job);
    memcpy(op->in.run, job->asg.run, sizeof(op->in.run));
    memcpy(op->in.assignment, job->asg.assignment, sizeof(op->in.assignment));
    op->in.count = job->counts;
    op->in.repeat = job->started;
    stk_bytes_set(&op->in.request, stk_bytes_view(&job->asg.request));
    stk_state_call(job->ctx->state, op);
}

static void verdict(stk_job *job)
{
    stk_err err;
    if (job->lost_race) {
        after(job, END_DESTROY);
        return;
    }
    if (job->giving_back) {
        requeue(job);
        return;
    }
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    if (stk_job_event_text(job, "finished", true, &text, &err) < 0) {
        stk_log_err(STK_LOG_ERROR, &job->who, &err, "no verdict"); /* the scheduler's to end */
        job->counts = true;
        requeue(job);
        return;
    }
    stk_op_finish *op = stk_op_new(STK_OP_FINISH, on_finish, job);
    memcpy(op->in.run, job->asg.run, sizeof(op->in.run));
    memcpy(op->in.tenant, job->subject.tenant, sizeof(op->in.tenant));
    memcpy(op->in.assignment, job->asg.assignment, sizeof(op->in.assignment));
    snprintf(op->in.reason, sizeof(op->in.reason), "%s", stk_reason_text(job->reason));
    op->in.now = stk_wall_now();
    stk_bytes_set(&op->in.event, stk_buf_view(&text));
    stk_state_call(job->ctx->state, op);
}

/* --- END_DESTROY, END_ROWS, END_DONE
 * ------------------------------------------------------------------------------- */

static void on_destroyed(const stk_err *err, void *arg)
{
    stk_job *job = arg;
    job->box = NULL;
    if (err)
        stk_log_err(STK_LOG_ERROR, &job->who, err, "the sandbox left something behind");
    after(job, END_ROWS);
}

static void destroy(stk_job *job)
{
    job->box_ready = false;
    if (job->box)
        stk_box_destroy(job->box, job->journal, on_destroyed, job);
    else
        after(job, END_ROWS);
}

static void on_row(bool durable, void *arg)
{
    stk_job *job = arg;
    job->rows--;
    stk_job_end_step(job);
}

void stk_job_row(stk_job *job, stk_audit_row *row)
{
    job->rows++;
    stk_row_publish(job->ctx, row, on_row, job);
    stk_audit_row_done(row);
}

typedef struct discard {
    stk_job *job;
    stk_box *box;
    char journal[256];
} discard;

static void on_discarded(const stk_err *err, void *arg)
{
    discard *d = arg;
    if (err)
        stk_log_err(STK_LOG_ERROR, &d->job->who, err, "a sandbox left something behind");
    if (*d->journal)
        unlink(d->journal); /* it served nobody */
    on_row(true, d->job);
    free(d);
}

static void discard_posted(void *arg)
{
    discard *d = arg;
    stk_box_destroy(d->box, d->journal, on_discarded, d);
}

void stk_job_discard(stk_job *job)
{
    static const stk_box_ops deaf;
    discard *d = stk_xcalloc(1, sizeof(*d));
    *d = (discard){.job = job, .box = STK_TAKE(job->box)};
    stk_box_own(d->box, &deaf, d);
    job->rows++;
    stk_loop_post(job->ctx->loop, discard_posted, d);
}

static void last_rows(stk_job *job)
{
    stk_audit_row row;
    stk_buf details STK_AUTO(stk_buf_done) = STK_BUF(8192);
    stk_job_teardown_details(job, &details);
    job->end_at = END_DONE;
    if (!*job->subject.tenant) { /* the request was never read: there is nobody to tell */
        stk_job_end_step(job);
        return;
    }
    if (job->giving_back || job->reason == STK_REASON_SANDBOX_FAILED ||
        job->reason == STK_REASON_WORKER_LOST) {
        stk_row_make(&job->subject, STK_AUDIT_FAILURE, 0, stk_buf_view(&details), &row);
        stk_job_row(job, &row);
    } else if (job->reason == STK_REASON_REFUSED) {
        stk_row_make(&job->subject, STK_AUDIT_REFUSAL, 0, stk_buf_view(&details), &row);
        stk_job_row(job, &row);
    }
    if (job->launched && stk_failpoint("worker.before_teardown", NULL) == 0) {
        stk_row_make(&job->subject, STK_AUDIT_TEARDOWN, 0, stk_buf_view(&details), &row);
        stk_job_row(job, &row);
    }
    stk_job_end_step(job);
}

static void job_free(stk_job *job)
{
    stk_timer *timers[] = {job->live_timer, job->limit_timer, job->drain_timer};
    for (size_t i = 0; i < STK_COUNT(timers); i++)
        if (timers[i])
            stk_timer_free(timers[i]);
    stk_stage_done(&job->stage);
    stk_evidence_done(&job->evidence);
    stk_output_done(&job->out[0]);
    stk_output_done(&job->out[1]);
    stk_buf_done(&job->live);
    stk_run_secret_done(&job->secret);
    stk_request_done(&job->req);
    stk_assignment_done(&job->asg);
    free(job);
}

static void done(stk_job *job)
{
    if (*job->journal)
        unlink(job->journal);
    if (job->launched)
        stk_launch_file_remove(job->ctx, job->subject.sandbox);
    job->ops.on_done(job, job->ops.arg);
    job_free(job);
}

static void step(void *arg)
{
    stk_job *job = arg;
    job->step_posted = false;
    job->entered = job->end_at;
    switch (job->end_at) {
    case END_WAIT:
        if (job->calls == 0) {
            job->entered = job->end_at = END_DRAIN;
            drain(job);
        }
        break;
    case END_RESULT:
        result(job);
        break;
    case END_VERDICT:
        verdict(job);
        break;
    case END_DESTROY:
        destroy(job);
        break;
    case END_ROWS:
        last_rows(job);
        break;
    case END_DONE:
        if (job->rows == 0)
            done(job);
        break;
    default:
        break;
    }
}

/* Steps run from the loop, never from inside a callback of the box, so that a step may free what called it.
 */
void stk_job_end_step(stk_job *job)
{
    if (!job->ending || job->step_posted)
        return;
    bool waits = job->end_at == END_WAIT || job->end_at == END_DONE;
    if (!waits && job->entered == job->end_at)
        return; /* under way: its own callback goes on */
    job->step_posted = true;
    stk_loop_post(job->ctx->loop, step, job);
}

void stk_job_conclude(stk_job *job, stk_reason reason, const char *detail)
{
    if (job->ending)
        return;
    job->ending = true;
    job->reason = reason;
    job->ended = stk_wall_now();
    snprintf(job->detail, sizeof(job->detail), "%s", detail);
    if (job->limit_timer)
        stk_timer_free(STK_TAKE(job->limit_timer));
    stk_job_output_flush(job);
    after(job, END_WAIT);
}

static stk_reason reason_of(const stk_exec_end *end)
{
    if (end->timed_out)
        return STK_REASON_TIMEOUT;
    if (end->signal == 9 && end->oom_killed)
        return STK_REASON_OOM;
    return end->signal ? STK_REASON_SIGNALED : STK_REASON_EXITED;
}

static void conclude_exit(stk_job *job)
{
    stk_job_conclude(job, reason_of(&job->end), job->end.detail);
}

void stk_job_exited(stk_job *job)
{
    if (job->limit_timer)
        stk_timer_free(STK_TAKE(job->limit_timer));
    stk_stage_out(job, conclude_exit);
}

void stk_job_fail(stk_job *job, stk_reason reason, const char *why, bool count)
{
    if (job->ending)
        return;
    if (!job->executing || strcmp(job->req.retry, "always") == 0)
        stk_job_give_back(job, why, count || job->executing);
    else
        stk_job_conclude(job, reason, why);
}

/* How often is the scheduler's to say: it ends a run with too many attempts. */
void stk_job_give_back(stk_job *job, const char *why, bool count)
{
    if (job->ending)
        return;
    job->giving_back = true;
    job->counts = count;
    stk_job_conclude(job, STK_REASON_SANDBOX_FAILED, why);
}
