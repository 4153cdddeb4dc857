/* The writer thread: takes everything that waits, commits it as one transaction, completes it and hands it to
 * consumers. It never waits to gather more: while one commit syncs, the next batch gathers by itself. */
#include "proto/base/fail.h"
#include "proto/bus/bus_sqlite_impl.h"
#include <stdio.h>

#define BATCH_MAX    4096
#define BATCH_BYTES  (8 << 20)
#define COMMIT_AFTER 200  /* ms: finished prefixes are written at the latest */
#define COMMIT_WITH  50   /* ms: … or with a transaction that happens anyway */
#define PROBE_AFTER  1000 /* ms between tries while the disk is full */
#define TRIM_STEP    2000 /* offsets per transaction */

typedef struct saved {
    stk_bus_group *group;
    int32_t partition;
    int64_t next;
} saved;

typedef struct batch {
    stk_bus_list pubs;
    saved *saved;
    size_t nsaved, saved_size;
    stk_bus_trim_job *trim;
    int64_t trim_first, trim_to;
    bool trim_last; /* the job is complete with this step */
    bool probe;
    stk_publish_outcome outcome;
    stk_err err;
} batch;

int stk__bus_writer_prepare(stk_bus_file *file, stk_err *err)
{
    stk_bus_writer *w = &file->writer;
    const struct {
        sqlite3_stmt **stmt;
        const char *sql;
    } all[] = {
        {&w->begin, "BEGIN IMMEDIATE"},
        {&w->commit, "COMMIT"},
        {&w->insert, "INSERT INTO messages(topic_id, partition, offset, time, key, headers, value) "
                     "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)"},
        {&w->save, "INSERT INTO commits(grp, topic_id, partition, next) VALUES(?1, ?2, ?3, ?4)"
                   " ON CONFLICT DO UPDATE SET next = excluded.next"},
        {&w->trim, "DELETE FROM messages WHERE topic_id = ?1 AND partition = ?2 AND offset < ?3"},
        {&w->compact,
         "DELETE FROM messages WHERE topic_id = ?1 AND partition = ?2 AND offset < ?3 AND offset NOT IN"
         " (SELECT max(offset) FROM messages WHERE topic_id = ?1 AND partition = ?2 GROUP BY key)"},
        {&w->trimmed, "INSERT INTO trimmed(topic_id, partition, first) VALUES(?1, ?2, ?3)"
                      " ON CONFLICT DO UPDATE SET first = excluded.first"},
        {&w->probe, "UPDATE probe SET n = n + 1"},
    };
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < STK_COUNT(all); i++)
        rc = stk_db_prepare(w->db, all[i].sql, all[i].stmt, err);
    return rc;
}

void stk__bus_write_wake(stk_bus_file *file)
{
    if (file->writer_idle)
        pthread_cond_signal(&file->write_wake);
}

static int64_t commits_age_ms(const stk_bus_file *file)
{
    return file->commits_dirty ? stk_span_ms(stk_mono_sub(stk_mono_now(), file->commits_since)) : 0;
}

/* Returns with something to do, or false when the file closes and nothing is left. */
static bool wait_for_work(stk_bus_file *file)
{
    for (;;) {
        bool commits =
            file->commits_dirty && (file->stop || file->commits_now || commits_age_ms(file) >= COMMIT_AFTER);
        if (file->queue.head || file->trims || commits)
            return true;
        if (file->stop)
            return false;
        file->writer_idle = true;
        if (file->full)
            stk__bus_wait_until(&file->write_wake, &file->lock,
                                stk_mono_add(stk_mono_now(), stk_ms(PROBE_AFTER)));
        else if (file->commits_dirty)
            stk__bus_wait_until(&file->write_wake, &file->lock,
                                stk_mono_add(file->commits_since, stk_ms(COMMIT_AFTER)));
        else
            pthread_cond_wait(&file->write_wake, &file->lock);
        file->writer_idle = false;
        if (file->full && !file->queue.head)
            return !file->stop;
    }
}

