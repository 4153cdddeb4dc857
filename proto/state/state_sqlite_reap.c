#include "proto/state/state_sdb.h"
#include <stdio.h>

#define BATCH "500" /* rows swept at one call, of each kind */

static int put_back(stk_sdb *db, const stk_op_adopt *op, stk_srun *run)
{
    if (run->state == STK_RUN_NONE) {
        const stk_map none = {0};
        stk__run_fresh(run, op->in.run, op->in.tenant, op->in.agent, "", "", 0, stk_wall_now(),
                       (stk_wall){0});
        if (stk__run_insert(db, run, &none, NULL, NULL) < 0)
            return -(int)db->err->code;
    }
    if (run->state == STK_RUN_SUBMITTED && stk__run_move(db, run, STK_EV_QUEUE) < 0)
        return -(int)db->err->code;
    if (run->state == STK_RUN_QUEUED && stk__run_move(db, run, STK_EV_ASSIGN) < 0)
        return -(int)db->err->code;
    if (op->in.started && run->state == STK_RUN_ASSIGNED) {
        run->started = stk_wall_now().ns;
        return stk__run_move(db, run, STK_EV_START);
    }
    return 0;
}

int stk__do_adopt(stk_sdb *db, stk_op *op_)
{
    stk_op_adopt *op = (stk_op_adopt *)op_;
    stk_srun run;
    stk_sworker worker;
    if (!stk_id_valid("asg", stk_str_of(op->in.assignment)))
        return stk_err_set(db->err, STK_E_FIELD, "adopting needs an assignment id");
    if (stk__run_load(db, op->in.run, &run) < 0 || stk__worker_load(db, op->in.worker, &worker) < 0)
        return -(int)db->err->code;
    op->ok = stk_decide_adopt(run.state, strcmp(run.assignment, op->in.assignment) == 0,
                              stk__worker_is(db, &worker, op->in.incarnation));
    if (!op->ok)
        return 0;
    if (stk__run_free_slot(db, &run) < 0 || put_back(db, op, &run) < 0)
        return -(int)db->err->code;
    snprintf(run.assignment, sizeof(run.assignment), "%s", op->in.assignment);
    snprintf(run.worker, sizeof(run.worker), "%s", op->in.worker);
    snprintf(run.incarnation, sizeof(run.incarnation), "%s", op->in.incarnation);
    snprintf(run.sandbox, sizeof(run.sandbox), "%s", op->in.sandbox);
    run.lane = worker.lane;
    run.slot = true;
    run.attempt = run.attempt ? run.attempt : 1;
    if (STK_SQL_DO(db, "UPDATE workers SET used = used + 1 WHERE worker = ?1", V_TEXT(run.worker)) < 0)
        return -(int)db->err->code;
    return stk__run_save(db, &run);
}

/* Reap remembers when it last ran: nobody could renew while state was away, so nobody is dead for that. */
static int grace(stk_sdb *db, const stk_op_reap *op)
{
    stk_span beat = op->in.heartbeat.ns > 0 ? op->in.heartbeat : stk_sec(1);
    bool gap = stk_decide_grace(db->reaped, db->now, beat);
    db->reaped = db->now;
    if (stk__meta_set_int(db, "reaped", db->now) < 0)
        return -(int)db->err->code;
    return gap ? STK_SQL_DO(db, "UPDATE workers SET until = max(until, ?1 + lease)", V_INT(db->now)) : 0;
}

static int end_worker(stk_sdb *db, stk_op_reap *op, const stk_sworker *worker, bool came_back,
                      const char *detail)
{
    stk_losing how = {.worker = worker->id,
                      .incarnation = worker->incarnation,
                      .came_back = came_back,
                      .detail = detail,
                      .now = op->in.now,
                      .v = &op->lost,
                      .n = &op->nlost};
    return stk__lose(db, &how);
}

static int collect(stk_sdb *db, sqlite3_stmt *stmt, stk_sworker **ret, size_t *n)
{
    int rc;
    while ((rc = stk__sql_next(db, stmt)) > 0) {
        stk_sworker *worker = STK_GROW(*ret, *n);
        STK_COL_TEXT(stmt, 0, worker->id);
        STK_COL_TEXT(stmt, 1, worker->incarnation);
    }
    return rc;
}

