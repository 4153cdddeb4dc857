/* Verifying the chains: row by row, in slices, so that other questions are answered in between. */
#include "proto/store/store_sqlite_impl.h"
#include <stdio.h>

#define SLICE 2000 /* rows */

typedef struct place {
    int32_t partition;
    int64_t last; /* seq when the check began: rows added meanwhile are not waited for */
} place;

typedef struct check {
    place *places;
    size_t nplaces, at;
    stk_chain chain;
    stk_chain_heads heads;
    stk_buf scratch;
    sqlite3_stmt *rows;
    stk_chain_report report;
    bool begun;
} check;

static void check_done(check *c)
{
    sqlite3_finalize(c->rows);
    free(c->places);
    stk_buf_done(&c->heads.bytes);
    stk_buf_done(&c->scratch);
    *c = (check){0};
}

static int begin(check *c, sqlite3 *db, stk_err *err)
{
    sqlite3_stmt *stmt = NULL;
    stk_buf_init(&c->heads.bytes, (size_t)64 << 20);
    stk_buf_init(&c->scratch, STK__STORE_ROW_MAX + STK_SHA256);
    c->report.ok = c->begun = true;
    int rc = stk_db_prepare(db, "SELECT partition, max(seq) FROM audit GROUP BY partition ORDER BY partition",
                            &stmt, err);
    while (rc == 0 && (rc = stk_db_step(stmt, err)) == 1) {
        if ((c->nplaces & (c->nplaces - 1)) == 0)
            c->places = stk_xrealloc(c->places, (c->nplaces ? c->nplaces * 2 : 1) * sizeof(*c->places));
        c->places[c->nplaces++] = (place){sqlite3_column_int(stmt, 0), sqlite3_column_int64(stmt, 1)};
        rc = 0;
    }
    sqlite3_finalize(stmt);
    c->report.chains = (int32_t)c->nplaces;
    return rc < 0 ? rc
                  : stk_db_prepare(db,
                                   "SELECT seq, id, time, tenant, agent, run, action, row, hash FROM audit"
                                   " WHERE partition = ?1 AND seq > ?2 AND seq <= ?3 ORDER BY seq LIMIT ?4",
                                   &c->rows, err);
}

static bool text_is(sqlite3_stmt *stmt, int column, const char *want)
{
    return stk_str_eq(stk_db_blob(stmt, column), stk_str_of(want));
}

/* The columns are what queries search by: they must say what the row says. NULL when all is well. */
static const char *columns_wrong(sqlite3_stmt *stmt, stk_str bytes)
{
    stk_audit_row row STK_AUTO(stk_audit_row_done) = {0};
    if (stk_audit_decode(bytes, &row, NULL) < 0)
        return "the row is not an audit row";
    if (!text_is(stmt, 1, row.id) || !text_is(stmt, 3, row.tenant) || !text_is(stmt, 4, row.agent) ||
        !text_is(stmt, 5, row.run) || !text_is(stmt, 6, row.action) ||
        sqlite3_column_int64(stmt, 2) != row.time.ns / 1000000)
        return "a column says something else than the row";
    return NULL;
}

static void broken(check *c, int64_t seq, stk_str id, const char *why)
{
    c->report.ok = false;
    c->report.bad_partition = c->places[c->at].partition;
    c->report.bad_seq = seq;
    if (!stk_str_copy(id, c->report.bad_id, sizeof(c->report.bad_id)))
        c->report.bad_id[0] = '\0';
    snprintf(c->report.why, sizeof(c->report.why), "%s", why);
}

