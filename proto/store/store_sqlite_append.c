/* The writer thread: takes all batches that wait and commits them together. */
#include "proto/base/fail.h"
#include "proto/store/store_sqlite_impl.h"
#include <time.h>

int stk__store_writer_prepare(stk_store_file *file, stk_err *err)
{
    stk_store_writer *w = &file->writer;
    const struct {
        sqlite3_stmt **stmt;
        const char *sql;
    } all[] = {
        {&w->begin, "BEGIN IMMEDIATE"},
        {&w->commit, "COMMIT"},
        {&w->offset, "SELECT next FROM offsets WHERE topic = ?1 AND partition = ?2"},
        {&w->advance, "INSERT INTO offsets(topic, partition, next) VALUES(?1, ?2, ?3) ON CONFLICT DO UPDATE "
                      "SET next = excluded.next"},
        {&w->head, "SELECT seq, hash FROM audit WHERE partition = ?1 ORDER BY seq DESC LIMIT 1"},
        {&w->row, "INSERT INTO audit(partition, seq, id, time, tenant, agent, run, action, row, hash)"
                  " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT(id) DO NOTHING"},
        {&w->result,
         "INSERT INTO results(run, tenant, assignment, event) VALUES(?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING"},
        {&w->winner, "SELECT assignment FROM results WHERE run = ?1"},
        {&w->late, "INSERT INTO late(run, assignment, kind, pending, event) VALUES(?1, ?2, ?3, ?4, ?5) ON "
                   "CONFLICT DO NOTHING"},
        {&w->settle_won, "DELETE FROM late WHERE run = ?1 AND assignment = ?2 AND pending"},
        {&w->settle_lost, "UPDATE late SET pending = 0 WHERE run = ?1 AND pending"},
        {&w->probe, "UPDATE probe SET n = n + 1"},
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < STK_COUNT(all); i++)
        rc = stk_db_prepare(w->db, all[i].sql, all[i].stmt, err);
    return rc;
}

static int read_offset(stk_store_writer *w, const stk_append_job *job, int64_t *ret, stk_err *err)
{
    *ret = 0;
    stk_db_bind_text(w->offset, 1, job->topic);
    sqlite3_bind_int(w->offset, 2, job->partition);
    int rc = stk_db_step(w->offset, err);
    if (rc == 1)
        *ret = sqlite3_column_int64(w->offset, 0);
    sqlite3_reset(w->offset);
    return rc < 0 ? rc : 0;
}

static int read_head(stk_store_writer *w, int32_t partition, stk_chain *chain, stk_err *err)
{
    *chain = (stk_chain){0};
    sqlite3_bind_int(w->head, 1, partition);
    int rc = stk_db_step(w->head, err);
    if (rc == 1) {
        stk_str hash = stk_db_blob(w->head, 1);
        chain->seq = sqlite3_column_int64(w->head, 0);
        rc = 0;
        if (hash.n == sizeof(chain->hash))
            memcpy(chain->hash, hash.p, hash.n);
        else
            rc = stk_err_set(err, STK_E_CORRUPT, "the chain of partition %d ends in a damaged hash",
                             partition);
    }
    sqlite3_reset(w->head);
    return rc;
}

static int write_row(stk_store_writer *w, stk_append_job *job, const stk_store_entry *e, stk_chain *chain,
                     stk_err *err)
{
    uint8_t hash[STK_SHA256];
    stk_str row = stk__entry_bytes(job, e);
    if (stk_chain_next(chain, row, &w->scratch, hash) < 0)
        return stk_err_set(err, STK_E_LIMIT, "a row of %zu bytes", row.n);
    sqlite3_bind_int(w->row, 1, job->partition);
    sqlite3_bind_int64(w->row, 2, chain->seq + 1);
    stk_db_bind_text(w->row, 3, e->id);
    sqlite3_bind_int64(w->row, 4, e->ms);
    stk_db_bind_text(w->row, 5, e->tenant);
    stk_db_bind_text(w->row, 6, e->agent);
    stk_db_bind_text(w->row, 7, e->run);
    stk_db_bind_text(w->row, 8, e->action);
    stk_db_bind_blob(w->row, 9, row);
    stk_db_bind_blob(w->row, 10, stk_str_n(hash, sizeof(hash)));
    int rc = stk_db_run(w->row, err);
    if (rc == 0 && sqlite3_changes(w->db) == 1) {
        stk_chain_add(chain, hash);
        job->stored++;
    }
    return rc;
}

static int keep_late(stk_store_writer *w, stk_append_job *job, const stk_store_entry *e, bool pending,
                     stk_err *err)
{
    stk_db_bind_text(w->late, 1, e->run);
    stk_db_bind_text(w->late, 2, e->id);
    stk_db_bind_text(w->late, 3, e->action);
    sqlite3_bind_int(w->late, 4, pending);
    stk_db_bind_blob(w->late, 5, stk__entry_bytes(job, e));
    int rc = stk_db_run(w->late, err);
    job->stored += rc == 0 && sqlite3_changes(w->db) == 1;
    return rc;
}

