/* Verifying the chains: in slices, so that other questions are answered in between. */
#include "proto/store/store_sqlite_impl.h"

#define SLICE 2000 /* rows */

static int begin(stk_check *c, sqlite3 *db, stk_err *err)
{
    sqlite3_stmt *stmt = NULL, *rows = NULL;
    stk__check_begin(c);
    int rc = stk_db_prepare(db, "SELECT partition, max(seq) FROM audit GROUP BY partition ORDER BY partition",
                            &stmt, err);
    while (rc == 0 && (rc = stk_db_step(stmt, err)) == 1) {
        stk__check_place(c, sqlite3_column_int(stmt, 0), sqlite3_column_int64(stmt, 1), (stk_str){NULL, 0});
        rc = 0;
    }
    sqlite3_finalize(stmt);
    if (rc == 0)
        rc = stk_db_prepare(db,
                            "SELECT seq, id, time, tenant, agent, run, action, row, hash FROM audit"
                            " WHERE partition = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4",
                            &rows, err);
    c->own = rows;
    return rc;
}

static bool check_row(stk_check *c, sqlite3_stmt *stmt)
{
    const stk_stored_row row = {.seq = sqlite3_column_int64(stmt, 0),
                                .id = stk_db_blob(stmt, 1),
                                .ms = sqlite3_column_int64(stmt, 2),
                                .tenant = stk_db_blob(stmt, 3),
                                .agent = stk_db_blob(stmt, 4),
                                .run = stk_db_blob(stmt, 5),
                                .action = stk_db_blob(stmt, 6),
                                .row = stk_db_blob(stmt, 7),
                                .hash = stk_db_blob(stmt, 8)};
    return stk__check_row(c, &row);
}

/* 1 = more to do, 0 = the report is complete. */
static int step(stk_check *c, sqlite3 *db, stk_err *err)
{
    if (!c->begun) {
        int rc = begin(c, db, err);
        return rc < 0 ? rc : 1;
    }
    if (c->at == c->nplaces) {
        stk__check_end(c);
        return 0;
    }
    sqlite3_stmt *rows = c->own;
    sqlite3_bind_int(rows, 1, c->places[c->at].partition);
    sqlite3_bind_int64(rows, 2, c->chain.seq);
    sqlite3_bind_int64(rows, 3, c->places[c->at].last);
    sqlite3_bind_int(rows, 4, SLICE);
    int rc, n = 0;
    while ((rc = stk_db_step(rows, err)) == 1 && check_row(c, rows))
        n++;
    sqlite3_reset(rows);
    if (rc < 0 || !c->report.ok)
        return rc < 0 ? rc : 0;
    if (n < SLICE)
        rc = stk__check_chain_end(c, err);
    return rc < 0 ? rc : c->report.ok;
}

bool stk__sqlite_verify(stk_store_desk *desk, stk_store_job *base)
{
    stk_check *c = &stk__verify_of(base)->check;
    if (!base->err.code && step(c, stk__file_of(desk)->read_db, &base->err) == 1)
        return false;
    sqlite3_finalize(STK_TAKE(c->own)); /* on the thread of its connection */
    return true;
}

int stk_store_sqlite_verify_file(const char *path, stk_chain_report *ret, stk_err *err)
{
    stk_db_spec spec = stk__store_db_spec(path, NULL, true);
    sqlite3 *db = NULL;
    stk_check c = {0};
    int rc = stk_db_open(&spec, &db, err);
    while (rc == 0 && (rc = step(&c, db, err)) == 1)
        rc = 0;
    if (rc == 0)
        *ret = c.report;
    sqlite3_finalize(c.own);
    stk__check_done(&c);
    stk_db_close(db);
    return rc;
}
