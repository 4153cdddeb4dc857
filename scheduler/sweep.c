/* Once a second: what dead workers held, what dead winners left in the outbox, and a fresh look at everything
 * a lost wake-up could hide. And the timer of what is due: deadlines and delays. */
#include "proto/state/outbox.h"
#include "scheduler/impl.h"
#include <stdio.h>

#define PERIOD       stk_sec(1)
#define OUTBOX_OLDER stk_sec(1)
#define OUTBOX_HOLD  stk_sec(10)

static void on_flushed(bool ok, size_t published, void *arg)
{
    stk__leave(arg); /* what was not taken now is taken at a later sweep */
}

/* --- lost runs --- */

/* For a host that never comes back its teardown row is written here; a host that does come back writes the
 * same row. */
static void audit_lost(stk_scheduler *s, const stk_lost_run *lost, const char *action)
{
    char details[160];
    stk_audit_row row = {.time = stk_wall_now(), .actor = "scheduler"};
    snprintf(details, sizeof(details),
             "{\"why\":\"the lease of the worker ended\",\"started\":%s,\"requeued\":%s}",
             lost->started ? "true" : "false", lost->requeued ? "true" : "false");
    stk_audit_id(stk_id_time(stk_str_of(lost->assignment)), lost->run, lost->assignment, action, 0, row.id);
    snprintf(row.action, sizeof(row.action), "%s", action);
    snprintf(row.tenant, sizeof(row.tenant), "%s", lost->tenant);
    snprintf(row.agent, sizeof(row.agent), "%s", lost->agent);
    snprintf(row.run, sizeof(row.run), "%s", lost->run);
    snprintf(row.assignment, sizeof(row.assignment), "%s", lost->assignment);
    snprintf(row.worker, sizeof(row.worker), "%s", lost->worker);
    snprintf(row.sandbox, sizeof(row.sandbox), "%s", lost->sandbox);
    stk_letter *letter = stk__audit_letter(s, &row, stk_str_of(details));
    if (letter)
        stk__letter_send(letter, NULL, NULL, NULL);
}

static void publish_outbox(stk_scheduler *s, int64_t id)
{
    stk__enter(s);
    stk_outbox_publish(s->spec.bus, s->spec.state, id, on_flushed, s);
}

static void on_reap(stk_op *op_, void *arg)
{
    stk_op_reap *op = (stk_op_reap *)op_;
    stk_scheduler *s = arg;
    if (stk__leave(s))
        return;
    s->sweeping = false;
    if (op_->rc < 0)
        return;
    for (size_t i = 0; i < op->workers.n; i++)
        stk_log_warn(NULL, "worker %s is gone: its lease ended", op->workers.v[i].p);
    for (size_t i = 0; i < op->nlost; i++) {
        const stk_lost_run *lost = &op->lost[i];
        const stk_who who = {.run = lost->run,
                             .tenant = lost->tenant,
                             .assignment = lost->assignment,
                             .sandbox = lost->sandbox};
        stk_log_warn(&who, "worker %s is gone: %s", lost->worker,
                     lost->requeued ? "queued again" : "finished as worker_lost");
        if (lost->started && !lost->requeued)
            audit_lost(s, lost, STK_AUDIT_FAILURE);
        audit_lost(s, lost, STK_AUDIT_TEARDOWN);
        if (lost->outbox)
            publish_outbox(s, lost->outbox);
    }
    s->closed = s->closed && stk_mono_before(stk_mono_now(), s->closed_until);
    stk__pump(s);
}

void stk__sweep(void *scheduler)
{
    stk_scheduler *s = scheduler;
    stk_timer_set(s->sweep_timer, PERIOD);
    stk_fair_unpark(s->fair);
    stk__intake_flow(s);
    stk_fleet_stale(s);
    if (!s->sweeping) {
        s->sweeping = true;
        stk_op_reap *op = stk_op_new(STK_OP_REAP, on_reap, s);
        op->in.heartbeat = s->spec.heartbeat;
        op->in.now = stk_wall_now();
        stk__enter(s);
        stk_state_call(s->spec.state, op);
        stk__enter(s);
        stk_outbox_sweep(s->spec.bus, s->spec.state, OUTBOX_OLDER, OUTBOX_HOLD, on_flushed, s);
    }
    stk__pump(s);
}

/* --- what is due --- */

void stk__due_arm(stk_scheduler *s)
{
    uint32_t first = stk_index_first(&s->index);
    stk_mono at = first != UINT32_MAX ? s->index.slots[first].due : (stk_mono){0};
    if (s->closed && (!at.ns || stk_mono_before(s->closed_until, at)))
        at = s->closed_until;
    if (!at.ns)
        return;
    stk_span after = stk_mono_sub(at, stk_mono_now());
    stk_timer_set(s->due_timer, after.ns > 0 ? after : stk_us(1));
}

static void expire(stk_scheduler *s, uint32_t item)
{
    stk_slot *slot = &s->index.slots[item];
    stk_job *job = slot->job;
    stk_fair_unlist(s->fair, item);
    if (!job) { /* fetched first; placing sees the deadline */
        stk__item_go(s, item);
        return;
    }
    slot->job = NULL;
    s->index.bytes -= stk__job_bytes(job);
    stk__job_end(job, STK_REASON_EXPIRED, STK_E_TIMEOUT, "its deadline passed while it was queued");
}

static void go_on(stk_scheduler *s, uint32_t item)
{
    stk_slot *slot = &s->index.slots[item];
    stk_job *job = slot->job;
    if (slot->state == STK_SLOT_WAITING) {
        expire(s, item);
    } else if (job && job->req.id[0] && !job->reason && job->known) {
        slot->job = NULL;
        s->index.bytes -= stk__job_bytes(job);
        stk__job_wait(job, false);
    } else {
        stk__item_go(s, item);
    }
}

void stk__due(void *scheduler)
{
    stk_scheduler *s = scheduler;
    stk_mono now = stk_mono_now();
    for (int n = 0; n < 1000; n++) {
        uint32_t item = stk_index_first(&s->index);
        if (item == UINT32_MAX || stk_mono_before(now, s->index.slots[item].due))
            break;
        stk_index_set_due(&s->index, item, (stk_mono){0});
        go_on(s, item);
    }
    if (s->closed && !stk_mono_before(now, s->closed_until))
        s->closed = false;
    stk__due_arm(s);
    stk__pump(s);
}
