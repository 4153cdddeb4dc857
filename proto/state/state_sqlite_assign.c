#include "proto/state/state_sdb.h"
#include <stdio.h>

static int pooled(stk_sdb *db, const stk_op_assign *op, bool *ret)
{
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) = STK_SQL(
        db, "SELECT 1 FROM pool WHERE sandbox = ?1 AND taken = 0 AND worker = ?2 AND incarnation = ?3",
        V_TEXT(op->in.sandbox), V_TEXT(op->in.worker), V_TEXT(op->in.incarnation));
    int rc = stk__sql_next(db, stmt);
    *ret = rc > 0;
    return rc < 0 ? rc : 0;
}

static int gather(stk_sdb *db, const stk_op_assign *op, stk_srun *run, stk_sworker *worker,
                  stk_assign_facts *facts)
{
    int64_t unfinished;
    if (stk__run_load(db, op->in.run, run) < 0 || stk__worker_load(db, op->in.worker, worker) < 0 ||
        stk__tenant_counts(db, op->in.tenant, &unfinished, &facts->running) < 0 ||
        pooled(db, op, &facts->sandbox_there) < 0)
        return -(int)db->err->code;
    facts->open = db->open;
    facts->state = run->state;
    facts->cancel_asked = run->cancel;
    facts->worker_live = stk__worker_is(db, worker, op->in.incarnation) && !worker->draining;
    facts->plan = op->in.plan;
    facts->first = op->in.first;
    facts->attempts = run->attempts;
    facts->slots = worker->slots;
    facts->used = worker->used;
    facts->cap = op->in.running_cap;
    facts->wants_sandbox = op->in.sandbox[0] != '\0';
    return 0;
}

/* A run that state does not know, or that was not queued yet, goes through every state on its way. */
static int to_assigned(stk_sdb *db, const stk_op_assign *op, stk_srun *run)
{
    if (run->state == STK_RUN_NONE) {
        STK_SRUN_FRESH(run, &op->in);
        if (stk__run_insert(db, run, &op->in.labels, NULL, NULL) < 0)
            return -(int)db->err->code;
    }
    if (run->state == STK_RUN_SUBMITTED && stk__run_move(db, run, STK_EV_QUEUE) < 0)
        return -(int)db->err->code;
    return stk__run_move(db, run, STK_EV_ASSIGN);
}

static int assign(stk_sdb *db, stk_op_assign *op, stk_srun *run, const stk_sworker *worker)
{
    if (to_assigned(db, op, run) < 0)
        return -(int)db->err->code;
    snprintf(run->assignment, sizeof(run->assignment), "%s", op->in.assignment);
    snprintf(run->worker, sizeof(run->worker), "%s", op->in.worker);
    snprintf(run->incarnation, sizeof(run->incarnation), "%s", op->in.incarnation);
    snprintf(run->sandbox, sizeof(run->sandbox), "%s", op->in.sandbox);
    run->lane = op->lane = worker->lane;
    run->slot = !op->in.plan;
    run->attempt = op->in.attempt;
    run->part = op->in.partition;
    run->off = op->in.offset;
    if (run->slot &&
        STK_SQL_DO(db, "UPDATE workers SET used = used + 1 WHERE worker = ?1", V_TEXT(run->worker)) < 0)
        return -(int)db->err->code;
    if (run->sandbox[0] && STK_SQL_DO(db, "UPDATE pool SET taken = 1, since = ?2 WHERE sandbox = ?1",
                                      V_TEXT(run->sandbox), V_INT(db->now)) < 0)
        return -(int)db->err->code;
    if (STK_SQL_DO(db, "INSERT OR REPLACE INTO records VALUES(?1, ?2)", V_INT(run->seq),
                   V_BLOB(stk_bytes_view(&op->in.record))) < 0)
        return -(int)db->err->code;
    return stk__run_save(db, run);
}

int stk__do_assign(stk_sdb *db, stk_op *op_)
{
    stk_op_assign *op = (stk_op_assign *)op_;
    stk_srun run;
    stk_sworker worker;
    stk_assign_facts facts = {0};
    op->lane = -1;
    if (!op->in.record.set || !stk_id_valid("asg", stk_str_of(op->in.assignment)))
        return stk_err_set(db->err, STK_E_FIELD, "assigning needs an assignment id and its lane record");
    if (gather(db, op, &run, &worker, &facts) < 0)
        return -(int)db->err->code;
    op->outcome = (__typeof__(op->outcome))stk_decide_assign(&facts);
    if (op->outcome == STK_ASSIGN_OK)
        return assign(db, op, &run, &worker);
    if (op->outcome != STK_ASSIGN_ALREADY)
        return 0;
    op->lane = run.lane;
    return stk__record_get(db, run.seq, &op->record);
}

int stk__do_start(stk_sdb *db, stk_op *op_)
{
    stk_op_start *op = (stk_op_start *)op_;
    stk_srun run;
    stk_sworker worker;
    if (stk__run_load(db, op->in.run, &run) < 0 || stk__worker_load(db, op->in.worker, &worker) < 0)
        return -(int)db->err->code;
    stk_start_facts facts = {
        .state = run.state,
        .ours = strcmp(run.assignment, op->in.assignment) == 0 && strcmp(run.worker, op->in.worker) == 0 &&
                strcmp(run.incarnation, op->in.incarnation) == 0,
        .live = stk__worker_is(db, &worker, op->in.incarnation),
        .cancel_asked = run.cancel,
    };
    op->outcome = (__typeof__(op->outcome))stk_decide_start(&facts);
    if (op->outcome != STK_START_OK)
        return 0;
    if (stk__run_move(db, &run, STK_EV_START) < 0)
        return -(int)db->err->code;
    run.started = op->in.now.ns;
    if (strcmp(run.retry, "always") != 0 && stk__record_drop(db, run.seq) < 0)
        return -(int)db->err->code;
    return stk__run_save(db, &run);
}
