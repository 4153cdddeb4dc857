/* How a run ends, or goes back into the queue: the parts that finish, cancel, requeue and the loss of a
 * worker share. */
#include "proto/message/assignment.h"
#include "proto/state/state_sdb.h"
#include <stdio.h>

int stk__outbox_add(stk_sdb *db, const char *topic, const char *key, stk_str value, int64_t after,
                    int64_t *ret_id)
{
    int rc = STK_SQL_DO(
        db, "INSERT INTO outbox(topic, key, made, held, after, value) VALUES(?1, ?2, ?3, 0, ?4, ?5)",
        V_TEXT(topic), V_TEXT(key), V_INT(db->now), V_INT(after), V_BLOB(value));
    if (rc == 0)
        *ret_id = sqlite3_last_insert_rowid(db->db);
    return rc;
}

int stk__run_end(stk_sdb *db, stk_srun *run, const char *reason, stk_wall now, const stk_bytes *event,
                 const stk_bytes *result, int64_t *ret_outbox)
{
    *ret_outbox = 0;
    if (stk_reason_parse(reason) == STK_REASON_NONE)
        return stk_err_set(db->err, STK_E_FIELD, "\"%s\" is no reason to finish", reason);
    if (stk__run_move(db, run, STK_EV_FINISH) < 0 || stk__run_free_slot(db, run) < 0 ||
        stk__record_drop(db, run->seq) < 0)
        return -(int)db->err->code;
    snprintf(run->reason, sizeof(run->reason), "%s", reason);
    run->finished = now.ns;
    if (result->set && result->n &&
        STK_SQL_DO(db, "INSERT OR REPLACE INTO results VALUES(?1, ?2, ?3)", V_INT(run->seq), V_INT(db->now),
                   V_BLOB(stk_bytes_view(result))) < 0)
        return -(int)db->err->code;
    if (event->set &&
        stk__outbox_add(db, STK_TOPIC_EVENTS, run->id, stk_bytes_view(event), 0, ret_outbox) < 0)
        return -(int)db->err->code;
    return stk__run_save(db, run);
}

static int build_event(stk_sdb *db, const stk_srun *run, const char *reason, const char *detail, stk_wall now,
                       stk_bytes *ret)
{
    stk_event ev STK_AUTO(stk_event_done) = {
        .v = STK_MESSAGE_VERSION, .kind = "finished", .attempt = run->attempt};
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    snprintf(ev.run, sizeof(ev.run), "%s", run->id);
    snprintf(ev.tenant, sizeof(ev.tenant), "%s", run->tenant);
    snprintf(ev.agent, sizeof(ev.agent), "%s", run->agent);
    snprintf(ev.assignment, sizeof(ev.assignment), "%s", run->assignment);
    snprintf(ev.worker, sizeof(ev.worker), "%s", run->worker);
    snprintf(ev.sandbox, sizeof(ev.sandbox), "%s", run->sandbox);
    snprintf(ev.reason, sizeof(ev.reason), "%s", reason);
    snprintf(ev.detail, sizeof(ev.detail), "%s", detail);
    ev.submitted.ns = run->submitted;
    ev.started.ns = run->started;
    ev.finished = now;
    if (stk__run_labels(db, run->seq, &ev.labels) < 0)
        return -(int)db->err->code;
    if (stk_event_encode(&ev, &text, NULL) < 0) {
        stk_map_done(&ev.labels); /* the only part that was not checked on its way in: the end matters more */
        stk_buf_reset(&text);
        if (stk_event_encode(&ev, &text, db->err) < 0)
            return stk_err_wrap(db->err, "the end of run %s", run->id);
    }
    stk_bytes_set(ret, stk_buf_view(&text));
    return 0;
}

int stk__run_end_built(stk_sdb *db, stk_srun *run, const char *reason, const char *detail, stk_wall now,
                       int64_t *ret_outbox)
{
    stk_bytes event STK_AUTO(stk_bytes_done) = {0};
    if (build_event(db, run, reason, detail, now, &event) < 0)
        return -(int)db->err->code;
    stk_bytes none = {0};
    bool plan = strcmp(run->kind, "plan") == 0;
    return stk__run_end(db, run, reason, now, plan ? &none : &event, plan ? &none : &event, ret_outbox);
}

/* Its place on the topic stays: the request that is published again gets a new one when a scheduler reads it.
 */