static void take_pubs(stk_bus_file *file, batch *b)
{
    size_t n = 0, bytes = 0;
    while (file->queue.head && n < BATCH_MAX && bytes < BATCH_BYTES) {
        stk_bus_pub *pub = stk__bus_list_pop(&file->queue);
        size_t size = stk__bus_rec_size(pub->rec);
        file->queued--;
        file->queued_bytes -= size;
        bytes += size;
        n++;
        stk__bus_list_add(&b->pubs, pub);
    }
}

static void take_commits(stk_bus_file *file, batch *b)
{
    for (stk_bus_group *group = file->groups; group; group = group->next)
        for (int32_t i = 0; i < group->topic->nparts; i++) {
            if (!group->parts[i].dirty)
                continue;
            if (b->nsaved == b->saved_size) {
                b->saved_size = b->saved_size ? b->saved_size * 2 : 64;
                b->saved = stk_xrealloc(b->saved, b->saved_size * sizeof(*b->saved));
            }
            group->parts[i].dirty = false;
            b->saved[b->nsaved++] = (saved){group, i, group->parts[i].next};
        }
    file->commits_dirty = file->commits_now = false;
}

/* One step of the first trim job: never past what a group has still to do, and in pieces, so that publishes
 * do not wait long. */
static void take_trim(stk_bus_file *file, batch *b)
{
    stk_bus_trim_job *job = file->trims;
    const stk_bus_part *part = &job->topic->parts[job->partition];
    int64_t to = job->before < part->end ? job->before : part->end;
    for (const stk_bus_group *group = file->groups; group; group = group->next)
        if (group->topic == job->topic && group->parts[job->partition].known &&
            group->parts[job->partition].next < to)
            to = group->parts[job->partition].next;
    b->trim = job;
    b->trim_first = part->first;
    b->trim_last = job->topic->compacted || to <= part->first + TRIM_STEP;
    b->trim_to = b->trim_last ? to : part->first + TRIM_STEP;
}

static batch take(stk_bus_file *file)
{
    batch b = {.probe = file->full && !file->queue.head};
    take_pubs(file, &b);
    if (file->commits_dirty &&
        (file->stop || file->commits_now || file->trims || commits_age_ms(file) >= COMMIT_WITH))
        take_commits(file, &b);
    if (file->trims)
        take_trim(file, &b);
    return b;
}

static int write_pub(stk_bus_writer *w, stk_bus_rec *rec, stk_err *err)
{
    sqlite3_bind_int64(w->insert, 1, rec->topic->id);
    sqlite3_bind_int(w->insert, 2, rec->partition);
    sqlite3_bind_int64(w->insert, 3, rec->offset);
    sqlite3_bind_int64(w->insert, 4, rec->time.ns);
    stk_db_bind_blob(w->insert, 5, stk__bus_rec_key(rec));
    stk_db_bind_blob(w->insert, 6, stk__bus_rec_headers(rec));
    stk_db_bind_blob(w->insert, 7, stk__bus_rec_value(rec));
    return stk_db_run(w->insert, err);
}

static int write_saved(stk_bus_writer *w, const saved *s, stk_err *err)
{
    stk_db_bind_text(w->save, 1, s->group->name);
    sqlite3_bind_int64(w->save, 2, s->group->topic->id);
    sqlite3_bind_int(w->save, 3, s->partition);
    sqlite3_bind_int64(w->save, 4, s->next);
    return stk_db_run(w->save, err);
}

static int write_trim(stk_bus_writer *w, const batch *b, stk_err *err)
{
    const stk_bus_trim_job *job = b->trim;
    sqlite3_stmt *stmt = job->topic->compacted ? w->compact : w->trim;
    if (!job->topic->compacted && b->trim_to <= b->trim_first)
        return 0;
    sqlite3_bind_int64(stmt, 1, job->topic->id);
    sqlite3_bind_int(stmt, 2, job->partition);
    sqlite3_bind_int64(stmt, 3, b->trim_to);
    int rc = stk_db_run(stmt, err);
    if (rc < 0 || job->topic->compacted)
        return rc;
    sqlite3_bind_int64(w->trimmed, 1, job->topic->id);
    sqlite3_bind_int(w->trimmed, 2, job->partition);
    sqlite3_bind_int64(w->trimmed, 3, b->trim_to);
    return stk_db_run(w->trimmed, err);
}

