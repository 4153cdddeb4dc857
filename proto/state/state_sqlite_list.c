#include "proto/state/state_sdb.h"

#define ROW_COLUMNS                                                                                          \
    "r.id, r.tenant, r.agent, r.kind, r.state, r.reason, r.assignment, r.worker, r.sandbox, r.lane, "        \
    "r.attempt,"                                                                                             \
    " r.cancel, r.priority, r.submitted, r.started, r.finished, r.part, r.off, r.labels"
enum { LABELS_AT = 18, RESULT_AT = 19 };

static int read_row(stk_sdb *db, sqlite3_stmt *stmt, stk_run_row *row)
{
    int c = 0;
    STK_COL_TEXT(stmt, c++, row->id);
    STK_COL_TEXT(stmt, c++, row->tenant);
    STK_COL_TEXT(stmt, c++, row->agent);
    STK_COL_TEXT(stmt, c++, row->kind);
    row->state = (stk_run_state)sqlite3_column_int(stmt, c++);
    STK_COL_TEXT(stmt, c++, row->reason);
    STK_COL_TEXT(stmt, c++, row->assignment);
    STK_COL_TEXT(stmt, c++, row->worker);
    STK_COL_TEXT(stmt, c++, row->sandbox);
    row->lane = sqlite3_column_int(stmt, c++);
    row->attempt = sqlite3_column_int64(stmt, c++);
    row->cancel_asked = sqlite3_column_int(stmt, c++) != 0;
    row->priority = sqlite3_column_int64(stmt, c++);
    row->submitted.ns = sqlite3_column_int64(stmt, c++);
    row->started.ns = sqlite3_column_int64(stmt, c++);
    row->finished.ns = sqlite3_column_int64(stmt, c++);
    row->partition = sqlite3_column_int(stmt, c++);
    row->offset = sqlite3_column_int64(stmt, c);
    return stk__labels_decode(stk_db_blob(stmt, LABELS_AT), &row->labels, db->err);
}

int stk__do_run_get(stk_sdb *db, stk_op *op_)
{
    stk_op_run_get *op = (stk_op_run_get *)op_;
    op->row.lane = op->row.partition = -1;
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) =
        STK_SQL(db,
                "SELECT " ROW_COLUMNS ", x.result FROM runs r LEFT JOIN results x ON x.seq = r.seq"
                " WHERE r.id = ?1 AND (?2 = '' OR r.tenant = ?2)",
                V_TEXT(op->in.run), V_TEXT(op->in.tenant));
    int rc = stk__sql_next(db, stmt);
    op->found = rc > 0;
    if (rc <= 0)
        return rc;
    stk__col_bytes(stmt, RESULT_AT, &op->row.result);
    return read_row(db, stmt, &op->row);
}

/* seq of the cursor's row; a row that is gone ends the list. */
static int cursor_seq(stk_sdb *db, const char *cursor, int64_t *ret)
{
    *ret = INT64_MAX;
    if (!cursor[0])
        return 0;
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) =
        STK_SQL(db, "SELECT seq FROM runs WHERE id = ?1", V_TEXT(cursor));
    int rc = stk__sql_next(db, stmt);
    *ret = rc > 0 ? sqlite3_column_int64(stmt, 0) : 0;
    return rc < 0 ? rc : 0;
}

static bool label_fits(const stk_op_run_list *op, const stk_run_row *row)
{
    if (!op->in.label_key[0])
        return true;
    const stk_bytes *value = stk_map_get(&row->labels, stk_str_of(op->in.label_key));
    return value && stk_str_eq(stk_bytes_view(value), stk_str_of(op->in.label_value));
}

/* One statement for a tenant (its index, newest first) and one for all, so that neither walks the other's
 * rows. */
