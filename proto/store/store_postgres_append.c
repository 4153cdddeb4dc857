/* The writer: all batches that wait in one transaction. Offsets are locked and compared first, so that a
 * second consumer of a partition waits, then is STALE. */
#include "proto/base/fail.h"
#include "proto/store/store_postgres_group.h"

#define TRIES 10

stk_pg_chain *stk__pg_chain_of(stk_pg_group *g, int32_t partition)
{
    for (size_t i = 0; i < g->nchains; i++)
        if (g->chains[i].partition == partition)
            return &g->chains[i];
    g->chains[g->nchains] = (stk_pg_chain){.partition = partition};
    return &g->chains[g->nchains++];
}

static stk_pg_lane *lane_of(stk_pg_group *g, const stk_append_job *job)
{
    for (size_t i = 0; i < g->nlanes; i++)
        if (g->lanes[i].partition == job->partition && strcmp(g->lanes[i].topic, job->topic) == 0)
            return &g->lanes[i];
    g->lanes[g->nlanes] = (stk_pg_lane){.topic = job->topic, .partition = job->partition};
    return &g->lanes[g->nlanes++];
}

static void group_init(stk_pg_group *g, stk_pg_link *link, stk_append_job **jobs, size_t n)
{
    *g = (stk_pg_group){.link = link, .jobs = jobs, .n = n};
    g->lanes = stk_xcalloc(n, sizeof(*g->lanes));
    g->chains = stk_xcalloc(n, sizeof(*g->chains));
    for (size_t i = 0; i < n; i++) {
        jobs[i]->base.err = (stk_err){0};
        jobs[i]->stored = 0;
        lane_of(g, jobs[i]);
        if (jobs[i]->nrows)
            stk__pg_chain_of(g, jobs[i]->partition);
    }
}

static void group_done(stk_pg_group *g)
{
    stk__pg_ids_done(&g->ids);
    free(g->lanes);
    free(g->chains);
}

static void gather_ids(stk_pg_group *g)
{
    size_t rows = 0;
    for (size_t i = 0; i < g->n; i++)
        rows += g->jobs[i]->nrows;
    stk__pg_ids_done(&g->ids);
    stk__pg_ids_init(&g->ids, rows);
    for (size_t i = 0; i < g->n; i++)
        for (size_t k = 0; stk__pg_accepted(g->jobs[i]) && k < g->jobs[i]->nrows; k++)
            stk__pg_ids_add(&g->ids, g->jobs[i]->rows[k].id);
}

/* --- the parts of a transaction */

static int send_locks(const stk_pg_group *g, stk_err *err)
{
    int rc = stk__pg_pipe_add(g->link, "BEGIN", NULL, err);
    for (size_t i = 0; rc == 0 && i < g->nlanes; i++) {
        stk_pg_args args = {0};
        stk__pg_text(&args, g->lanes[i].topic);
        stk__pg_int4(&args, g->lanes[i].partition);
        rc = stk__pg_pipe_add(g->link,
                              "INSERT INTO offsets AS o VALUES($1, $2, 0) ON CONFLICT (topic, partition)"
                              " DO UPDATE SET next = o.next RETURNING next",
                              &args, err);
    }
    for (size_t i = 0; rc == 0 && i < g->nchains; i++) {
        stk_pg_args args = {0};
        stk__pg_int4(&args, g->chains[i].partition);
        rc = stk__pg_pipe_add(g->link,
                              "INSERT INTO chains AS c VALUES($1, 0, decode(repeat('00', 32), 'hex'))"
                              " ON CONFLICT (partition) DO UPDATE SET seq = c.seq RETURNING seq, hash",
                              &args, err);
    }
    return rc < 0 ? rc : stk__pg_pipe_send(g->link, err);
}

static int take_chain(stk_pg_group *g, stk_pg_chain *c, stk_err *err)
{
    PGresult *res STK_AUTO(stk__pg_clearp) = NULL;
    int rc = stk__pg_pipe_take(g->link, &res, err);
    if (rc < 0)
        return rc;
    stk_str hash = stk__pg_get(res, 0, 1);
    c->chain.seq = stk__pg_get_int(res, 0, 0);
    if (hash.n != sizeof(c->chain.hash))
        return stk_err_set(err, STK_E_CORRUPT, "the chain of partition %d ends in a damaged hash",
                           c->partition);
    memcpy(c->chain.hash, hash.p, hash.n);
    return 0;
}