int stk__run_return(stk_sdb *db, stk_srun *run, bool counts, stk_str request, int64_t *ret_outbox)
{
    bool repeat = run->state == STK_RUN_RUNNING;
    *ret_outbox = 0;
    if (!request.n)
        return stk_err_set(db->err, STK_E_FIELD, "requeueing run %s needs its request", run->id);
    if (stk__run_move(db, run, repeat ? STK_EV_REPEAT : STK_EV_REQUEUE) < 0 ||
        stk__run_free_slot(db, run) < 0 ||
        stk__outbox_add(db, STK_TOPIC_REQUESTS, run->id, request, 0, ret_outbox) < 0 ||
        stk__record_drop(db, run->seq) < 0)
        return -(int)db->err->code;
    if (repeat && STK_SQL_DO(db, "DELETE FROM output WHERE run = ?1", V_TEXT(run->id)) < 0)
        return -(int)db->err->code;
    run->assignment[0] = run->worker[0] = run->incarnation[0] = run->sandbox[0] = '\0';
    run->lane = -1;
    run->started = 0;
    run->attempts += counts;
    run->attempt = run->attempts;
    return stk__run_save(db, run);
}

int stk__do_finish(stk_sdb *db, stk_op *op_)
{
    stk_op_finish *op = (stk_op_finish *)op_;
    const stk_bytes none = {0};
    stk_srun run;
    if (!op->in.plan && !op->in.event.set)
        return stk_err_set(db->err, STK_E_FIELD, "finishing run %s needs its event", op->in.run);
    if (stk__run_load(db, op->in.run, &run) < 0)
        return -(int)db->err->code;
    bool same = strcmp(run.assignment, op->in.assignment) == 0 &&
                (!op->in.tenant[0] || strcmp(run.tenant, op->in.tenant) == 0);
    op->outcome = (__typeof__(op->outcome))stk_decide_finish(run.state, same);
    if (op->outcome != STK_FINISH_WON)
        return 0;
    return stk__run_end(db, &run, op->in.reason, op->in.now, op->in.plan ? &none : &op->in.event,
                        op->in.result.set ? &op->in.result : &op->in.event, &op->outbox);
}

static int ask_cancel(stk_sdb *db, stk_op_cancel *op, const stk_srun *run)
{
    op->lane = run->lane;
    snprintf(op->assignment, sizeof(op->assignment), "%s", run->assignment);
    snprintf(op->worker, sizeof(op->worker), "%s", run->worker);
    snprintf(op->incarnation, sizeof(op->incarnation), "%s", run->incarnation);
    stk__note_of(db, "run", run->id);
    return STK_SQL_DO(db, "UPDATE runs SET cancel = 1 WHERE seq = ?1", V_INT(run->seq));
}

int stk__do_cancel(stk_sdb *db, stk_op *op_)
{
    stk_op_cancel *op = (stk_op_cancel *)op_;
    const char *reason = stk_reason_text(STK_REASON_CANCELLED);
    stk_srun run;
    op->lane = -1;
    if (stk__run_load(db, op->in.run, &run) < 0)
        return -(int)db->err->code;
    bool tenant = !op->in.tenant[0] || strcmp(run.tenant, op->in.tenant) == 0;
    op->outcome = (__typeof__(op->outcome))stk_decide_cancel(run.state, tenant);
    if (op->outcome == STK_CANCEL_ASKED)
        return ask_cancel(db, op, &run);
    if (op->outcome != STK_CANCEL_FINISHED)
        return 0;
    run.cancel = true;
    if (!op->in.event.set)
        return stk__run_end_built(db, &run, reason, "cancelled before it started", op->in.now, &op->outbox);
    const stk_bytes none = {0};
    bool plan = strcmp(run.kind, "plan") == 0;
    return stk__run_end(db, &run, reason, op->in.now, plan ? &none : &op->in.event, &op->in.event,
                        &op->outbox);
}

int stk__do_requeue(stk_sdb *db, stk_op *op_)
{
    stk_op_requeue *op = (stk_op_requeue *)op_;
    stk_srun run;
    if (stk__run_load(db, op->in.run, &run) < 0)
        return -(int)db->err->code;
    bool same = strcmp(run.assignment, op->in.assignment) == 0;
    op->outcome = (__typeof__(op->outcome))stk_decide_requeue(run.state, same, op->in.repeat);
    if (op->outcome != STK_REQUEUE_OK)
        return 0;
    int rc = stk__run_return(db, &run, op->in.count, stk_bytes_view(&op->in.request), &op->outbox);
    op->attempt = run.attempts;
    return rc;
}
