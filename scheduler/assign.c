#include "scheduler/impl.h"
#include <stdio.h>

#define STATE_PAUSE stk_ms(200)

static const double bounds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1, 10, 60};

/* --- the lane record --- */

static void on_lane_record(void *arg)
{
    stk_job *job = arg;
    stk_scheduler *s = job->s;
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

static void assigned(stk_job *job, stk_op_assign *op)
{
    stk_scheduler *s = job->s;
    switch (op->outcome) {
    case STK_ASSIGN_OK:
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
        stk__job_wait(job, true);
        break;
    case STK_ASSIGN_CLOSED:
        stk__job_wait(job, true);
        hold_placing(s);
        break;
    case STK_ASSIGN_NO_WORKER:
    case STK_ASSIGN_NO_SANDBOX:
        stk__job_wait(job, true);
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
        stk__job_wait(job, true);
        hold_placing(s);
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

static void assign(stk_job *job, const stk_place_choice *choice)
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
    memcpy(op->in.run, req->id, sizeof(op->in.run));
    memcpy(op->in.tenant, req->tenant, sizeof(op->in.tenant));
    memcpy(op->in.agent, req->agent, sizeof(op->in.agent));
    memcpy(op->in.kind, req->kind, sizeof(op->in.kind));
    memcpy(op->in.retry, req->retry, sizeof(op->in.retry));
    op->in.priority = req->priority;
    op->in.submitted = req->submitted;
    op->in.deadline = req->deadline;
    for (size_t i = 0; i < req->labels.n; i++)
        stk_map_add(&op->in.labels, stk_bytes_view(&req->labels.v[i].key),
                    stk_bytes_view(&req->labels.v[i].value));
    op->in.partition = job->partition;
    op->in.offset = job->offset;
    op->in.running_cap = s->spec.running_cap;
    op->in.plan = job->plan;
    job->ticket = stk_fleet_book(&s->fleet, choice, !job->plan);
    s->counts.warm += choice->warm != UINT32_MAX;
    s->assigning++;
    stk__enter(s);
    stk_state_call(s->spec.state, op);
}

/* --- from the queue to a place --- */

/* False when the job went another way: too late, off the list, or the configuration it was accepted under is
 * not here yet. */
static bool still_wanted(stk_job *job)
{
    stk_scheduler *s = job->s;
    int64_t version = 0;
    if (job->req.deadline.ns && !stk_wall_before(stk_wall_now(), job->req.deadline)) {
        stk__job_end(job, STK_REASON_EXPIRED, STK_E_TIMEOUT, "its deadline passed while it was queued");
        return false;
    }
    if (job->plan)
        return true;
    const stk_sandbox_doc *doc = stk__docs_get(s->docs, job->req.tenant, &version);
    stk_span waited = stk_mono_sub(stk_mono_now(), stk_fair_arrived(s->fair, job->item));
    if (version < job->req.config_version && waited.ns < STK_SCHED_NOBODY.ns) {
        stk__job_delay(job, stk_ms(20));
        return false;
    }
    if (doc && doc->enabled && stk_sandbox_doc_agent(doc, stk_str_of(job->req.agent)))
        return true;
    stk__job_end(job, STK_REASON_REFUSED, STK_E_NOT_SANDBOXED, "%s while the run was queued",
                 doc && !doc->enabled ? "sandboxing was turned off" : "the agent was taken off the list");
    return false;
}

/* Nobody is refused for a backend that may be about to join. */
static bool settled(const stk_scheduler *s)
{
    return s->somebody_since.ns && stk_mono_sub(stk_mono_now(), s->somebody_since).ns >= STK_SCHED_SETTLE.ns;
}

static bool nobody_for(const stk_scheduler *s, stk_span span)
{
    return s->nobody_since.ns && stk_mono_sub(stk_mono_now(), s->nobody_since).ns >= span.ns;
}

static void place(stk_job *job)
{
    stk_scheduler *s = job->s;
    stk_place_need need;
    stk_place_choice choice;
    if (!still_wanted(job))
        return;
    stk__job_need(job, &need);
    stk_place(&s->fleet.view, &need, &choice);
    stk_span waited = stk_mono_sub(stk_mono_now(), stk_fair_arrived(s->fair, job->item));
    bool too_long = choice.what == STK_PLACE_NOBODY &&
                    waited.ns >= (job->plan ? STK_SCHED_NOBODY_PLAN : STK_SCHED_NOBODY).ns &&
                    nobody_for(s, job->plan ? STK_SCHED_NOBODY_PLAN : STK_SCHED_NOBODY);
    if (choice.what == STK_PLACE_HERE)
        assign(job, &choice);
    else if (too_long || (choice.what == STK_PLACE_LACKING && settled(s)))
        stk__job_end(job, STK_REASON_REFUSED, STK_E_BACKEND, "%s", choice.why);
    else
        stk__job_delay(job, choice.what == STK_PLACE_FULL ? stk_ms(5) : stk_ms(100));
}

static void on_fetched(const stk_bus_msg *msg, const stk_err *err, void *arg)
{
    stk_job *job = arg; /* a shell: item, partition, offset */
    stk_scheduler *s = job->s;
    stk_job *whole = NULL;
    if (stk__leave(s)) {
        stk__job_free(job);
        return;
    }
    s->assigning--;
    stk_err why = {.code = STK_OK};
    int rc = msg ? stk__job_new(s, msg, &whole, &why) : -(int)err->code;
    if (rc == 0) {
        whole->item = job->item;
        whole->attempts = job->attempts;
        stk__job_free(job);
        place(whole);
    } else if (!msg && err->code != STK_E_NOT_FOUND) {
        /* The bus is away: the shell waits with its place. */
        stk__job_delay(job, STATE_PAUSE);
    } else {
        stk_log_err(STK_LOG_ERROR, NULL, msg ? &why : err, "the request at %d/%lld can't be read again",
                    job->partition, (long long)job->offset);
        stk__job_close(job);
    }
    stk__pump(s);
}

static void fetch(stk_scheduler *s, uint32_t item)
{
    const stk_slot *slot = &s->index.slots[item];
    stk_job *shell = stk_xcalloc(1, sizeof(*shell));
    *shell = (stk_job){.s = s,
                       .item = item,
                       .partition = slot->partition,
                       .offset = slot->offset,
                       .attempts = slot->attempts};
    s->assigning++;
    stk__enter(s);
    stk_bus_fetch(s->spec.bus, STK_TOPIC_REQUESTS, slot->partition, slot->offset, on_fetched, shell);
}

void stk__item_go(stk_scheduler *s, uint32_t item)
{
    stk_slot *slot = &s->index.slots[item];
    stk_job *job = STK_TAKE(slot->job);
    stk_index_set_due(&s->index, item, (stk_mono){0});
    slot->state = STK_SLOT_BUSY;
    if (job)
        s->index.bytes -= stk__job_bytes(job);
    if (!job || !job->req.id[0]) {
        stk__job_free(job);
        fetch(s, item);
    } else if (job->reason) {
        stk__job_finish(job);
    } else if (job->attempts < 0) {
        stk__job_queue(job);
    } else {
        place(job);
    }
}

/* Classes for which placing would come to something now. */
static uint32_t possible(const stk_scheduler *s)
{
    uint32_t mask = 0, asked = stk_fair_classes(s->fair);
    for (; asked; asked &= asked - 1) {
        unsigned cls = (unsigned)__builtin_ctz(asked);
        stk_place_need need;
        stk_place_choice choice;
        stk__class_need(cls, &need);
        stk_place(&s->fleet.view, &need, &choice);
        bool go = choice.what == STK_PLACE_HERE || (choice.what == STK_PLACE_LACKING && settled(s)) ||
                  (choice.what == STK_PLACE_NOBODY &&
                   nobody_for(s, need.plan ? STK_SCHED_NOBODY_PLAN : STK_SCHED_NOBODY));
        mask |= (go ? 1u : 0u) << cls;
    }
    return mask;
}

void stk__pump(stk_scheduler *s)
{
    if (s->pumping || s->closed || s->draining || !s->fleet.known)
        return;
    s->pumping = true;
    while (s->assigning < STK_SCHED_ASSIGNING && !s->closed) {
        uint32_t classes = possible(s);
        uint32_t item = classes ? stk_fair_pick(s->fair, classes, stk_mono_now()) : STK_FAIR_NONE;
        if (item == STK_FAIR_NONE)
            break;
        stk__item_go(s, item);
    }
    s->pumping = false;
}
