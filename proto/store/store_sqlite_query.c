/* Questions to the reader thread: rows, results, offsets. */
#include "proto/store/store_sqlite_impl.h"
#include <inttypes.h>
#include <stdio.h>

#define QUERY_MAX   1000
#define QUERY_BYTES ((size_t)8 << 20)

/* --- rows
 * -------------------------------------------------------------------------------------------------------------
 */

typedef struct query_job {
    stk_store_job base;
    stk_audit_query query;
    int64_t cursor_ms;
    char cursor_id[STK_ID_SIZE];
    stk_audit_row *rows;
    size_t n;
    char cursor[64];
} query_job;

/* "<milliseconds>.<id>" of the last row seen. */
static bool read_cursor(query_job *job)
{
    const char *dot = strchr(job->query.cursor, '.');
    uint64_t ms = 0;
    if (!dot || !stk_str_u64(stk_str_n(job->query.cursor, (size_t)(dot - job->query.cursor)), INT64_MAX, &ms))
        return false;
    job->cursor_ms = (int64_t)ms;
    return stk_str_copy(stk_str_of(dot + 1), job->cursor_id, sizeof(job->cursor_id)) && job->cursor_id[0];
}

static int64_t ceil_ms(stk_wall t)
{
    return t.ns / 1000000 + (t.ns % 1000000 > 0);
}

typedef struct binds {
    int n;
    struct {
        const char *text; /* NULL: the number */
        int64_t number;
    } v[16];
} binds;

static void add_place(stk_buf *sql, const binds *b, const char *condition)
{
    stk_buf_text(sql, condition);
    stk_buf_fmt(sql, "?%d", b->n);
}

static void add_text(stk_buf *sql, binds *b, const char *condition, const char *text)
{
    b->v[b->n++].text = text;
    add_place(sql, b, condition);
}

static void add_number(stk_buf *sql, binds *b, const char *condition, int64_t number)
{
    b->v[b->n++].number = number;
    add_place(sql, b, condition);
}

static void add_action(stk_buf *sql, binds *b, char *action)
{
    size_t n = strlen(action);
    if (n < 2 || strcmp(action + n - 2, ".*") != 0) {
        add_text(sql, b, " AND action = ", action);
        return;
    }
    action[n - 1] = '\0';
    add_text(sql, b, " AND substr(action, 1, length(", action);
    add_place(sql, b, ")) = ");
}

static const char *index_of(const stk_audit_query *q)
{
    return q->run[0] ? "audit_run" : q->tenant[0] ? "audit_tenant" : "audit_time";
}

static void build(query_job *job, stk_buf *sql, binds *b)
{
    stk_audit_query *q = &job->query;
    stk_buf_fmt(sql, "SELECT row, time, id FROM audit INDEXED BY %s WHERE 1", index_of(q));
    if (q->run[0])
        add_text(sql, b, " AND run <> '' AND run = ", q->run);
    if (q->tenant[0])
        add_text(sql, b, " AND tenant = ", q->tenant);
    if (q->agent[0])
        add_text(sql, b, " AND agent = ", q->agent);
    if (q->action[0])
        add_action(sql, b, q->action);
    if (q->since.ns)
        add_number(sql, b, " AND time >= ", ceil_ms(q->since));
    if (q->until.ns)
        add_number(sql, b, " AND time < ", ceil_ms(q->until));
    if (q->cursor[0]) {
        add_number(sql, b, q->oldest_first ? " AND (time, id) > (" : " AND (time, id) < (", job->cursor_ms);
        add_text(sql, b, ", ", job->cursor_id);
        stk_buf_text(sql, ")");
    }
    const char *way = q->oldest_first ? "ASC" : "DESC";
    stk_buf_fmt(sql, " ORDER BY time %s, id %s LIMIT %" PRId64, way, way, q->limit + 1);
}

static int prepare_query(sqlite3 *db, query_job *job, sqlite3_stmt **ret)
{
    stk_buf sql STK_AUTO(stk_buf_done) = STK_BUF(2048);
    binds b = {0};
    build(job, &sql, &b);
    int rc = stk_db_prepare(db, sql.p, ret, &job->base.err);
    for (int i = 0; rc == 0 && i < b.n; i++)
        if (b.v[i].text)
            stk_db_bind_text(*ret, i + 1, b.v[i].text);
        else
            sqlite3_bind_int64(*ret, i + 1, b.v[i].number);
    return rc;
}

static int add_row(query_job *job, sqlite3_stmt *stmt, size_t *bytes)
{
    stk_str row = stk_db_blob(stmt, 0);
    const char *id = (const char *)sqlite3_column_text(stmt, 2);
    if (stk_audit_decode(row, &job->rows[job->n], &job->base.err) < 0) {
        stk_audit_row_done(&job->rows[job->n]);
        job->base.err.code = STK_E_CORRUPT;
        return stk_err_wrap(&job->base.err, "row %s is damaged (verify the chain)", id ? id : "?");
    }
    job->n++;
    *bytes += row.n;
    snprintf(job->cursor, sizeof(job->cursor), "%" PRId64 ".%s", (int64_t)sqlite3_column_int64(stmt, 1), id);
    return 0;
}

