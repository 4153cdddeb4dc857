/* Questions to the reader thread: rows, results, offsets. */
#include "proto/store/store_sqlite_impl.h"
#include <inttypes.h>

static const char *index_of(const stk_audit_query *q)
{
    return q->run[0] ? "audit_run" : q->tenant[0] ? "audit_tenant" : "audit_time";
}

static void build(stk_query_job *job, stk_buf *sql, stk_binds *b)
{
    const stk_audit_query *q = &job->query;
    const char *way = q->oldest_first ? "ASC" : "DESC";
    stk_buf_fmt(sql, "SELECT row, time, id FROM audit INDEXED BY %s WHERE 1", index_of(q));
    stk__query_conditions(job, sql, b, '?');
    stk_buf_fmt(sql, " ORDER BY time %s, id %s LIMIT %" PRId64, way, way, q->limit + 1);
}

static int prepare_query(sqlite3 *db, stk_query_job *job, sqlite3_stmt **ret)
{
    stk_buf sql STK_AUTO(stk_buf_done) = STK_BUF(2048);
    stk_binds b = {0};
    build(job, &sql, &b);
    int rc = stk_db_prepare(db, sql.p, ret, &job->base.err);
    for (int i = 0; rc == 0 && i < b.n; i++)
        if (b.v[i].text)
            stk_db_bind_text(*ret, i + 1, b.v[i].text);
        else
            sqlite3_bind_int64(*ret, i + 1, b.v[i].number);
    return rc;
}

bool stk__sqlite_query(stk_store_desk *desk, stk_store_job *base)
{
    stk_query_job *job = stk__query_of(base);
    sqlite3_stmt *stmt = NULL;
    size_t bytes = 0;
    bool more = false;
    int rc = prepare_query(stk__file_of(desk)->read_db, job, &stmt);
    while (rc == 0 && (rc = stk_db_step(stmt, &base->err)) == 1) {
        more = (int64_t)job->n == job->query.limit || bytes >= STK__QUERY_BYTES;
        if (more)
            break;
        stk_str row = stk_db_blob(stmt, 0);
        bytes += row.n;
        rc = stk__query_add(job, row, sqlite3_column_int64(stmt, 1), stk_db_blob(stmt, 2));
    }
    if (!more)
        job->cursor[0] = '\0';
    sqlite3_finalize(stmt);
    return true;
}

bool stk__sqlite_result(stk_store_desk *desk, stk_store_job *base)
{
    stk_result_job *job = stk__result_of(base);
    sqlite3_stmt *stmt = NULL;
    int rc = stk_db_prepare(stk__file_of(desk)->read_db,
                            "SELECT event FROM results WHERE run = ?1 AND (?2 = '' OR tenant = ?2)", &stmt,
                            &base->err);
    if (rc == 0) {
        stk_db_bind_text(stmt, 1, job->run);
        stk_db_bind_text(stmt, 2, job->tenant);
        rc = stk_db_step(stmt, &base->err);
    }
    if (rc == 1)
        (void)stk__result_found(job, stk_db_blob(stmt, 0));
    sqlite3_finalize(stmt);
    return true;
}

bool stk__sqlite_offset(stk_store_desk *desk, stk_store_job *base)
{
    stk_offset_job *job = stk__offset_of(base);
    sqlite3_stmt *stmt = NULL;
    int rc =
        stk_db_prepare(stk__file_of(desk)->read_db,
                       "SELECT next FROM offsets WHERE topic = ?1 AND partition = ?2", &stmt, &base->err);
    if (rc == 0) {
        stk_db_bind_text(stmt, 1, job->topic);
        sqlite3_bind_int(stmt, 2, job->partition);
        rc = stk_db_step(stmt, &base->err);
    }
    if (rc == 1)
        job->next = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return true;
}
