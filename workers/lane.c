#include "workers/lane.h"
#include "proto/base/fail.h"
#include "proto/base/log.h"
#include "workers/plan.h"

#define TRIM_RECORDS 256
#define WINDOW       4096
#define REFILL_AFTER stk_ms(50) /* making a sandbox takes a processor the run wants now */

/* One record of the lane whose offset is not yet done. */
typedef struct record {
    struct record *next;
    stk_lane *lane;
    int64_t offset;
    bool finished;
} record;

struct stk_lane {
    stk_ctx *ctx;
    stk_pool *pool;
    stk_consumer *consumer;
    record *first, **last; /* in order of offset */
    stk_job **jobs;
    size_t njobs;
    size_t plans;
    stk_lane_counts counts;
    stk_timer *refill; /* pending: refilling */
    bool refilling;
    bool reporting; /* a LANE_DONE is in flight */
    bool freed;     /* … and the lane waits for what is */
    size_t burying; /* records on their way to stk.dead */
    int64_t done, reported, trimmed;
    stk_fn idle;
    void *idle_arg;
};

/* --- offsets
 * --------------------------------------------------------------------------------------------------- */

static void report(stk_lane *lane);

static void free_when_quiet(stk_lane *lane)
{
    if (!lane->freed || lane->reporting || lane->burying)
        return;
    while (lane->first) {
        record *rec = lane->first;
        lane->first = rec->next;
        free(rec);
    }
    stk_timer_free(lane->refill);
    free(lane->jobs);
    free(lane);
}

/* State has the offset: a later holder begins there, what lies below may go. */
static void told(stk_lane *lane, int64_t offset)
{
    if (offset - lane->trimmed >= TRIM_RECORDS) {
        lane->trimmed = offset;
        stk_bus_trim(lane->ctx->bus, STK_TOPIC_ASSIGNMENTS, lane->ctx->lane, offset);
    }
    report(lane);
}

static void on_reported(stk_op *base, void *arg)
{
    stk_lane *lane = arg;
    stk_op_lane_done *op = (stk_op_lane_done *)base;
    lane->reporting = false;
    if (base->rc < 0)
        lane->reported = op->in.offset - 1; /* with the next record that is done */
    else if (!lane->freed)
        told(lane, op->in.offset);
    free_when_quiet(lane);
}

static void report(stk_lane *lane)
{
    if (lane->reporting || lane->reported == lane->done)
        return;
    lane->reporting = true;
    lane->reported = lane->done;
    stk_op_lane_done *op = stk_op_new(STK_OP_LANE_DONE, on_reported, lane);
    op->in.lane = lane->ctx->lane;
    memcpy(op->in.worker, lane->ctx->worker, sizeof(op->in.worker));
    memcpy(op->in.incarnation, lane->ctx->incarnation, sizeof(op->in.incarnation));
    op->in.offset = lane->done;
    stk_state_call(lane->ctx->state, op);
}

static record *add_record(stk_lane *lane, int64_t offset)
{
    record *rec = stk_xcalloc(1, sizeof(*rec));
    *rec = (record){.lane = lane, .offset = offset};
    *lane->last = rec;
    lane->last = &rec->next;
    return rec;
}

static void finish(stk_lane *lane, record *rec)
{
    rec->finished = true;
    while (lane->first && lane->first->finished) {
        record *head = lane->first;
        lane->first = head->next;
        if (!lane->first)
            lane->last = &lane->first;
        lane->done = head->offset + 1;
        stk_bus_finish(lane->consumer, lane->ctx->lane, head->offset);
        free(head);
    }
    report(lane);
}

static void maybe_idle(stk_lane *lane)
{
    if (lane->njobs || lane->plans || !lane->idle)
        return;
    stk_fn idle = lane->idle;
    lane->idle = NULL;
    idle(lane->idle_arg);
}

/* --- jobs
 * ------------------------------------------------------------------------------------------------------- */

static void on_refill(void *arg)
{
    stk_lane *lane = arg;
    lane->refilling = false;
    stk_timer_clear(lane->refill);
    stk_pool_tend(lane->pool);
}

/* After the run that took it, or soon; at once when the next one would find nothing. */
static void refill_later(stk_lane *lane)
{
    if (stk_pool_counts_get(lane->pool).ready == 0) {
        stk_pool_tend(lane->pool);
    } else if (!lane->refilling) {
        lane->refilling = true;
        stk_timer_set(lane->refill, REFILL_AFTER);
    }
}

static stk_box *take_warm(const char *sandbox, void *arg)
{
    stk_lane *lane = arg;
    stk_box *box = stk_pool_claim(lane->pool, sandbox);
    refill_later(lane);
    return box;
}

static void on_job_done(stk_job *job, void *arg)
{
    stk_lane *lane = arg;
    lane->counts.warm += stk_job_warm(job);
    for (size_t i = 0; i < lane->njobs; i++)
        if (lane->jobs[i] == job) {
            lane->jobs[i] = lane->jobs[--lane->njobs];
            break;
        }
    for (record *rec = lane->first; rec; rec = rec->next)
        if (rec->offset == stk_job_offset(job)) {
            finish(lane, rec);
            break;
        }
    lane->counts.running = (int64_t)lane->njobs;
    if (lane->refilling)
        on_refill(lane);
    maybe_idle(lane);
}

static int start_job(stk_lane *lane, stk_assignment *asg, int64_t offset, stk_err *err)
{
    stk_job *job;
    const stk_job_ops ops = {.take_warm = take_warm, .on_done = on_job_done, .arg = lane};
    int rc = stk_job_new(lane->ctx, asg, offset, &ops, &job, err);
    if (rc < 0)
        return rc;
    lane->jobs = stk_xrealloc(lane->jobs, (lane->njobs + 1) * sizeof(stk_job *));
    lane->jobs[lane->njobs++] = job;
    lane->counts.running = (int64_t)lane->njobs;
    lane->counts.runs++;
    return 0;
}