static int lock(stk_pg_group *g, stk_err *err)
{
    int rc = stk__pg_pipe_begin(g->link, err);
    if (rc < 0)
        return rc;
    rc = send_locks(g, err);
    if (rc == 0)
        rc = stk__pg_pipe_take(g->link, NULL, err);
    for (size_t i = 0; rc == 0 && i < g->nlanes; i++) {
        PGresult *res STK_AUTO(stk__pg_clearp) = NULL;
        rc = stk__pg_pipe_take(g->link, &res, err);
        if (rc == 0)
            g->lanes[i].next = stk__pg_get_int(res, 0, 0);
    }
    for (size_t i = 0; rc == 0 && i < g->nchains; i++)
        rc = take_chain(g, &g->chains[i], err);
    return stk__pg_pipe_end(g->link, rc, err);
}

/* True when all jobs go on from the offset that is there. */
static bool accept_jobs(stk_pg_group *g)
{
    bool all = true;
    for (size_t i = 0; i < g->n; i++) {
        stk_append_job *job = g->jobs[i];
        stk_pg_lane *lane = lane_of(g, job);
        if (lane->next == job->from)
            lane->next = job->offset = job->to;
        else
            stk__append_stale(job, lane->next);
        all = all && stk__pg_accepted(job);
    }
    return all;
}

static int send_event(const stk_pg_group *g, const stk_append_job *job, const stk_store_entry *e,
                      stk_err *err)
{
    stk_pg_args args = {0};
    stk__pg_text(&args, e->run);
    stk__pg_text(&args, e->tenant);
    stk__pg_text(&args, e->id);
    stk__pg_text(&args, e->action);
    stk__pg_bool(&args, e->late);
    stk__pg_bytes(&args, stk__entry_bytes(job, e));
    return stk__pg_pipe_add(g->link, "SELECT store_event($1, $2, $3, $4, $5, $6)", &args, err);
}

static int take_events(stk_pg_group *g, stk_append_job *job, stk_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < job->nevents; i++) {
        PGresult *res STK_AUTO(stk__pg_clearp) = NULL;
        rc = stk__pg_pipe_take(g->link, &res, err);
        if (rc == 0)
            job->stored += (size_t)stk__pg_get_int(res, 0, 0);
        else if (rc == -STK_E_FIELD)
            job->bad = job->nrows + i;
    }
    return rc;
}

static int store_events(stk_pg_group *g, stk_append_job *job, stk_err *err)
{
    int rc = stk__pg_pipe_begin(g->link, err);
    if (rc < 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < job->nevents; i++)
        rc = send_event(g, job, &job->events[i], err);
    if (rc == 0)
        rc = stk__pg_pipe_send(g->link, err);
    if (rc == 0)
        rc = take_events(g, job, err);
    return stk__pg_pipe_end(g->link, rc, err);
}

static int send_ends(const stk_pg_group *g, stk_err *err)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < g->nlanes; i++) {
        stk_pg_args args = {0};
        stk__pg_text(&args, g->lanes[i].topic);
        stk__pg_int4(&args, g->lanes[i].partition);
        stk__pg_int8(&args, g->lanes[i].next);
        rc = stk__pg_pipe_add(g->link, "UPDATE offsets SET next = $3 WHERE topic = $1 AND partition = $2",
                              &args, err);
    }
    for (size_t i = 0; rc == 0 && i < g->nchains; i++) {
        const stk_pg_chain *c = &g->chains[i];
        stk_pg_args args = {0};
        stk__pg_int4(&args, c->partition);
        stk__pg_int8(&args, c->chain.seq);
        stk__pg_bytes(&args, stk_str_n(c->chain.hash, sizeof(c->chain.hash)));
        rc = stk__pg_pipe_add(g->link, "UPDATE chains SET seq = $2, hash = $3 WHERE partition = $1", &args,
                              err);
    }
    return rc < 0 ? rc : stk__pg_pipe_send(g->link, err);
}

static int move_on(stk_pg_group *g, stk_err *err)
{
    int rc = stk__pg_pipe_begin(g->link, err);
    if (rc < 0)
        return rc;
    rc = send_ends(g, err);
    for (size_t i = 0; rc == 0 && i < g->nlanes + g->nchains; i++)
        rc = stk__pg_pipe_take(g->link, NULL, err);
    return stk__pg_pipe_end(g->link, rc, err);
}

