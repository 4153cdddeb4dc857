/* Statements on a connection: one at a time, row by row, in a pipeline, and COPY. */
#include "proto/store/store_postgres_impl.h"
#include <poll.h>

#define GRACE stk_sec(5) /* the server ends a statement by itself first */

static bool of_class(const char *state, const char *list)
{
    for (; *list; list += 2)
        if (memcmp(state, list, 2) == 0)
            return true;
    return false;
}

static stk_code code_of(const char *state)
{
    if (!state || strlen(state) != 5)
        return STK_E_UNAVAILABLE;
    if (!strcmp(state, "23505") || !strcmp(state, "40001") || !strcmp(state, "40P01"))
        return STK_E_STALE;
    if (of_class(state, "222354"))
        return STK_E_FIELD;
    if (!strcmp(state, "53100"))
        return STK_E_NO_SPACE;
    return of_class(state, "XX") ? STK_E_CORRUPT : STK_E_UNAVAILABLE;
}

static int failed(stk_pg_link *link, const PGresult *res, stk_err *err)
{
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
    if (!text || PQstatus(link->conn) != CONNECTION_OK)
        return stk__pg_closed(link, err, "the connection broke");
    return stk_err_set(err, code_of(state), "PostgreSQL: %s (%s)", text, state ? state : "?");
}

static int flush(stk_pg_link *link, stk_err *err)
{
    for (;;) {
        int rc = PQflush(link->conn);
        if (rc == 0)
            return 0;
        if (rc < 0)
            return stk__pg_closed(link, err, "send");
        rc = stk__pg_wait(link, POLLIN | POLLOUT, err);
        if (rc < 0)
            return rc;
        if (PQconsumeInput(link->conn) == 0)
            return stk__pg_closed(link, err, "receive");
    }
}

/* The next result, NULL at the end of a statement. */
static int next_result(stk_pg_link *link, PGresult **ret, stk_err *err)
{
    while (PQisBusy(link->conn)) {
        int rc = stk__pg_wait(link, POLLIN, err);
        if (rc < 0)
            return rc;
        if (PQconsumeInput(link->conn) == 0)
            return stk__pg_closed(link, err, "receive");
    }
    *ret = PQgetResult(link->conn);
    return 0;
}

static bool fine(const PGresult *res)
{
    ExecStatusType status = PQresultStatus(res);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_SINGLE_TUPLE ||
           status == PGRES_COPY_IN || status == PGRES_PIPELINE_SYNC;
}

static void begin(stk_pg_link *link)
{
    link->until = stk_mono_add(stk_mono_now(), stk_ns(link->timeout.ns + GRACE.ns));
}

static int send_args(stk_pg_link *link, const char *sql, const stk_pg_args *args, stk_err *err)
{
    static const stk_pg_args none;
    if (!args)
        args = &none;
    int sent = PQsendQueryParams(link->conn, sql, args->n, args->types, args->values, args->lengths,
                                 args->formats, 1);
    return sent ? 0 : stk__pg_closed(link, err, "send");
}

/* All results up to NULL; the last good one is kept, the first error told. */
static int collect(stk_pg_link *link, PGresult **ret, stk_err *err)
{
    PGresult *last STK_AUTO(stk__pg_clearp) = NULL;
    int rc = flush(link, err);
    if (rc < 0)
        return rc;
    for (;;) {
        PGresult *res = NULL;
        int got = next_result(link, &res, err);
        if (got < 0)
            return got;
        if (!res)
            break;
        PQclear(last);
        last = res;
        if (!fine(res) && rc == 0)
            rc = failed(link, res, err);
        if (PQresultStatus(res) == PGRES_COPY_IN || stk__pg_link_broken(rc))
            break;
    }
    if (rc == 0 && ret)
        *ret = STK_TAKE(last);
    return rc;
}

int stk__pg_ask(stk_pg_link *link, const char *sql, const stk_pg_args *args, PGresult **ret_res, stk_err *err)
{
    begin(link);
    int rc = send_args(link, sql, args, err);
    return rc < 0 ? rc : collect(link, ret_res, err);
}

int stk__pg_run(stk_pg_link *link, const char *sql, stk_err *err)
{
    begin(link);
    if (!PQsendQuery(link->conn, sql))
        return stk__pg_closed(link, err, "send");
    return collect(link, NULL, err);
}

