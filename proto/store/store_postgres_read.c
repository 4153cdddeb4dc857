/* The reader's answers: rows, results, offsets, and the walk along the chains. */
#include "proto/store/store_postgres_impl.h"
#include <inttypes.h>

#define SLICE 2000 /* rows of a chain, then others have their turn */

/* A failure of the connection ends it; the next question connects again. */
static void settle_link(stk_pg_link *link, stk_store_job *job)
{
    if (link->conn && stk__pg_link_broken(-(int)job->err.code))
        stk__pg_link_drop(link, &job->err);
}

/* The page ends at its limit or after STK__QUERY_BYTES; the last column says whether more rows follow. */
static void build(stk_query_job *job, stk_buf *sql, stk_binds *b)
{
    const char *way = job->query.oldest_first ? "ASC" : "DESC";
    stk_buf_fmt(sql,
                "SELECT row, time, id, more FROM (SELECT row, time, id, lead(id) OVER w IS NOT NULL AS more,"
                " sum(octet_length(row)) OVER w - octet_length(row) AS before FROM (SELECT row, time, id "
                "FROM audit WHERE true");
    stk__query_conditions(job, sql, b, '$');
    stk_buf_fmt(sql,
                " ORDER BY time %s, id %s LIMIT %" PRId64
                ") found WINDOW w AS (ORDER BY time %s, id %s)) page"
                " WHERE before < %zu ORDER BY time %s, id %s LIMIT %" PRId64,
                way, way, job->query.limit + 1, way, way, STK__QUERY_BYTES, way, way, job->query.limit);
}

static int ask_rows(stk_pg_link *link, stk_query_job *job, stk_err *err)
{
    stk_buf sql STK_AUTO(stk_buf_done) = STK_BUF(4096);
    stk_binds b = {0};
    stk_pg_args args = {0};
    build(job, &sql, &b);
    for (int i = 0; i < b.n; i++)
        if (b.v[i].text)
            stk__pg_text(&args, b.v[i].text);
        else
            stk__pg_int8(&args, b.v[i].number);
    return stk__pg_rows_begin(link, sql.p, &args, err);
}

bool stk__pg_query(stk_store_desk *desk, stk_store_job *base)
{
    stk_query_job *job = stk__query_of(base);
    stk_pg_link *link = &stk__pg_of(desk)->reader;
    bool more = false, damaged = false;
    PGresult *res = NULL;
    int rc = ask_rows(link, job, &base->err);
    while (rc == 0 && (rc = stk__pg_rows_next(link, &res, &base->err)) == 1) {
        rc = stk__query_add(job, stk__pg_get(res, 0, 0), stk__pg_get_int(res, 0, 1), stk__pg_get(res, 0, 2));
        more = stk__pg_get_int(res, 0, 3);
        damaged = rc < 0;
        PQclear(res);
    }
    if (!more)
        job->cursor[0] = '\0';
    if (damaged)
        stk__pg_rows_rest(link);
    else
        settle_link(link, base);
    return true;
}

bool stk__pg_result(stk_store_desk *desk, stk_store_job *base)
{
    stk_result_job *job = stk__result_of(base);
    stk_pg_link *link = &stk__pg_of(desk)->reader;
    PGresult *res STK_AUTO(stk__pg_clearp) = NULL;
    stk_pg_args args = {0};
    stk__pg_text(&args, job->run);
    stk__pg_text(&args, job->tenant);
    int rc = stk__pg_ask(link, "SELECT event FROM results WHERE run = $1 AND ($2 = '' OR tenant = $2)", &args,
                         &res, &base->err);
    if (rc == 0 && PQntuples(res) == 1)
        (void)stk__result_found(job, stk__pg_get(res, 0, 0));
    else
        settle_link(link, base);
    return true;
}

bool stk__pg_offset(stk_store_desk *desk, stk_store_job *base)
{
    stk_offset_job *job = stk__offset_of(base);
    stk_pg_link *link = &stk__pg_of(desk)->reader;
    PGresult *res STK_AUTO(stk__pg_clearp) = NULL;
    stk_pg_args args = {0};
    stk__pg_text(&args, job->topic);
    stk__pg_int4(&args, job->partition);
    int rc = stk__pg_ask(link, "SELECT next FROM offsets WHERE topic = $1 AND partition = $2", &args, &res,
                         &base->err);
    if (rc == 0 && PQntuples(res) == 1)
        job->next = stk__pg_get_int(res, 0, 0);
    settle_link(link, base);
    return true;
}

/* --- verify */