static int write_all(stk_pg_group *g, stk_err *err)
{
    int rc = stk__pg_ids_look(g->link, &g->ids, err);
    if (rc == 0)
        rc = stk__pg_copy_rows(g, SIZE_MAX, err);
    for (size_t i = 0; rc == 0 && i < g->n; i++)
        if (stk__pg_accepted(g->jobs[i]) && g->jobs[i]->nevents)
            rc = store_events(g, g->jobs[i], err);
    return rc < 0 ? rc : move_on(g, err);
}

static int commit(stk_pg_group *g, stk_err *err)
{
    int rc = stk_failpoint("store.postgres.before_commit", err);
    if (rc == 0)
        rc = stk__pg_run(g->link, "COMMIT", err);
    return rc < 0 ? rc : stk_failpoint("store.postgres.after_commit", err);
}

/* --- a transaction, and what its failure means */

static int transaction(stk_pg_group *g, stk_err *err)
{
    int rc = stk__pg_link_up(g->link, err);
    if (rc < 0)
        return rc;
    gather_ids(g);
    rc = stk__pg_ids_ensure(g->link, &g->ids, err);
    if (rc == 0)
        rc = lock(g, err);
    if (rc == 0 && !accept_jobs(g))
        gather_ids(g);
    if (rc == 0)
        rc = write_all(g, err);
    if (rc == 0)
        rc = commit(g, err);
    if (rc < 0 && g->link->conn) {
        if (stk__pg_link_broken(rc))
            stk__pg_link_drop(g->link, err);
        else
            stk__pg_rollback(g->link);
    }
    return rc;
}

/* Whether the server refuses the first n rows of a job. Keeps nothing. */
static int try_rows(stk_pg_link *link, stk_append_job *job, size_t n, stk_err *err)
{
    stk_pg_group g;
    group_init(&g, link, &job, 1);
    gather_ids(&g);
    int rc = stk__pg_link_up(link, err);
    if (rc == 0)
        rc = stk__pg_run(link, "BEGIN", err);
    if (rc == 0)
        rc = stk__pg_ids_look(link, &g.ids, err);
    if (rc == 0)
        rc = stk__pg_copy_rows(&g, n, err);
    if (link->conn && stk__pg_link_broken(rc))
        stk__pg_link_drop(link, err);
    else if (link->conn)
        stk__pg_rollback(link);
    group_done(&g);
    return rc;
}

/* `why` says FIELD. Which row is it? Rows [0, good) pass, rows [0, bad] do not. */
static void find_bad(stk_pg_link *link, stk_append_job *job, const stk_err *why)
{
    size_t good = 0, bad = job->nrows;
    stk_err err = {0}, last = *why;
    while (good < bad) {
        size_t middle = good + (bad - good) / 2;
        int rc = try_rows(link, job, middle + 1, &err);
        if (rc == -STK_E_FIELD) {
            bad = middle;
            last = err;
        } else if (rc == 0) {
            good = middle + 1;
        } else {
            job->base.err = err;
            return;
        }
    }
    if (good < job->nrows)
        job->bad = good;
    job->base.err = last; /* or an event: take_events has said which */
}

static void write_jobs(stk_pg_link *link, stk_append_job **jobs, size_t n)
{
    stk_err err = {0};
    stk_pg_group g;
    int rc = -STK_E_STALE;
    for (int i = 0; rc == -STK_E_STALE && i < TRIES; i++) {
        group_init(&g, link, jobs, n);
        rc = transaction(&g, &err);
        group_done(&g);
    }
    if (rc == 0)
        return;
    if (rc == -STK_E_FIELD && n > 1) {
        for (size_t i = 0; i < n; i++)
            write_jobs(link, &jobs[i], 1);
        return;
    }
    if (rc == -STK_E_STALE)
        err.code = STK_E_UNAVAILABLE;
    for (size_t i = 0; i < n; i++)
        jobs[i]->base.err = err;
    if (rc == -STK_E_FIELD)
        find_bad(link, jobs[0], &err);
}

void stk__pg_write(stk_pg_link *link, stk_store_list *group)
{
    size_t n = 0;
    for (stk_store_job *job = group->head; job; job = job->next)
        n++;
    stk_append_job **jobs STK_AUTO(stk_freep) = stk_xcalloc(n, sizeof(stk_append_job *));
    n = 0;
    for (stk_store_job *job = group->head; job; job = job->next)
        jobs[n++] = stk__append_of(job);
    write_jobs(link, jobs, n);
}
