#include "proto/state/state_sdb.h"
#include <stdio.h>

int stk__worker_load(stk_sdb *db, const char *worker, stk_sworker *ret)
{
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) =
        STK_SQL(db, "SELECT incarnation, slots, used, draining, until, lane FROM workers WHERE worker = ?1",
                V_TEXT(worker));
    int rc = stk__sql_next(db, stmt);
    *ret = (stk_sworker){.lane = -1, .there = rc > 0};
    snprintf(ret->id, sizeof(ret->id), "%s", worker);
    if (rc > 0) {
        STK_COL_TEXT(stmt, 0, ret->incarnation);
        ret->slots = sqlite3_column_int64(stmt, 1);
        ret->used = sqlite3_column_int64(stmt, 2);
        ret->draining = sqlite3_column_int(stmt, 3) != 0;
        ret->until = sqlite3_column_int64(stmt, 4);
        ret->lane = sqlite3_column_int(stmt, 5);
    }
    return rc < 0 ? rc : 0;
}

int stk__worker_remove(stk_sdb *db, const char *worker)
{
    if (STK_SQL_DO(db, "UPDATE pool SET taken = 1, since = ?2 WHERE worker = ?1 AND taken = 0",
                   V_TEXT(worker), V_INT(db->now)) < 0 ||
        STK_SQL_DO(db, "UPDATE lanes SET worker = '' WHERE worker = ?1", V_TEXT(worker)) < 0)
        return -(int)db->err->code;
    return STK_SQL_DO(db, "DELETE FROM workers WHERE worker = ?1", V_TEXT(worker));
}

/* A free lane, the worker's last one first: what was sent there is its own to drop. Makes the rows of lanes
 * that are new. */
static int take_lane(stk_sdb *db, stk_op_join *op)
{
    if (STK_SQL_DO(
            db,
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)"
            " INSERT OR IGNORE INTO lanes SELECT i, '', '', 0 FROM n WHERE ?1 > (SELECT count(*) FROM lanes)",
            V_INT(op->in.lanes)) < 0)
        return -(int)db->err->code;
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) = STK_SQL(
        db,
        "SELECT lane, off FROM lanes WHERE worker = '' AND lane < ?2 ORDER BY last <> ?1, last <> '', "
        "lane LIMIT 1",
        V_TEXT(op->in.worker), V_INT(op->in.lanes));
    int rc = stk__sql_next(db, stmt);
    op->outcome = rc > 0 ? STK_JOIN_OK : STK_JOIN_NO_LANE;
    op->lane = -1;
    if (rc <= 0)
        return rc;
    op->lane = sqlite3_column_int(stmt, 0);
    op->lane_offset = sqlite3_column_int64(stmt, 1);
    return STK_SQL_DO(db, "UPDATE lanes SET worker = ?2, last = ?2 WHERE lane = ?1", V_INT(op->lane),
                      V_TEXT(op->in.worker));
}

static int rejoin(stk_sdb *db, stk_op_join *op, const stk_sworker *worker)
{
    op->outcome = STK_JOIN_OK;
    op->lane = worker->lane;
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) =
        STK_SQL(db, "SELECT off FROM lanes WHERE lane = ?1", V_INT(op->lane));
    int rc = stk__sql_next(db, stmt);
    if (rc > 0)
        op->lane_offset = sqlite3_column_int64(stmt, 0);
    return rc < 0 ? rc : 0;
}

static int insert_worker(stk_sdb *db, const stk_op_join *op, int64_t used)
{
    stk__note(db, "capacity");
    return STK_SQL_DO(
        db, "INSERT OR REPLACE INTO workers VALUES(?1, ?2, ?3, ?4, ?5, 0, ?6, ?7, ?8, ?9, NULL, ?10, ?10)",
        V_TEXT(op->in.worker), V_TEXT(op->in.incarnation), V_TEXT(op->in.host), V_INT(op->in.slots),
        V_INT(used), V_INT(op->in.lease.ns), V_INT(db->now + op->in.lease.ns), V_INT(op->lane),
        V_BYTES(&op->in.backends), V_INT(op->in.now.ns));
}

int stk__do_join(stk_sdb *db, stk_op *op_)
{
    stk_op_join *op = (stk_op_join *)op_;
    stk_sworker worker;
    if (op->in.lanes < 1 || op->in.lanes > 65536 || op->in.lease.ns <= 0 ||
        !stk_id_valid("wrk", stk_str_of(op->in.worker)) ||
        !stk_id_valid("inc", stk_str_of(op->in.incarnation)))
        return stk_err_set(db->err, STK_E_FIELD, "joining needs lanes, a lease and an incarnation");
    snprintf(op->epoch, sizeof(op->epoch), "%s", db->epoch);
    stk_losing how = {.worker = op->in.worker,
                      .incarnation = op->in.incarnation,
                      .except = true,
                      .came_back = true,
                      .detail = "the worker was started again",
                      .now = op->in.now,
                      .v = &op->lost,
                      .n = &op->nlost};
    if (stk__worker_load(db, op->in.worker, &worker) < 0 || stk__lose(db, &how) < 0)
        return -(int)db->err->code;
    bool again = worker.there && strcmp(worker.incarnation, op->in.incarnation) == 0;
    if (again && worker.lane < op->in.lanes)
        return rejoin(db, op, &worker) < 0 ? -(int)db->err->code : insert_worker(db, op, worker.used);
    if (stk__worker_remove(db, op->in.worker) < 0 || take_lane(db, op) < 0)
        return -(int)db->err->code;
    return op->outcome == STK_JOIN_OK ? insert_worker(db, op, 0) : 0;
}