static int begin_check(stk_pg_link *link, stk_check *c, stk_err *err)
{
    PGresult *res STK_AUTO(stk__pg_clearp) = NULL;
    stk__check_begin(c);
    int rc = stk__pg_ask(link, "SELECT partition, seq, hash FROM chains WHERE seq > 0 ORDER BY partition",
                         NULL, &res, err);
    for (int i = 0; rc == 0 && i < PQntuples(res); i++)
        stk__check_place(c, (int32_t)stk__pg_get_int(res, i, 0), stk__pg_get_int(res, i, 1),
                         stk__pg_get(res, i, 2));
    return rc;
}

static int ask_slice(stk_pg_link *link, const stk_check *c, stk_err *err)
{
    stk_pg_args args = {0};
    stk__pg_int4(&args, c->places[c->at].partition);
    stk__pg_int8(&args, c->chain.seq);
    stk__pg_int8(&args, c->places[c->at].last);
    stk__pg_int8(&args, SLICE);
    return stk__pg_rows_begin(link,
                              "SELECT seq, id, time, tenant, agent, run, action, row, hash FROM audit"
                              " WHERE partition = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT $4",
                              &args, err);
}

static stk_stored_row stored_row(const PGresult *res)
{
    return (stk_stored_row){.seq = stk__pg_get_int(res, 0, 0),
                            .id = stk__pg_get(res, 0, 1),
                            .ms = stk__pg_get_int(res, 0, 2),
                            .tenant = stk__pg_get(res, 0, 3),
                            .agent = stk__pg_get(res, 0, 4),
                            .run = stk__pg_get(res, 0, 5),
                            .action = stk__pg_get(res, 0, 6),
                            .row = stk__pg_get(res, 0, 7),
                            .hash = stk__pg_get(res, 0, 8)};
}

/* Rows are missing: retention dropped them and left a checkpoint, or they are gone. */
static int cross_gap(stk_pg_link *link, const stk_keyring *ring, stk_check *c, stk_err *err)
{
    stk_pg_checkpoint cp;
    const char *why = "the row is missing";
    int rc =
        stk__pg_checkpoint_find(link, ring, c->places[c->at].partition, c->chain.seq + 1, &cp, &why, err);
    if (rc < 0)
        return rc;
    if (rc == 1 && memcmp(cp.before, c->chain.hash, sizeof(cp.before)) != 0)
        why = "a checkpoint does not follow from the row before";
    else if (rc == 1) {
        c->chain.seq = cp.to;
        memcpy(c->chain.hash, cp.after, sizeof(cp.after));
        return 0;
    }
    stk__check_broken(c, c->chain.seq + 1, (stk_str){NULL, 0}, why);
    return 0;
}

static int check_slice(stk_pg_link *link, stk_check *c, int *ret_n, bool *ret_gap, stk_err *err)
{
    PGresult *res = NULL;
    int n = 0;
    int rc = ask_slice(link, c, err);
    while (rc == 0 && (rc = stk__pg_rows_next(link, &res, err)) == 1) {
        stk_stored_row row = stored_row(res);
        *ret_gap = row.seq != c->chain.seq + 1;
        bool go_on = !*ret_gap && stk__check_row(c, &row);
        PQclear(res);
        n++;
        rc = 0;
        if (!go_on) {
            stk__pg_rows_rest(link);
            break;
        }
    }
    *ret_n = n;
    return rc;
}

/* 1 = more to do, 0 = the report is complete. */
static int check_step(stk_pg_link *link, const stk_keyring *ring, stk_check *c, stk_err *err)
{
    if (!c->begun) {
        int rc = begin_check(link, c, err);
        return rc < 0 ? rc : 1;
    }
    if (c->at == c->nplaces) {
        stk__check_end(c);
        return 0;
    }
    int n = 0;
    bool gap = false;
    int rc = check_slice(link, c, &n, &gap, err);
    if (rc < 0 || !c->report.ok)
        return rc;
    if (!gap && n == SLICE)
        return 1;
    if (c->chain.seq < c->places[c->at].last)
        rc = cross_gap(link, ring, c, err);
    else
        rc = stk__check_chain_end(c, err);
    return rc < 0 ? rc : c->report.ok;
}

bool stk__pg_verify(stk_store_desk *desk, stk_store_job *base)
{
    stk_store_pg *pg = stk__pg_of(desk);
    if (base->err.code)
        return true; /* given up */
    int rc = check_step(&pg->reader, pg->ring, &stk__verify_of(base)->check, &base->err);
    settle_link(&pg->reader, base);
    return rc != 1;
}