static void on_planned(void *arg)
{
    record *rec = arg;
    stk_lane *lane = rec->lane;
    lane->plans--;
    finish(lane, rec);
    maybe_idle(lane);
}

/* --- records
 * ------------------------------------------------------------------------------------------------------ */

static void on_dead(stk_publish_outcome outcome, int32_t partition, int64_t offset, const stk_err *err,
                    void *arg)
{
    record *rec = arg;
    stk_lane *lane = rec->lane;
    lane->burying--;
    if (outcome == STK_PUBLISHED && !lane->freed)
        finish(lane, rec);
    free_when_quiet(lane);
}

/* What can't be read goes to stk.dead, as it is, with why. */
static void bury(stk_lane *lane, const stk_bus_msg *msg, record *rec, const char *why)
{
    stk_bus_out out = {
        .topic = STK_TOPIC_DEAD, .partition = -1, .key = msg->key, .value = msg->value, .nheaders = 2};
    out.headers[0] = (stk_bus_header){"from", STK_STR(STK_TOPIC_ASSIGNMENTS)};
    out.headers[1] = (stk_bus_header){"reason", stk_str_of(why)};
    lane->counts.dropped++;
    lane->burying++;
    stk_bus_publish(lane->ctx->bus, &out, on_dead, rec);
}

static bool for_us(const stk_lane *lane, const stk_assignment *asg)
{
    return strcmp(asg->worker, lane->ctx->worker) == 0 &&
           strcmp(asg->incarnation, lane->ctx->incarnation) == 0;
}

static void take(stk_lane *lane, stk_assignment *asg, record *rec, stk_err *err)
{
    stk_job *known = stk_lane_job(lane, asg->assignment);
    if (!for_us(lane, asg)) {
        lane->counts.dropped++;
        finish(lane, rec);
    } else if (strcmp(asg->kind, "plan") == 0) {
        lane->plans++;
        stk_plan_answer(lane->ctx, asg, on_planned, rec);
    } else if (strcmp(asg->kind, "cancel") == 0 || known) {
        if (known && strcmp(asg->kind, "cancel") == 0)
            stk_job_cancel(known);
        finish(lane, rec); /* a repeated assignment does nothing twice */
    } else if (stk_failpoint("worker.on_assignment", err) < 0 || start_job(lane, asg, rec->offset, err) < 0) {
        stk_log_err(STK_LOG_ERROR, NULL, err, "an assignment was not taken");
        finish(lane, rec);
    }
}

static void on_message(stk_consumer *consumer, const stk_bus_msg *msg, void *arg)
{
    stk_lane *lane = arg;
    stk_assignment asg STK_AUTO(stk_assignment_done) = {0};
    stk_err err;
    int rc = stk_assignment_decode(msg->value, &asg, &err);
    if (rc == -STK_E_NEWER) {
        stk_log_err(STK_LOG_ERROR, NULL, &err, "the lane is paused until this worker is upgraded");
        stk_bus_pause(consumer, true);
        return;
    }
    record *rec = add_record(lane, msg->offset);
    if (rc < 0)
        bury(lane, msg, rec, err.detail);
    else
        take(lane, &asg, rec, &err);
}

static void on_error(stk_consumer *consumer, const stk_err *err, void *arg)
{
    stk_log_err(STK_LOG_ERROR, NULL, err, "reading the lane has stopped");
}

int stk_lane_new(stk_ctx *ctx, stk_pool *pool, int64_t offset, stk_lane **ret, stk_err *err)
{
    static const stk_consumer_ops ops = {.on_message = on_message, .on_error = on_error};
    stk_lane *lane = stk_xcalloc(1, sizeof(*lane));
    *lane = (stk_lane){.ctx = ctx, .pool = pool, .done = offset, .reported = offset, .trimmed = offset};
    lane->last = &lane->first;
    lane->refill = stk_timer_new(ctx->loop, on_refill, lane);
    stk_consumer_spec spec = {.topic = STK_TOPIC_ASSIGNMENTS,
                              .partitions = &ctx->lane,
                              .npartitions = 1,
                              .starts = &offset,
                              .window = WINDOW};
    int rc = stk_bus_subscribe(ctx->bus, &spec, &ops, lane, &lane->consumer, err);
    if (rc < 0) {
        stk_timer_free(lane->refill);
        free(lane);
        return rc;
    }
    *ret = lane;
    return 0;
}

stk_lane_counts stk_lane_counts_get(const stk_lane *lane)
{
    return lane->counts;
}

stk_job *stk_lane_job(const stk_lane *lane, const char *assignment)
{
    for (size_t i = 0; i < lane->njobs; i++)
        if (strcmp(stk_job_assignment(lane->jobs[i]), assignment) == 0)
            return lane->jobs[i];
    return NULL;
}

void stk_lane_each(stk_lane *lane, void (*fn)(stk_job *job, void *arg), void *arg)
{
    for (size_t i = 0; i < lane->njobs; i++)
        fn(lane->jobs[i], arg);
}

void stk_lane_pause(stk_lane *lane)
{
    stk_bus_pause(lane->consumer, true);
}

void stk_lane_when_idle(stk_lane *lane, stk_fn idle, void *arg)
{
    lane->idle = idle;
    lane->idle_arg = arg;
    maybe_idle(lane);
}

void stk_lane_free(stk_lane *lane)
{
    stk_bus_unsubscribe(lane->consumer);
    stk_timer_clear(lane->refill);
    lane->freed = true;
    free_when_quiet(lane);
}