static int write_rows(stk_bus_file *file, batch *b)
{
    stk_bus_writer *w = &file->writer;
    int rc = stk_db_run(w->begin, &b->err);
    for (stk_bus_pub *pub = b->pubs.head; rc == 0 && pub; pub = pub->next)
        rc = write_pub(w, pub->rec, &b->err);
    for (size_t i = 0; rc == 0 && i < b->nsaved; i++)
        rc = write_saved(w, &b->saved[i], &b->err);
    if (rc == 0 && b->trim)
        rc = write_trim(w, b, &b->err);
    if (rc == 0 && b->probe)
        rc = stk_db_run(w->probe, &b->err);
    return rc < 0 ? rc : stk_failpoint("bus.publish.before_commit", &b->err);
}

/* Gives offsets and commits. Anything that fails before the commit frame is whole is surely not persisted:
 * SQLite rolls it back, and a recovery stops at the broken frame. */
static void write_batch(stk_bus_file *file, batch *b)
{
    for (stk_bus_pub *pub = b->pubs.head; pub; pub = pub->next)
        pub->rec->offset = pub->rec->topic->parts[pub->rec->partition].next++;
    int rc = write_rows(file, b);
    if (rc == 0)
        rc = stk_db_run(file->writer.commit, &b->err);
    if (rc == 0) {
        b->outcome =
            stk_failpoint("bus.publish.after_commit", &b->err) < 0 ? STK_PUBLISH_UNKNOWN : STK_PUBLISHED;
        stk_db_checkpointer_assist(file->checkpointer);
        return;
    }
    stk_db_rollback(file->writer.db);
    b->outcome = STK_PUBLISH_REFUSED;
    for (stk_bus_pub *pub = b->pubs.head; pub; pub = pub->next) {
        stk_bus_part *part = &pub->rec->topic->parts[pub->rec->partition];
        if (pub->rec->offset < part->next)
            part->next = pub->rec->offset;
    }
}

static void hand_out(stk_bus_rec *rec)
{
    stk_bus_part *part = &rec->topic->parts[rec->partition];
    part->end = rec->offset + 1;
    for (stk_bus_sub *sub = part->subs; sub; sub = sub->next)
        stk__bus_offer(sub, rec);
}

static void settle_pubs(batch *b)
{
    for (stk_bus_pub *pub; (pub = stk__bus_list_pop(&b->pubs));) {
        if (b->outcome != STK_PUBLISH_REFUSED)
            hand_out(pub->rec);
        pub->outcome = b->outcome;
        if (b->outcome != STK_PUBLISHED) {
            pub->err = stk_xcalloc(1, sizeof(*pub->err));
            *pub->err = b->err;
        }
        stk__bus_settle(pub);
    }
}

static void settle_trim(stk_bus_file *file, batch *b, bool failed)
{
    stk_bus_part *part = &b->trim->topic->parts[b->trim->partition];
    if (!failed && !b->trim->topic->compacted && b->trim_to > part->first)
        part->first = b->trim_to;
    if (failed || b->trim_last) {
        file->trims = b->trim->next;
        free(b->trim);
    }
}

static void settle(stk_bus_file *file, batch *b)
{
    bool failed = b->outcome == STK_PUBLISH_REFUSED;
    settle_pubs(b);
    file->full = failed && b->err.code == STK_E_NO_SPACE;
    for (size_t i = 0; failed && i < b->nsaved; i++)
        b->saved[i].group->parts[b->saved[i].partition].dirty = true;
    if (failed && b->nsaved && !file->stop) {
        file->commits_dirty = true;
        file->commits_since = stk_mono_now();
    }
    if (b->trim)
        settle_trim(file, b, failed);
    free(b->saved);
    stk__bus_wake(file);
    pthread_cond_broadcast(&file->settled);
}

void *stk__bus_writer_main(void *arg)
{
    stk_bus_file *file = arg;
    pthread_mutex_lock(&file->lock);
    while (wait_for_work(file)) {
        batch b = take(file);
        pthread_mutex_unlock(&file->lock);
        write_batch(file, &b);
        pthread_mutex_lock(&file->lock);
        settle(file, &b);
    }
    pthread_mutex_unlock(&file->lock);
    return NULL;
}