static bool query_work(stk_store_file *file, stk_store_job *base)
{
    query_job *job = STK_CONTAINER(base, query_job, base);
    sqlite3_stmt *stmt = NULL;
    size_t bytes = 0;
    bool more = false;
    int rc = prepare_query(file->read_db, job, &stmt);
    job->rows = stk_xcalloc((size_t)job->query.limit, sizeof(*job->rows));
    while (rc == 0 && (rc = stk_db_step(stmt, &base->err)) == 1) {
        more = (int64_t)job->n == job->query.limit || bytes >= QUERY_BYTES;
        if (more)
            break;
        rc = add_row(job, stmt, &bytes);
    }
    if (!more)
        job->cursor[0] = '\0';
    sqlite3_finalize(stmt);
    return true;
}

static void query_tell(stk_store_job *base)
{
    query_job *job = STK_CONTAINER(base, query_job, base);
    bool ok = base->err.code == STK_OK;
    base->tell.rows(ok ? NULL : &base->err, ok ? job->rows : NULL, ok ? job->n : 0, ok ? job->cursor : "",
                    base->arg);
}

static void query_done(stk_store_job *base)
{
    query_job *job = STK_CONTAINER(base, query_job, base);
    for (size_t i = 0; i < job->n; i++)
        stk_audit_row_done(&job->rows[i]);
    free(job->rows);
}

static const stk_store_kind query_kind = {
    .size = sizeof(query_job), .work = query_work, .tell = query_tell, .done = query_done};

void stk__store_query(stk_store *store, const stk_audit_query *query, stk_audit_rows done, void *arg)
{
    query_job *job = stk__store_job_new(store, &query_kind, arg);
    job->base.tell.rows = done;
    job->query = *query;
    if (query->limit < 1 || query->limit > QUERY_MAX)
        stk_err_field(&job->base.err, STK_E_FIELD, "/limit", "1 to %d", QUERY_MAX);
    else if (query->cursor[0] && !read_cursor(job))
        stk_err_field(&job->base.err, STK_E_FIELD, "/cursor", "not a cursor that was given out here");
    stk__store_job_submit(&job->base);
}

/* --- one result
 * ------------------------------------------------------------------------------------------------------- */

typedef struct result_job {
    stk_store_job base;
    char tenant[STK_TENANT_MAX], run[STK_ID_SIZE];
    bool found;
    stk_event event;
} result_job;

static bool result_work(stk_store_file *file, stk_store_job *base)
{
    result_job *job = STK_CONTAINER(base, result_job, base);
    sqlite3_stmt *stmt = NULL;
    int rc =
        stk_db_prepare(file->read_db, "SELECT event FROM results WHERE run = ?1 AND (?2 = '' OR tenant = ?2)",
                       &stmt, &base->err);
    if (rc == 0) {
        stk_db_bind_text(stmt, 1, job->run);
        stk_db_bind_text(stmt, 2, job->tenant);
        rc = stk_db_step(stmt, &base->err);
    }
    if (rc == 1 && (rc = stk_event_decode(stk_db_blob(stmt, 0), &job->event, &base->err)) < 0)
        stk_err_wrap(&base->err, "the result of %s is damaged", job->run);
    else
        job->found = base->err.code == STK_OK && job->event.run[0];
    sqlite3_finalize(stmt);
    return true;
}

static void result_tell(stk_store_job *base)
{
    result_job *job = STK_CONTAINER(base, result_job, base);
    base->tell.got(base->err.code ? &base->err : NULL, job->found ? &job->event : NULL, base->arg);
}

static void result_done(stk_store_job *base)
{
    stk_event_done(&STK_CONTAINER(base, result_job, base)->event);
}

static const stk_store_kind result_kind = {
    .size = sizeof(result_job), .work = result_work, .tell = result_tell, .done = result_done};

void stk__store_result(stk_store *store, const char *tenant, const char *run, stk_result_got done, void *arg)
{
    result_job *job = stk__store_job_new(store, &result_kind, arg);
    job->base.tell.got = done;
    if (!stk_str_copy(stk_str_of(tenant), job->tenant, sizeof(job->tenant)) ||
        !stk_str_copy(stk_str_of(run), job->run, sizeof(job->run)))
        job->run[0] = '\0'; /* an id that can't be is not there */
    stk__store_job_submit(&job->base);
}

/* --- an offset
 * ----------------------------------------------------------------------------------------------------------
 */

typedef struct offset_job {
    stk_store_job base;
    char *topic;
    int32_t partition;
    int64_t next;
} offset_job;

static bool offset_work(stk_store_file *file, stk_store_job *base)
{
    offset_job *job = STK_CONTAINER(base, offset_job, base);
    sqlite3_stmt *stmt = NULL;
    int rc = stk_db_prepare(file->read_db, "SELECT next FROM offsets WHERE topic = ?1 AND partition = ?2",
                            &stmt, &base->err);
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

static void offset_tell(stk_store_job *base)
{
    offset_job *job = STK_CONTAINER(base, offset_job, base);
    base->tell.done(base->err.code ? &base->err : NULL, job->next, 0, 0, base->arg);
}

static void offset_done(stk_store_job *base)
{
    free(STK_CONTAINER(base, offset_job, base)->topic);
}

static const stk_store_kind offset_kind = {
    .size = sizeof(offset_job), .work = offset_work, .tell = offset_tell, .done = offset_done};

void stk__store_offset(stk_store *store, const char *topic, int32_t partition, stk_store_done done, void *arg)
{
    offset_job *job = stk__store_job_new(store, &offset_kind, arg);
    job->base.tell.done = done;
    job->topic = stk_xstrdup(topic);
    job->partition = partition;
    stk__store_job_submit(&job->base);
}