void stk__pg_rollback(stk_pg_link *link)
{
    stk_err ignored;
    if (PQstatus(link->conn) == CONNECTION_OK && PQtransactionStatus(link->conn) != PQTRANS_IDLE &&
        stk__pg_run(link, "ROLLBACK", &ignored) < 0)
        stk__pg_link_drop(link, &ignored);
}

int stk__pg_rows_begin(stk_pg_link *link, const char *sql, const stk_pg_args *args, stk_err *err)
{
    begin(link);
    int rc = send_args(link, sql, args, err);
    if (rc == 0 && !PQsetSingleRowMode(link->conn))
        rc = stk__pg_closed(link, err, "row by row");
    return rc < 0 ? rc : flush(link, err);
}

int stk__pg_rows_next(stk_pg_link *link, PGresult **ret_res, stk_err *err)
{
    PGresult *res = NULL;
    int rc = next_result(link, &res, err);
    if (rc < 0 || !res)
        return rc;
    if (PQresultStatus(res) == PGRES_SINGLE_TUPLE) {
        *ret_res = res;
        return 1;
    }
    if (!fine(res))
        rc = failed(link, res, err);
    PQclear(res);
    if (!stk__pg_link_broken(rc))
        stk__pg_rows_rest(link);
    return rc;
}

void stk__pg_rows_rest(stk_pg_link *link)
{
    stk_err ignored;
    PGresult *res = NULL;
    while (next_result(link, &res, &ignored) == 0 && res)
        PQclear(res);
}

/* --- pipelines: errors of one statement abort those after it, up to the end */

int stk__pg_pipe_begin(stk_pg_link *link, stk_err *err)
{
    begin(link);
    return PQenterPipelineMode(link->conn) ? 0 : stk__pg_closed(link, err, "pipeline");
}

int stk__pg_pipe_add(stk_pg_link *link, const char *sql, const stk_pg_args *args, stk_err *err)
{
    return send_args(link, sql, args, err);
}

int stk__pg_pipe_send(stk_pg_link *link, stk_err *err)
{
    if (!PQpipelineSync(link->conn))
        return stk__pg_closed(link, err, "send");
    return flush(link, err);
}

int stk__pg_pipe_take(stk_pg_link *link, PGresult **ret_res, stk_err *err)
{
    PGresult *res = NULL, *end = NULL;
    int rc = next_result(link, &res, err);
    if (rc < 0)
        return rc;
    if (!fine(res))
        rc = failed(link, res, err);
    int ended = next_result(link, &end, rc < 0 ? NULL : err);
    PQclear(end);
    if (rc < 0 || ended < 0 || !ret_res)
        PQclear(res);
    else
        *ret_res = res;
    return rc < 0 ? rc : ended;
}

int stk__pg_pipe_end(stk_pg_link *link, int rc, stk_err *err)
{
    stk_err second;
    while (!stk__pg_link_broken(rc)) {
        PGresult *res = NULL;
        int got = next_result(link, &res, rc < 0 ? &second : err);
        bool synced = PQresultStatus(res) == PGRES_PIPELINE_SYNC;
        PQclear(res);
        if (got < 0 || PQstatus(link->conn) != CONNECTION_OK) {
            if (rc == 0 && got == 0)
                got = stk__pg_closed(link, err, "the connection broke");
            return rc < 0 ? rc : got;
        }
        if (synced)
            break;
    }
    if (!stk__pg_link_broken(rc) && !PQexitPipelineMode(link->conn))
        return stk__pg_closed(link, err, "pipeline");
    return rc;
}

/* --- COPY */

int stk__pg_copy_begin(stk_pg_link *link, const char *sql, stk_err *err)
{
    return stk__pg_run(link, sql, err);
}

int stk__pg_copy_add(stk_pg_link *link, stk_str bytes, stk_err *err)
{
    for (;;) {
        int rc = PQputCopyData(link->conn, bytes.p, (int)bytes.n);
        if (rc < 0)
            return stk__pg_closed(link, err, "copy");
        int flushed = flush(link, err);
        if (flushed < 0 || rc == 1)
            return flushed;
    }
}

int stk__pg_copy_end(stk_pg_link *link, stk_err *err)
{
    int rc;
    begin(link);
    while ((rc = PQputCopyEnd(link->conn, NULL)) == 0)
        if ((rc = flush(link, err)) < 0)
            return rc;
    return rc < 0 ? stk__pg_closed(link, err, "copy") : collect(link, NULL, err);
}