static int reap_workers(stk_sdb *db, stk_op_reap *op)
{
    stk_sworker *dead STK_AUTO(stk_freep) = NULL;
    size_t n = 0;
    int rc =
        collect(db, STK_SQL(db, "SELECT worker, incarnation FROM workers WHERE until <= ?1", V_INT(db->now)),
                &dead, &n);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        stk_strv_add(&op->workers, stk_str_of(dead[i].id));
        rc = end_worker(db, op, &dead[i], false, "the worker stopped renewing its lease");
        if (rc == 0)
            rc = stk__worker_remove(db, dead[i].id);
    }
    return rc;
}

/* After another boot: whoever held these runs died with the machine, and nobody can adopt them. */
static int settle_and_open(stk_sdb *db, stk_op_reap *op)
{
    stk_sworker *gone STK_AUTO(stk_freep) = NULL;
    size_t n = 0;
    if (db->open)
        return 0;
    int rc = collect(
        db,
        STK_SQL(db, "SELECT DISTINCT worker, incarnation FROM runs r WHERE state IN (3, 4) AND NOT EXISTS"
                    " (SELECT 1 FROM workers w WHERE w.worker = r.worker AND w.incarnation = r.incarnation)"),
        &gone, &n);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = end_worker(db, op, &gone[i], true, "the machine of the worker was started again");
    if (rc < 0 || stk__meta_set(db, "open", "1") < 0)
        return -(int)db->err->code;
    db->open = true;
    stk__note(db, "capacity");
    return 0;
}

static int remove_runs(stk_sdb *db, sqlite3_stmt *stmt)
{
    typedef char run_id[STK_ID_SIZE];
    run_id *ids STK_AUTO(stk_freep) = NULL;
    size_t n = 0;
    int rc;
    while ((rc = stk__sql_next(db, stmt)) > 0)
        stk__col_text(stmt, 0, *STK_GROW(ids, n), STK_ID_SIZE);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        stk_srun run;
        rc = stk__run_load(db, ids[i], &run);
        if (rc == 0)
            rc = stk__run_remove(db, &run);
    }
    return rc;
}

/* A reservation whose request was never published, and what ended a day ago. Keys go with their runs. */
static int sweep_runs(stk_sdb *db, const stk_op_reap *op)
{
    int64_t patience = op->in.submitted_for.ns > 0 ? op->in.submitted_for.ns : stk_sec(60).ns;
    int rc = remove_runs(
        db,
        STK_SQL(db,
                "SELECT id FROM runs WHERE state = 1 AND since < ?1 AND part < 0 ORDER BY since LIMIT " BATCH,
                V_INT(db->now - patience)));
    if (rc < 0)
        return rc;
    return remove_runs(
        db, STK_SQL(db, "SELECT id FROM runs WHERE state = 5 AND since < ?1 ORDER BY since LIMIT " BATCH,
                    V_INT(db->now - STK_DAY.ns)));
}

/* output.id grows with its age, so only the oldest rows are looked at. */
static int sweep_bytes(stk_sdb *db)
{
    int64_t before = db->now - STK_MINUTES.ns;
    if (STK_SQL_DO(db,
                   "DELETE FROM output WHERE id IN (SELECT id FROM (SELECT id, made FROM output ORDER BY id "
                   "LIMIT " BATCH ") WHERE made < ?1)",
                   V_INT(before)) < 0 ||
        STK_SQL_DO(db,
                   "DELETE FROM results WHERE seq IN (SELECT seq FROM results WHERE made < ?1 ORDER BY made "
                   "LIMIT " BATCH ")",
                   V_INT(before)) < 0)
        return -(int)db->err->code;
    return STK_SQL_DO(db, "DELETE FROM pool WHERE taken = 1 AND since < ?1",
                      V_INT(db->now - stk_sec(3600).ns));
}

int stk__do_reap(stk_sdb *db, stk_op *op_)
{
    stk_op_reap *op = (stk_op_reap *)op_;
    if (grace(db, op) < 0 || reap_workers(db, op) < 0 || settle_and_open(db, op) < 0 ||
        sweep_runs(db, op) < 0 || sweep_bytes(db) < 0)
        return -(int)db->err->code;
    return 0;
}