static sqlite3_stmt *list_statement(stk_sdb *db, const stk_op_run_list *op, int64_t before)
{
    if (op->in.tenant[0])
        return STK_SQL(db,
                       "SELECT " ROW_COLUMNS " FROM runs r WHERE r.tenant = ?1 AND r.seq < ?2"
                       " AND (?3 = '' OR r.agent = ?3) AND (?4 = 0 OR r.state = ?4) ORDER BY r.seq DESC",
                       V_TEXT(op->in.tenant), V_INT(before), V_TEXT(op->in.agent), V_INT(op->in.state));
    return STK_SQL(db,
                   "SELECT " ROW_COLUMNS " FROM runs r WHERE r.seq < ?1"
                   " AND (?2 = '' OR r.agent = ?2) AND (?3 = 0 OR +r.state = ?3) ORDER BY r.seq DESC",
                   V_INT(before), V_TEXT(op->in.agent), V_INT(op->in.state));
}

int stk__do_run_list(stk_sdb *db, stk_op *op_)
{
    stk_op_run_list *op = (stk_op_run_list *)op_;
    int64_t before;
    if (op->in.limit < 1 || op->in.limit > 1000)
        return stk_err_set(db->err, STK_E_FIELD, "a list has 1 to 1000 runs");
    if (cursor_seq(db, op->in.cursor, &before) < 0)
        return -(int)db->err->code;
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) = list_statement(db, op, before);
    int rc;
    while ((rc = stk__sql_next(db, stmt)) > 0) {
        stk_run_row row = {0};
        rc = read_row(db, stmt, &row);
        bool fits = rc == 0 && label_fits(op, &row);
        op->more = fits && op->n == (size_t)op->in.limit;
        if (fits && !op->more)
            *STK_GROW(op->rows, op->n) = row;
        else
            stk_run_row_done(&row);
        if (rc < 0 || op->more)
            return rc;
    }
    return rc;
}

static int sum_runs(stk_sdb *db, stk_op_counts *op)
{
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) =
        STK_SQL(db, "SELECT 0, sum(s1), sum(s2), sum(s3), sum(s4), sum(s5) FROM tenants");
    int rc = stk__sql_next(db, stmt);
    for (int s = STK_RUN_SUBMITTED; rc > 0 && s < STK_RUN_STATES; s++)
        op->by_state[s] = sqlite3_column_int64(stmt, s);
    return rc < 0 ? rc : 0;
}

static int sum_workers(stk_sdb *db, stk_op_counts *op)
{
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) =
        STK_SQL(db, "SELECT count(*), sum(slots), sum(used) FROM workers WHERE until > ?1", V_INT(db->now));
    int rc = stk__sql_next(db, stmt);
    if (rc > 0) {
        op->workers_live = sqlite3_column_int64(stmt, 0);
        op->slots = sqlite3_column_int64(stmt, 1);
        op->used = sqlite3_column_int64(stmt, 2);
    }
    return rc < 0 ? rc : 0;
}

static int oldest(stk_sdb *db, stk_op_counts *op)
{
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) = STK_SQL(
        db, "SELECT submitted FROM runs WHERE state = ?1 ORDER BY since LIMIT 1", V_INT(STK_RUN_QUEUED));
    int rc = stk__sql_next(db, stmt);
    op->oldest_queued.ns = rc > 0 ? sqlite3_column_int64(stmt, 0) : 0;
    return rc < 0 ? rc : 0;
}

int stk__do_counts(stk_sdb *db, stk_op *op_)
{
    stk_op_counts *op = (stk_op_counts *)op_;
    stk_str_copy(stk_str_of(db->epoch), op->epoch, sizeof(op->epoch));
    op->open = db->open;
    if (sum_runs(db, op) < 0 || sum_workers(db, op) < 0 || oldest(db, op) < 0)
        return -(int)db->err->code;
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) = STK_SQL(db, "SELECT count(*) FROM outbox");
    int rc = stk__sql_next(db, stmt);
    op->outbox = rc > 0 ? sqlite3_column_int64(stmt, 0) : 0;
    return rc < 0 ? rc : 0;
}