static int cancels_of(stk_sdb *db, stk_op_heartbeat *op)
{
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) =
        STK_SQL(db, "SELECT assignment FROM runs WHERE worker = ?1 AND state IN (3, 4) AND cancel = 1",
                V_TEXT(op->in.worker));
    int rc;
    while ((rc = stk__sql_next(db, stmt)) > 0)
        stk_strv_add(&op->cancels, stk_db_blob(stmt, 0));
    return rc;
}

int stk__do_heartbeat(stk_sdb *db, stk_op *op_)
{
    stk_op_heartbeat *op = (stk_op_heartbeat *)op_;
    stk_sworker worker;
    snprintf(op->epoch, sizeof(op->epoch), "%s", db->epoch);
    if (op->in.lease.ns <= 0)
        return stk_err_set(db->err, STK_E_FIELD, "a heartbeat needs a lease");
    if (stk__worker_load(db, op->in.worker, &worker) < 0)
        return -(int)db->err->code;
    if (!worker.there || strcmp(worker.incarnation, op->in.incarnation) != 0) {
        op->outcome = STK_HEARTBEAT_ENDED;
        return 0;
    }
    if (op->in.slots > worker.slots || (worker.draining && !op->in.draining) || worker.until <= db->now)
        stk__note(db, "capacity");
    op->outcome = STK_HEARTBEAT_OK;
    if (STK_SQL_DO(db,
                   "UPDATE workers SET lease = ?2, until = ?3, draining = ?4, slots = ?5, backends = "
                   "coalesce(?6, backends),"
                   " stats = coalesce(?7, stats), seen = ?8 WHERE worker = ?1",
                   V_TEXT(op->in.worker), V_INT(op->in.lease.ns), V_INT(db->now + op->in.lease.ns),
                   V_INT(op->in.draining), V_INT(op->in.slots), V_BYTES(&op->in.backends),
                   V_BYTES(&op->in.stats), V_INT(stk_wall_now().ns)) < 0)
        return -(int)db->err->code;
    return cancels_of(db, op);
}

int stk__do_leave(stk_sdb *db, stk_op *op_)
{
    stk_op_leave *op = (stk_op_leave *)op_;
    stk_sworker worker;
    if (stk__worker_load(db, op->in.worker, &worker) < 0)
        return -(int)db->err->code;
    if (!worker.there || strcmp(worker.incarnation, op->in.incarnation) != 0)
        return 0;
    stk_losing how = {.worker = op->in.worker,
                      .incarnation = op->in.incarnation,
                      .came_back = true,
                      .detail = "the worker left",
                      .now = op->in.now,
                      .v = &op->lost,
                      .n = &op->nlost};
    return stk__lose(db, &how) < 0 ? -(int)db->err->code : stk__worker_remove(db, op->in.worker);
}

int stk__do_lane_done(stk_sdb *db, stk_op *op_)
{
    stk_op_lane_done *op = (stk_op_lane_done *)op_;
    stk_sworker worker;
    if (stk__worker_load(db, op->in.worker, &worker) < 0)
        return -(int)db->err->code;
    op->held =
        worker.there && strcmp(worker.incarnation, op->in.incarnation) == 0 && worker.lane == op->in.lane;
    if (!op->held)
        return 0;
    return STK_SQL_DO(db, "UPDATE lanes SET off = max(off, ?2) WHERE lane = ?1", V_INT(op->in.lane),
                      V_INT(op->in.offset));
}

int stk__do_workers(stk_sdb *db, stk_op *op_)
{
    stk_op_workers *op = (stk_op_workers *)op_;
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) = STK_SQL(
        db,
        "SELECT worker, incarnation, host, slots, used, draining, until > ?1, backends, stats, joined, seen"
        " FROM workers ORDER BY worker",
        V_INT(db->now));
    int rc;
    while ((rc = stk__sql_next(db, stmt)) > 0) {
        stk_worker_row *row = STK_GROW(op->rows, op->n);
        STK_COL_TEXT(stmt, 0, row->id);
        STK_COL_TEXT(stmt, 1, row->incarnation);
        STK_COL_TEXT(stmt, 2, row->host);
        row->slots = sqlite3_column_int64(stmt, 3);
        row->used = sqlite3_column_int64(stmt, 4);
        row->draining = sqlite3_column_int(stmt, 5) != 0;
        row->live = sqlite3_column_int(stmt, 6) != 0;
        stk__col_bytes(stmt, 7, &row->backends);
        stk__col_bytes(stmt, 8, &row->stats);
        row->joined.ns = sqlite3_column_int64(stmt, 9);
        row->seen.ns = sqlite3_column_int64(stmt, 10);
    }
    return rc;
}