/* 1: the run has a result, *ret_same = from this assignment. 0: none yet. */
static int has_winner(stk_store_writer *w, const stk_store_entry *e, bool *ret_same, stk_err *err)
{
    stk_db_bind_text(w->winner, 1, e->run);
    int rc = stk_db_step(w->winner, err);
    if (rc == 1)
        *ret_same = stk_str_eq(stk_db_blob(w->winner, 0), stk_str_of(e->id));
    sqlite3_reset(w->winner);
    return rc;
}

static int settle_evidence(stk_store_writer *w, const stk_store_entry *e, stk_err *err)
{
    stk_db_bind_text(w->settle_won, 1, e->run);
    stk_db_bind_text(w->settle_won, 2, e->id);
    stk_db_bind_text(w->settle_lost, 1, e->run);
    int rc = stk_db_run(w->settle_won, err);
    return rc < 0 ? rc : stk_db_run(w->settle_lost, err);
}

/* `finished` is the result, once; evidence waits for it and becomes late when another assignment won. */
static int write_event(stk_store_writer *w, stk_append_job *job, const stk_store_entry *e, stk_err *err)
{
    bool same = false;
    int won = has_winner(w, e, &same, err);
    if (won < 0)
        return won;
    if (won && same)
        return 0;
    if (won || e->late)
        return keep_late(w, job, e, false, err);
    if (strcmp(e->action, "finished") != 0)
        return keep_late(w, job, e, true, err);
    stk_db_bind_text(w->result, 1, e->run);
    stk_db_bind_text(w->result, 2, e->tenant);
    stk_db_bind_text(w->result, 3, e->id);
    stk_db_bind_blob(w->result, 4, stk__entry_bytes(job, e));
    int rc = stk_db_run(w->result, err);
    job->stored += rc == 0;
    return rc < 0 ? rc : settle_evidence(w, e, err);
}

static int advance(stk_store_writer *w, const stk_append_job *job, stk_err *err)
{
    stk_db_bind_text(w->advance, 1, job->topic);
    sqlite3_bind_int(w->advance, 2, job->partition);
    sqlite3_bind_int64(w->advance, 3, job->to);
    return stk_db_run(w->advance, err);
}

/* A batch that comes second (STALE) fails alone; nothing of it was written. */
static int write_batch(stk_store_writer *w, stk_append_job *job, stk_err *err)
{
    job->stored = 0;
    int rc = read_offset(w, job, &job->offset, err);
    if (rc < 0)
        return rc;
    if (job->offset != job->from) {
        stk__append_stale(job, job->offset);
        return 0;
    }
    stk_chain chain;
    if (job->nrows)
        rc = read_head(w, job->partition, &chain, err);
    for (size_t i = 0; rc == 0 && i < job->nrows; i++)
        rc = write_row(w, job, &job->rows[i], &chain, err);
    for (size_t i = 0; rc == 0 && i < job->nevents; i++)
        rc = write_event(w, job, &job->events[i], err);
    if (rc == 0)
        rc = advance(w, job, err);
    job->offset = job->to;
    return rc;
}

static void write_group(stk_store_file *file, stk_store_list *group, bool probe, stk_err *err)
{
    stk_store_writer *w = &file->writer;
    int rc = stk_db_run(w->begin, err);
    for (stk_store_job *job = group->head; rc == 0 && job; job = job->next)
        rc = write_batch(w, stk__append_of(job), err);
    if (rc == 0 && probe)
        rc = stk_db_run(w->probe, err);
    if (rc == 0)
        rc = stk_failpoint("store.append.before_commit", err);
    if (rc == 0)
        rc = stk_db_run(w->commit, err);
    if (rc < 0)
        stk_db_rollback(w->db);
    else
        (void)!stk_failpoint("store.append.after_commit",
                             err); /* an error here: stored, but the caller is not told so */
    stk_db_checkpointer_assist(file->checkpointer);
}

/* False: the file closes and nothing is left. While the disk is full it tries once a second by itself. */
static bool wait_for_work(stk_store_file *file)
{
    while (!file->desk.writes.head && !file->desk.stop) {
        if (!file->full) {
            pthread_cond_wait(&file->desk.write_wake, &file->desk.lock);
            continue;
        }
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec++;
        if (pthread_cond_timedwait(&file->desk.write_wake, &file->desk.lock, &until) != 0)
            return true;
    }
    return file->desk.writes.head != NULL;
}

void *stk__store_writer_main(void *arg)
{
    stk_store_file *file = arg;
    pthread_mutex_lock(&file->desk.lock);
    while (wait_for_work(file)) {
        stk_store_list group = stk__store_take_group(&file->desk);
        bool probe = !group.head;
        stk_err err = {0};
        pthread_mutex_unlock(&file->desk.lock);
        write_group(file, &group, probe, &err);
        pthread_mutex_lock(&file->desk.lock);
        file->full = err.code == STK_E_NO_SPACE;
        for (stk_store_job *job; (job = stk__store_list_pop(&group));) {
            if (err.code)
                job->err = err;
            stk__store_settle(job);
        }
    }
    pthread_mutex_unlock(&file->desk.lock);
    return NULL;
}
