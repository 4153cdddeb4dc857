#include "scheduler/impl.h"
#include "proto/state/describe.h"
#include <stdio.h>

#define STATE_PAUSE stk_ms(200)

static const double bounds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 10, 60};

/* --- the lane record --- */

static void on_lane_record(void *arg)
{
    stk_job *job = arg;
    stk_scheduler *s = job->s;
    stk_failpoint("scheduler.placed", NULL); /* the lane record is durable, the offset not finished */
    double took = stk_span_sec(stk_mono_sub(stk_mono_now(), stk_fair_arrived(s->fair, job->item)));
    size_t i = 0;
    while (i < STK_COUNT(bounds) && took > bounds[i])
        i++;
    s->counts.waits[i]++;
    s->counts.wait_sum += took;
    stk__job_close(job);
}

static void drop_job(void *job)
{
    stk__job_free(job);
}

void stk__job_to_lane(stk_job *job, int32_t lane, stk_bytes *record)
{
    stk_letter *letter = stk__letter_new(job->s, STK_TOPIC_ASSIGNMENTS, lane, job->req.id, record);
    stk__letter_send(letter, on_lane_record, drop_job, job);
}

/* --- ASSIGN --- */

static void hold_placing(stk_scheduler *s)
{
    s->closed = true;
    s->closed_until = stk_mono_add(stk_mono_now(), STATE_PAUSE);
    stk__due_arm(s);
}

/* One that came the short way is queued now like all others. */
static void wait_again(stk_job *job)
{
    if (job->known)
        stk__job_wait(job, true);
    else
        stk__job_queue(job);
}

static void assigned(stk_job *job, stk_op_assign *op)
{
    stk_scheduler *s = job->s;
    switch (op->outcome) {
    case STK_ASSIGN_OK:
        stk_failpoint("scheduler.assigned", NULL); /* in state, no lane record yet */
        s->counts.assigned++;
        stk__job_to_lane(job, op->lane, &op->in.record);
        break;
    case STK_ASSIGN_ALREADY:
        s->counts.again++;
        if (op->record.n)
            stk__job_to_lane(job, op->lane, &op->record);
        else
            stk__job_close(job);
        break;
    case STK_ASSIGN_PASSED:
        stk__job_close(job);
        break;
    case STK_ASSIGN_CANCELLED:
        stk__job_end(job, STK_REASON_CANCELLED, STK_E_CANCELLED, "cancelled before it started");
        break;
    case STK_ASSIGN_CAP:
        stk_fair_park(s->fair, job->item);
        wait_again(job);
        break;
    case STK_ASSIGN_CLOSED:
        hold_placing(s);
        wait_again(job);
        break;
    case STK_ASSIGN_NO_WORKER:
    case STK_ASSIGN_NO_SANDBOX:
    case STK_ASSIGN_COUNTED:
        wait_again(job);
        break;
    }
}

static void on_assign(stk_op *op_, void *arg)
{
    stk_op_assign *op = (stk_op_assign *)op_;
    stk_job *job = arg;
    stk_scheduler *s = job->s;
    if (stk__leave(s)) {
        stk__job_free(job);
        return;
    }
    s->assigning--;
    bool taken = op_->rc == 0 && op->outcome == STK_ASSIGN_OK;
    /* A full or vanished worker stays booked until the next picture, so that it is not chosen again at once.
     */
    if (!taken && !(op_->rc == 0 && op->outcome == STK_ASSIGN_NO_WORKER))
        stk_fleet_void(&s->fleet, job->ticket);
    if (!taken)
        stk_fleet_stale(s);
    if (op_->rc < 0) {
        hold_placing(s);
        wait_again(job);
    } else {
        assigned(job, op);
    }
    stk__pump(s);
}

static int lane_record(stk_job *job, const stk_place_choice *choice, stk_op_assign *op, stk_err *err)
{
    const stk_place_view *view = &job->s->fleet.view;
    const stk_place_worker *worker = &view->workers[choice->worker];
    stk_wall now = stk_wall_now();
    stk_assignment asg = {
        .v = STK_MESSAGE_VERSION, .attempt = job->attempts + 1, .assigned = now, .request = job->raw};
    stk_id_new("asg", now, asg.assignment); /* audit ids take the time out of it */
    snprintf(asg.kind, sizeof(asg.kind), "%s", job->plan ? "plan" : "assign");
    snprintf(asg.run, sizeof(asg.run), "%s", job->req.id);
    snprintf(asg.worker, sizeof(asg.worker), "%s", worker->id);
    snprintf(asg.incarnation, sizeof(asg.incarnation), "%s", worker->incarnation);
    if (choice->backend != STK_PLACE_AUTO)
        snprintf(asg.backend, sizeof(asg.backend), "%s", stk_place_backend_text(choice->backend));
    if (choice->warm != UINT32_MAX)
        snprintf(asg.sandbox, sizeof(asg.sandbox), "%s", view->warm[choice->warm].sandbox);
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(2 * STK_RECORD_MAX);
    int rc = stk_assignment_encode(&asg, &text, err);
    if (rc < 0)
        return rc;
    stk_bytes_set(&op->in.record, stk_buf_view(&text));
    memcpy(op->in.assignment, asg.assignment, sizeof(op->in.assignment));
    memcpy(op->in.worker, asg.worker, sizeof(op->in.worker));
    memcpy(op->in.incarnation, asg.incarnation, sizeof(op->in.incarnation));
    memcpy(op->in.sandbox, asg.sandbox, sizeof(op->in.sandbox));
    op->in.attempt = asg.attempt;
    return 0;
}

void stk__job_assign(stk_job *job, const stk_place_choice *choice)
{
    stk_scheduler *s = job->s;
    const stk_request *req = &job->req;
    stk_err err = {.code = STK_OK};
    stk_op_assign *op = stk_op_new(STK_OP_ASSIGN, on_assign, job);
    if (lane_record(job, choice, op, &err) < 0) {
        stk_op_free(&op->op);
        stk__job_end(job, STK_REASON_SANDBOX_FAILED, STK_E_INTERNAL, "the assignment can't be written: %s",
                     err.detail);
        return;
    }
    STK_STATE_DESCRIBE(&op->in, req);
    op->in.partition = job->partition;
    op->in.offset = job->offset;
    op->in.running_cap = s->spec.running_cap;
    op->in.plan = job->plan;
    op->in.first = !job->known;
    job->ticket = stk_fleet_book(&s->fleet, choice, !job->plan);
    s->counts.warm += choice->warm != UINT32_MAX;
    s->assigning++;
    stk__enter(s);
    stk_state_call(s->spec.state, op);
}
