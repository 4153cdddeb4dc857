#include "scheduler/impl.h"
#include "proto/state/describe.h"

#define RETRY stk_ms(200)

/* Pauses delivery while too much is under way, and for good on a message of a newer version: an upgrade is
 * under way. */
void stk__intake_flow(stk_scheduler *s)
{
    bool pause = s->draining || s->newer ||
                 s->queueing >= (s->paused ? STK_SCHED_QUEUEING / 2 : STK_SCHED_QUEUEING) ||
                 stk_fair_count(s->fair) >= (size_t)s->spec.index_max || s->index.bytes > 2 * STK_SCHED_BYTES;
    if (pause == s->paused || !s->consumer)
        return;
    s->paused = pause;
    stk_bus_pause(s->consumer, pause);
}

/* --- what can't be read --- */

typedef struct refuse {
    stk_scheduler *s;
    int32_t partition;
    int64_t offset;
} refuse;

static void on_dead_kept(void *arg)
{
    refuse *r = arg;
    stk_bus_finish(r->s->consumer, r->partition, r->offset);
    free(r);
}

static void to_dead(stk_scheduler *s, const stk_bus_msg *msg, const stk_err *why)
{
    refuse *r = stk_xcalloc(1, sizeof(*r));
    *r = (refuse){s, msg->partition, msg->offset};
    s->counts.dead++;
    stk_log_warn(NULL, "request %s/%d/%lld can't be read and goes to %s: %s %s", msg->topic, msg->partition,
                 (long long)msg->offset, STK_TOPIC_DEAD, why->detail, why->pointer);
    stk__letter_send(stk__dead_letter(s, msg->key, msg->value, msg->partition, msg->offset, why->detail),
                     on_dead_kept, free, r);
}

/* --- QUEUE --- */

static stk_span backoff(int64_t attempts)
{
    uint8_t r;
    stk_random(&r, 1);
    int64_t ms = 200 * (INT64_C(1) << stk_min((size_t)attempts, 5));
    return stk_ms(ms / 2 + ms * r / 512);
}

static void queued(stk_job *job)
{
    stk_scheduler *s = job->s;
    if (job->attempts >= s->spec.max_attempts && !job->plan) {
        stk__job_end(job, STK_REASON_SANDBOX_FAILED, STK_E_SANDBOX,
                     "no sandbox held this run: %lld attempts failed", (long long)job->attempts);
    } else if (job->attempts > 0) {
        s->counts.retried++;
        stk__job_delay(job, backoff(job->attempts));
    } else {
        stk__job_wait(job, false);
        stk__pump(s);
    }
}

static void on_queue(stk_op *op_, void *arg)
{
    stk_op_queue *op = (stk_op_queue *)op_;
    stk_job *job = arg;
    stk_scheduler *s = job->s;
    if (stk__leave(s)) {
        stk__job_free(job);
        return;
    }
    s->queueing--;
    stk__intake_flow(s);
    job->attempts = op->attempt;
    job->known = op_->rc == 0;
    if (op_->rc < 0) {
        stk__job_delay(job, RETRY);
    } else if (op->outcome == STK_QUEUE_PASSED) {
        stk__job_close(job);
    } else if (op->outcome == STK_QUEUE_ASSIGNED && op->assignment.n) {
        s->counts.again++;
        stk__job_to_lane(job, op->lane, &op->assignment);
    } else if (op->outcome == STK_QUEUE_ASSIGNED) {
        stk__job_close(job); /* adopted: its worker holds it already */
    } else if (op->cancel_asked) {
        stk__job_end(job, STK_REASON_CANCELLED, STK_E_CANCELLED, "cancelled before it started");
    } else {
        queued(job);
    }
}

void stk__job_queue(stk_job *job)
{
    stk_scheduler *s = job->s;
    const stk_request *req = &job->req;
    stk_op_queue *op = stk_op_new(STK_OP_QUEUE, on_queue, job);
    STK_STATE_DESCRIBE(&op->in, req);
    op->in.partition = job->partition;
    op->in.offset = job->offset;
    s->index.slots[job->item].state = STK_SLOT_BUSY;
    s->queueing++;
    stk__enter(s);
    stk_state_call(s->spec.state, op);
    stk__intake_flow(s);
}

/* --- the consumer --- */

/* A start takes as much of the tenant's share as it takes processors. */
static unsigned cost_of(const stk_job *job)
{
    const stk_sandbox_doc *doc = stk__docs_get(job->s->docs, job->req.tenant, NULL);
    const stk_agent_config *agent = doc ? stk_sandbox_doc_agent(doc, stk_str_of(job->req.agent)) : NULL;
    int64_t cpus = agent && !job->plan ? (agent->limits.cpu_millis + 999) / 1000 : 1;
    return (unsigned)(cpus < STK_FAIR_COST_MAX ? cpus : STK_FAIR_COST_MAX);
}

static void on_message(stk_consumer *consumer, const stk_bus_msg *msg, void *arg)
{
    stk_scheduler *s = arg;
    stk_job *job = NULL;
    stk_err err = {.code = STK_OK};
    s->counts.read++;
    stk_failpoint("scheduler.read", NULL);
    int rc = stk__job_new(s, msg, &job, &err);
    if (rc == -STK_E_NEWER) {
        s->newer = true;
        stk__intake_flow(s);
        stk_log_err(STK_LOG_ERROR, NULL, &err,
                    "requests of a newer version are waiting: upgrade this scheduler; it reads no more");
        return;
    }
    if (rc == 0)
        rc = stk_fair_add(s->fair, stk_str_of(job->req.tenant), (unsigned)job->req.priority, cost_of(job),
                          stk_mono_now(), &job->item, &err);
    if (rc < 0) {
        stk__job_free(job);
        to_dead(s, msg, &err);
        return;
    }
    stk_index_grow(&s->index, stk_fair_span(s->fair));
    s->index.slots[job->item] =
        (stk_slot){.state = STK_SLOT_BUSY, .partition = job->partition, .offset = job->offset};
    if (!stk__job_fast(job))
        stk__job_queue(job);
}

/* Another member has them now. What is under way goes on: state decides who is right. */
static void on_revoked(stk_consumer *consumer, const int32_t *partitions, size_t n, void *arg)
{
    stk_scheduler *s = arg;
    size_t span = stk_fair_span(s->fair);
    for (uint32_t item = 0; item < span; item++) {
        stk_slot *slot = &s->index.slots[item];
        bool waits = slot->state == STK_SLOT_WAITING || slot->state == STK_SLOT_DELAYED, gone = false;
        for (size_t i = 0; waits && i < n; i++)
            gone |= slot->partition == partitions[i];
        if (!gone)
            continue;
        if (slot->job)
            s->index.bytes -= stk__job_bytes(slot->job);
        stk__job_free(slot->job);
        stk_index_set_due(&s->index, item, (stk_mono){0});
        *slot = (stk_slot){.state = STK_SLOT_FREE};
        stk_fair_drop(s->fair, item);
    }
    stk__intake_flow(s);
}

static void on_error(stk_consumer *consumer, const stk_err *err, void *arg)
{
    stk_log_err(STK_LOG_ERROR, NULL, err,
                "a partition of %s can't be read on: its requests wait until that is repaired",
                STK_TOPIC_REQUESTS);
}

const stk_consumer_ops stk__intake_ops = {
    .on_message = on_message, .on_revoked = on_revoked, .on_error = on_error};
