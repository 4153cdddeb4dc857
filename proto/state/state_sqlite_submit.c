#include "proto/state/state_sdb.h"

/* The run that used this key before, if any; *ret_body tells whether its body was the same. */
static int key_find(stk_sdb *db, const stk_op_submit *op, char ret_run[STK_ID_SIZE], stk_submit_facts *facts)
{
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) =
        STK_SQL(db, "SELECT id, body_hash FROM runs WHERE tenant = ?1 AND key_hash = ?2",
                V_TEXT(op->in.tenant), V_BLOB(stk_str_n(op->in.key_hash, STK_SHA256)));
    int rc = stk__sql_next(db, stmt);
    if (rc > 0) {
        stk__col_text(stmt, 0, ret_run, STK_ID_SIZE);
        facts->key_known = true;
        facts->body_same = stk_str_eq(stk_db_blob(stmt, 1), stk_str_n(op->in.body_hash, STK_SHA256));
    }
    return rc < 0 ? rc : 0;
}

static int submit_new(stk_sdb *db, stk_op_submit *op)
{
    stk_srun run;
    STK_SRUN_FRESH(&run, &op->in);
    op->state = STK_RUN_SUBMITTED;
    return stk__run_insert(db, &run, &op->in.labels, op->in.has_key ? op->in.key_hash : NULL,
                           op->in.has_key ? op->in.body_hash : NULL);
}

int stk__do_submit(stk_sdb *db, stk_op *op_)
{
    stk_op_submit *op = (stk_op_submit *)op_;
    stk_submit_facts facts = {.cap = op->in.queued_cap};
    int64_t running;
    stk_srun run;
    stk_str_copy(stk_str_of(op->in.run), op->run, sizeof(op->run));
    if (op->in.has_key && key_find(db, op, op->run, &facts) < 0)
        return -(int)db->err->code;
    if (stk__run_load(db, op->run, &run) < 0 ||
        stk__tenant_counts(db, op->in.tenant, &facts.unfinished, &running) < 0)
        return -(int)db->err->code;
    facts.run_known = run.state != STK_RUN_NONE;
    if (facts.run_known && strcmp(run.tenant, op->in.tenant) != 0)
        return stk_err_set(db->err, STK_E_CONFLICT, "run %s belongs to another tenant", op->run);
    op->outcome = (__typeof__(op->outcome))stk_decide_submit(&facts);
    op->state = run.state;
    return op->outcome == STK_SUBMIT_NEW ? submit_new(db, op) : 0;
}

int stk__do_queue(stk_sdb *db, stk_op *op_)
{
    stk_op_queue *op = (stk_op_queue *)op_;
    stk_srun run;
    if (stk__run_load(db, op->in.run, &run) < 0)
        return -(int)db->err->code;
    op->outcome = (__typeof__(op->outcome))stk_decide_queue(run.state);
    op->attempt = run.attempts;
    op->cancel_asked = run.cancel;
    op->lane = run.lane;
    if (op->outcome == STK_QUEUE_ASSIGNED)
        return stk__record_get(db, run.seq, &op->assignment);
    if (op->outcome == STK_QUEUE_PASSED)
        return 0;
    if (run.state == STK_RUN_NONE) {
        STK_SRUN_FRESH(&run, &op->in);
        if (stk__run_insert(db, &run, &op->in.labels, NULL, NULL) < 0)
            return -(int)db->err->code;
    }
    if (run.state == STK_RUN_QUEUED && run.part == op->in.partition && run.off == op->in.offset)
        return 0;
    run.part = op->in.partition;
    run.off = op->in.offset;
    if (run.state == STK_RUN_SUBMITTED && stk__run_move(db, &run, STK_EV_QUEUE) < 0)
        return -(int)db->err->code;
    return stk__run_save(db, &run);
}

int stk__do_published(stk_sdb *db, stk_op *op_)
{
    stk_op_published *op = (stk_op_published *)op_;
    return STK_SQL_DO(db, "UPDATE runs SET part = ?2, off = ?3 WHERE id = ?1 AND state = 1 AND part < 0",
                      V_TEXT(op->in.run), V_INT(op->in.partition), V_INT(op->in.offset));
}