/* False: broken (the report says where). */
static bool check_row(check *c, sqlite3_stmt *stmt)
{
    int64_t want = c->chain.seq + 1;
    stk_str id = stk_db_blob(stmt, 1), bytes = stk_db_blob(stmt, 7), hash = stk_db_blob(stmt, 8);
    uint8_t computed[STK_SHA256];
    const char *why = NULL;
    if (sqlite3_column_int64(stmt, 0) != want) {
        broken(c, want, (stk_str){NULL, 0}, "the row is missing");
        return false;
    }
    if (hash.n != sizeof(computed) || stk_chain_next(&c->chain, bytes, &c->scratch, computed) < 0 ||
        memcmp(hash.p, computed, sizeof(computed)) != 0)
        why = "the hash does not follow from the row and the one before";
    else
        why = columns_wrong(stmt, bytes);
    if (why) {
        broken(c, want, id, why);
        return false;
    }
    stk_chain_add(&c->chain, computed);
    c->report.rows++;
    return true;
}

static int end_of_chain(check *c, stk_err *err)
{
    const place *p = &c->places[c->at];
    if (c->chain.seq != p->last)
        broken(c, c->chain.seq + 1, (stk_str){NULL, 0}, "the row is missing");
    else if (stk_chain_heads_add(&c->heads, p->partition, &c->chain) < 0)
        return stk_err_set(err, STK_E_LIMIT, "too many chains");
    c->at++;
    c->chain = (stk_chain){0};
    return 0;
}

/* 1 = more to do, 0 = the report is complete. */
static int step(check *c, sqlite3 *db, stk_err *err)
{
    if (!c->begun) {
        int rc = begin(c, db, err);
        return rc < 0 ? rc : 1;
    }
    if (c->at == c->nplaces) {
        stk_chain_heads_digest(&c->heads, c->report.head);
        return 0;
    }
    sqlite3_bind_int(c->rows, 1, c->places[c->at].partition);
    sqlite3_bind_int64(c->rows, 2, c->chain.seq);
    sqlite3_bind_int64(c->rows, 3, c->places[c->at].last);
    sqlite3_bind_int(c->rows, 4, SLICE);
    int rc, n = 0;
    while ((rc = stk_db_step(c->rows, err)) == 1 && check_row(c, c->rows))
        n++;
    sqlite3_reset(c->rows);
    if (rc < 0 || !c->report.ok)
        return rc < 0 ? rc : 0;
    if (n < SLICE)
        rc = end_of_chain(c, err);
    return rc < 0 ? rc : c->report.ok;
}

typedef struct verify_job {
    stk_store_job base;
    check check;
} verify_job;

static bool verify_work(stk_store_file *file, stk_store_job *base)
{
    verify_job *job = STK_CONTAINER(base, verify_job, base);
    if (!base->err.code && step(&job->check, file->read_db, &base->err) == 1)
        return false;
    sqlite3_finalize(STK_TAKE(job->check.rows)); /* on the thread of its connection */
    return true;
}

static void verify_tell(stk_store_job *base)
{
    verify_job *job = STK_CONTAINER(base, verify_job, base);
    bool ok = base->err.code == STK_OK;
    base->tell.verified(ok ? NULL : &base->err, ok ? &job->check.report : NULL, base->arg);
}

static void verify_done(stk_store_job *base)
{
    check_done(&STK_CONTAINER(base, verify_job, base)->check);
}

static const stk_store_kind verify_kind = {.size = sizeof(verify_job),
                                           .long_one = true,
                                           .work = verify_work,
                                           .tell = verify_tell,
                                           .done = verify_done};

void stk__store_verify(stk_store *store, stk_verify_done done, void *arg)
{
    verify_job *job = stk__store_job_new(store, &verify_kind, arg);
    job->base.tell.verified = done;
    stk__store_job_submit(&job->base);
}

int stk_store_sqlite_verify_file(const char *path, stk_chain_report *ret, stk_err *err)
{
    stk_db_spec spec = stk__store_db_spec(path, NULL, true);
    sqlite3 *db = NULL;
    check c = {0};
    int rc = stk_db_open(&spec, &db, err);
    while (rc == 0 && (rc = step(&c, db, err)) == 1)
        rc = 0;
    if (rc == 0)
        *ret = c.report;
    check_done(&c);
    stk_db_close(db);
    return rc;
}
