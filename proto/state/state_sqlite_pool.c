/* A sandbox that was taken, dropped, or whose worker's incarnation ended stays as a mark for an hour: a put
 * that comes twice, or late, never brings it back. */
#include "proto/state/state_sdb.h"

static int is_his(stk_sdb *db, const stk_pool_row *row, bool *ret)
{
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) =
        STK_SQL(db, "SELECT 1 FROM pool WHERE sandbox = ?1 AND worker = ?2 AND incarnation = ?3",
                V_TEXT(row->sandbox), V_TEXT(row->worker), V_TEXT(row->incarnation));
    int rc = stk__sql_next(db, stmt);
    *ret = rc > 0;
    return rc < 0 ? rc : 0;
}

int stk__do_pool_put(stk_sdb *db, stk_op *op_)
{
    stk_op_pool_put *op = (stk_op_pool_put *)op_;
    stk_sworker worker;
    if (!stk_id_valid("sbx", stk_str_of(op->in.sandbox)))
        return stk_err_set(db->err, STK_E_FIELD, "a pooled sandbox has an id");
    if (stk__worker_load(db, op->in.worker, &worker) < 0)
        return -(int)db->err->code;
    if (!stk__worker_is(db, &worker, op->in.incarnation))
        return 0;
    stk__note(db, "capacity");
    if (STK_SQL_DO(db,
                   "INSERT OR IGNORE INTO pool(sandbox, template, tenant, pool, worker, incarnation, "
                   "backend, made, since)"
                   " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                   V_TEXT(op->in.sandbox), V_TEXT(op->in.template_key), V_TEXT(op->in.tenant),
                   V_TEXT(op->in.pool), V_TEXT(op->in.worker), V_TEXT(op->in.incarnation),
                   V_TEXT(op->in.backend), V_INT(op->in.made.ns), V_INT(db->now)) < 0)
        return -(int)db->err->code;
    return is_his(db, &op->in, &op->taken_in);
}

#define POOL_COLUMNS "p.sandbox, p.template, p.tenant, p.pool, p.worker, p.incarnation, p.backend, p.made"

static void read_row(sqlite3_stmt *stmt, stk_pool_row *row)
{
    STK_COL_TEXT(stmt, 0, row->sandbox);
    STK_COL_TEXT(stmt, 1, row->template_key);
    STK_COL_TEXT(stmt, 2, row->tenant);
    STK_COL_TEXT(stmt, 3, row->pool);
    STK_COL_TEXT(stmt, 4, row->worker);
    STK_COL_TEXT(stmt, 5, row->incarnation);
    STK_COL_TEXT(stmt, 6, row->backend);
    row->made.ns = sqlite3_column_int64(stmt, 7);
}

static int find(stk_sdb *db, stk_op_pool_take *op)
{
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) =
        op->in.sandbox[0]
            ? STK_SQL(db, "SELECT " POOL_COLUMNS " FROM pool p WHERE p.sandbox = ?1 AND p.taken = 0",
                      V_TEXT(op->in.sandbox))
            : STK_SQL(db,
                      "SELECT " POOL_COLUMNS " FROM pool p JOIN workers w ON w.worker = p.worker"
                      " AND w.incarnation = p.incarnation AND w.until > ?2 AND w.draining = 0"
                      " WHERE p.template = ?1 AND p.taken = 0 ORDER BY p.seq LIMIT 1",
                      V_TEXT(op->in.template_key), V_INT(db->now));
    int rc = stk__sql_next(db, stmt);
    op->found = rc > 0;
    if (rc > 0)
        read_row(stmt, &op->row);
    return rc < 0 ? rc : 0;
}

int stk__do_pool_take(stk_sdb *db, stk_op *op_)
{
    stk_op_pool_take *op = (stk_op_pool_take *)op_;
    if (find(db, op) < 0)
        return -(int)db->err->code;
    if (!op->found)
        return 0;
    return STK_SQL_DO(db, "UPDATE pool SET taken = 1, since = ?2 WHERE sandbox = ?1", V_TEXT(op->row.sandbox),
                      V_INT(db->now));
}

int stk__do_pool_drop(stk_sdb *db, stk_op *op_)
{
    stk_op_pool_drop *op = (stk_op_pool_drop *)op_;
    return STK_SQL_DO(
        db, "UPDATE pool SET taken = 1, since = ?3 WHERE sandbox = ?1 AND worker = ?2 AND taken = 0",
        V_TEXT(op->in.sandbox), V_TEXT(op->in.worker), V_INT(db->now));
}

int stk__do_pool_list(stk_sdb *db, stk_op *op_)
{
    stk_op_pool_list *op = (stk_op_pool_list *)op_;
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) =
        STK_SQL(db, "SELECT " POOL_COLUMNS " FROM pool p WHERE p.taken = 0 ORDER BY p.seq");
    int rc;
    while ((rc = stk__sql_next(db, stmt)) > 0)
        read_row(stmt, STK_GROW(op->rows, op->n));
    return rc;
}
