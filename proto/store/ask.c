#include "proto/store/ask.h"
#include <inttypes.h>
#include <stdio.h>

/* "<milliseconds>.<id>" of the last row seen. */
static bool read_cursor(stk_query_job *job)
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

static void add_place(stk_buf *sql, const stk_binds *b, char mark, const char *condition)
{
    stk_buf_text(sql, condition);
    stk_buf_fmt(sql, "%c%d", mark, b->n);
}

static void add_text(stk_buf *sql, stk_binds *b, char mark, const char *condition, const char *text)
{
    b->v[b->n++].text = text;
    add_place(sql, b, mark, condition);
}

static void add_number(stk_buf *sql, stk_binds *b, char mark, const char *condition, int64_t number)
{
    b->v[b->n++].number = number;
    add_place(sql, b, mark, condition);
}

static void add_action(stk_buf *sql, stk_binds *b, char mark, char *action)
{
    size_t n = strlen(action);
    if (n < 2 || strcmp(action + n - 2, ".*") != 0) {
        add_text(sql, b, mark, " AND action = ", action);
        return;
    }
    action[n - 1] = '\0';
    add_text(sql, b, mark, " AND substr(action, 1, length(", action);
    add_place(sql, b, mark, ")) = ");
}

void stk__query_conditions(stk_query_job *job, stk_buf *sql, stk_binds *b, char mark)
{
    stk_audit_query *q = &job->query;
    if (q->run[0])
        add_text(sql, b, mark, " AND run <> '' AND run = ", q->run);
    if (q->tenant[0])
        add_text(sql, b, mark, " AND tenant = ", q->tenant);
    if (q->agent[0])
        add_text(sql, b, mark, " AND agent = ", q->agent);
    if (q->action[0])
        add_action(sql, b, mark, q->action);
    if (q->since.ns)
        add_number(sql, b, mark, " AND time >= ", ceil_ms(q->since));
    if (q->until.ns)
        add_number(sql, b, mark, " AND time < ", ceil_ms(q->until));
    if (q->cursor[0]) {
        add_number(sql, b, mark, q->oldest_first ? " AND (time, id) > (" : " AND (time, id) < (",
                   job->cursor_ms);
        add_text(sql, b, mark, ", ", job->cursor_id);
        stk_buf_text(sql, ")");
    }
}

int stk__query_add(stk_query_job *job, stk_str row, int64_t ms, stk_str id)
{
    if (!job->rows)
        job->rows = stk_xcalloc((size_t)job->query.limit, sizeof(*job->rows));
    if (stk_audit_decode(row, &job->rows[job->n], &job->base.err) < 0) {
        stk_audit_row_done(&job->rows[job->n]);
        job->base.err.code = STK_E_CORRUPT;
        return stk_err_wrap(&job->base.err, "row %.*s is damaged (verify the chain)", (int)id.n,
                            id.n ? id.p : "");
    }
    job->n++;
    snprintf(job->cursor, sizeof(job->cursor), "%" PRId64 ".%.*s", ms, (int)id.n, id.n ? id.p : "");
    return 0;
}

static void query_tell(stk_store_job *base)
{
    stk_query_job *job = stk__query_of(base);
    bool ok = base->err.code == STK_OK;
    base->tell.rows(ok ? NULL : &base->err, ok ? job->rows : NULL, ok ? job->n : 0, ok ? job->cursor : "",
                    base->arg);
}

static void query_done(stk_store_job *base)
{
    stk_query_job *job = stk__query_of(base);
    for (size_t i = 0; i < job->n; i++)
        stk_audit_row_done(&job->rows[i]);
    free(job->rows);
}

static bool query_work(stk_store_desk *desk, stk_store_job *job)
{
    return desk->work->query(desk, job);
}

static const stk_store_kind query_kind = {
    .size = sizeof(stk_query_job), .work = query_work, .tell = query_tell, .done = query_done};

void stk__store_query(stk_store *store, const stk_audit_query *query, stk_audit_rows done, void *arg)
{
    stk_query_job *job = stk__store_job_new(store, &query_kind, arg);
    job->base.tell.rows = done;
    job->query = *query;
    if (query->limit < 1 || query->limit > STK__QUERY_MAX)
        stk_err_field(&job->base.err, STK_E_FIELD, "/limit", "1 to %d", STK__QUERY_MAX);
    else if (query->cursor[0] && !read_cursor(job))
        stk_err_field(&job->base.err, STK_E_FIELD, "/cursor", "not a cursor that was given out here");
    stk__store_job_submit(&job->base);
}

static void result_tell(stk_store_job *base)
{
    stk_result_job *job = stk__result_of(base);
    base->tell.got(base->err.code ? &base->err : NULL, job->found ? &job->event : NULL, base->arg);
}

static void result_done(stk_store_job *base)
{
    stk_event_done(&stk__result_of(base)->event);
}

int stk__result_found(stk_result_job *job, stk_str event)
{
    int rc = stk_event_decode(event, &job->event, &job->base.err);
    if (rc < 0)
        return stk_err_wrap(&job->base.err, "the result of %s is damaged", job->run);
    job->found = job->event.run[0];
    return 0;
}

static bool result_work(stk_store_desk *desk, stk_store_job *job)
{
    return desk->work->result(desk, job);
}

static const stk_store_kind result_kind = {
    .size = sizeof(stk_result_job), .work = result_work, .tell = result_tell, .done = result_done};

void stk__store_result(stk_store *store, const char *tenant, const char *run, stk_result_got done, void *arg)
{
    stk_result_job *job = stk__store_job_new(store, &result_kind, arg);
    job->base.tell.got = done;
    if (!stk_str_copy(stk_str_of(tenant), job->tenant, sizeof(job->tenant)) ||
        !stk_str_copy(stk_str_of(run), job->run, sizeof(job->run)))
        job->run[0] = '\0'; /* an id that can't be is not there */
    stk__store_job_submit(&job->base);
}

static void offset_tell(stk_store_job *base)
{
    stk_offset_job *job = stk__offset_of(base);
    base->tell.done(base->err.code ? &base->err : NULL, job->next, 0, 0, base->arg);
}

static void offset_done(stk_store_job *base)
{
    free(stk__offset_of(base)->topic);
}

static bool offset_work(stk_store_desk *desk, stk_store_job *job)
{
    return desk->work->offset(desk, job);
}

static const stk_store_kind offset_kind = {
    .size = sizeof(stk_offset_job), .work = offset_work, .tell = offset_tell, .done = offset_done};

void stk__store_offset(stk_store *store, const char *topic, int32_t partition, stk_store_done done, void *arg)
{
    stk_offset_job *job = stk__store_job_new(store, &offset_kind, arg);
    job->base.tell.done = done;
    job->topic = stk_xstrdup(topic);
    job->partition = partition;
    stk__store_job_submit(&job->base);
}

static bool verify_work(stk_store_desk *desk, stk_store_job *job)
{
    return desk->work->verify(desk, job);
}

static void verify_tell(stk_store_job *base)
{
    stk_verify_job *job = stk__verify_of(base);
    bool ok = base->err.code == STK_OK;
    base->tell.verified(ok ? NULL : &base->err, ok ? &job->check.report : NULL, base->arg);
}

static void verify_done(stk_store_job *base)
{
    stk__check_done(&stk__verify_of(base)->check);
}

static const stk_store_kind verify_kind = {.size = sizeof(stk_verify_job),
                                           .long_one = true,
                                           .work = verify_work,
                                           .tell = verify_tell,
                                           .done = verify_done};

void stk__store_verify(stk_store *store, stk_verify_done done, void *arg)
{
    stk_verify_job *job = stk__store_job_new(store, &verify_kind, arg);
    job->base.tell.verified = done;
    stk__store_job_submit(&job->base);
}
