/* The file: opening, topics, what is known of each partition and group, closing. */
#include "proto/bus/bus_sqlite_impl.h"
#include <stdio.h>
#include <time.h>

#define APPLICATION_ID 0x73746b62 /* "stkb" */
#define QUEUE_DEFAULT  20000

static const char schema[] =
    "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, partitions INTEGER NOT NULL, "
    "compacted INTEGER NOT NULL);"
    /* In order of arrival, so that a commit over many partitions writes few pages; found through the small
       index. */
    "CREATE TABLE messages(position INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, partition INTEGER NOT "
    "NULL,"
    " offset INTEGER NOT NULL, time INTEGER NOT NULL, key BLOB NOT NULL, headers BLOB NOT NULL, value BLOB "
    "NOT NULL);"
    "CREATE UNIQUE INDEX messages_offset ON messages(topic_id, partition, offset);"
    "CREATE TABLE commits(grp TEXT NOT NULL, topic_id INTEGER NOT NULL, partition INTEGER NOT NULL, next "
    "INTEGER NOT NULL,"
    " PRIMARY KEY(grp, topic_id, partition)) WITHOUT ROWID;"
    "CREATE TABLE trimmed(topic_id INTEGER NOT NULL, partition INTEGER NOT NULL, first INTEGER NOT NULL,"
    " PRIMARY KEY(topic_id, partition)) WITHOUT ROWID;"
    "CREATE TABLE probe(n INTEGER NOT NULL); INSERT INTO probe VALUES(0);";

stk_bus_topic_state *stk__bus_topic(stk_bus_file *file, const char *name)
{
    for (size_t i = 0; i < file->ntopics; i++)
        if (strcmp(file->topics[i].name, name) == 0)
            return &file->topics[i];
    return NULL;
}

int stk__bus_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    int rc = pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
    return rc;
}

void stk__bus_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, stk_mono until)
{
    int64_t ns = stk_mono_sub(until, stk_mono_now()).ns;
    if (ns <= 0)
        return;
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    ns += ts.tv_nsec;
    ts.tv_sec += (time_t)(ns / 1000000000);
    ts.tv_nsec = (long)(ns % 1000000000);
    pthread_cond_timedwait(cond, lock, &ts);
}

void stk__bus_list_add(stk_bus_list *list, stk_bus_pub *pub)
{
    pub->next = NULL;
    if (!list->head)
        list->tail = &list->head;
    *list->tail = pub;
    list->tail = &pub->next;
}

stk_bus_pub *stk__bus_list_pop(stk_bus_list *list)
{
    stk_bus_pub *pub = list->head;
    if (pub)
        list->head = pub->next;
    return pub;
}

void stk__bus_list_move(stk_bus_list *from, stk_bus_list *to)
{
    if (!from->head)
        return;
    if (!to->head)
        to->tail = &to->head;
    *to->tail = from->head;
    to->tail = from->tail;
    from->head = NULL;
}

static int add_topic(sqlite3 *db, const stk_bus_topic *topic, stk_err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = stk_db_prepare(db,
                            "INSERT INTO topics(name, partitions, compacted) VALUES(?1, ?2, ?3)"
                            " ON CONFLICT(name) DO UPDATE SET compacted = ?3",
                            &stmt, err);
    if (rc < 0)
        return rc;
    stk_db_bind_text(stmt, 1, topic->name);
    sqlite3_bind_int(stmt, 2, topic->partitions);
    sqlite3_bind_int(stmt, 3, topic->compacted);
    rc = stk_db_run(stmt, err);
    sqlite3_finalize(stmt);
    return rc;
}

static int load_topic(sqlite3 *db, const stk_bus_topic *topic, stk_bus_topic_state *state, stk_err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = stk_db_prepare(db, "SELECT id, partitions FROM topics WHERE name = ?1", &stmt, err);
    if (rc == 0) {
        stk_db_bind_text(stmt, 1, topic->name);
        rc = stk_db_step(stmt, err);
    }
    int partitions = 0;
    if (rc == 1) {
        state->id = sqlite3_column_int64(stmt, 0);
        partitions = sqlite3_column_int(stmt, 1);
    }
    sqlite3_finalize(stmt);
    if (rc < 0)
        return rc;
    if (partitions != topic->partitions)
        return stk_err_set(err, STK_E_CONFIG,
                           "topic %s has %d partitions, not %d: the count can't be changed", topic->name,
                           partitions, topic->partitions);
    *state = (stk_bus_topic_state){.id = state->id,
                                   .name = stk_xstrdup(topic->name),
                                   .nparts = partitions,
                                   .compacted = topic->compacted};
    state->parts = stk_xcalloc((size_t)partitions, sizeof(*state->parts));
    return 0;
}

static int load_parts(sqlite3 *db, stk_bus_topic_state *topic, stk_err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = stk_db_prepare(
        db,
        "SELECT coalesce((SELECT first FROM trimmed WHERE topic_id = ?1 AND partition = ?2), 0),"
        " coalesce((SELECT max(offset) + 1 FROM messages WHERE topic_id = ?1 AND partition = ?2), 0)",
        &stmt, err);
    for (int32_t i = 0; rc == 0 && i < topic->nparts; i++) {
        sqlite3_bind_int64(stmt, 1, topic->id);
        sqlite3_bind_int(stmt, 2, i);
        rc = stk_db_step(stmt, err);
        if (rc != 1)
            break;
        stk_bus_part *part = &topic->parts[i];
        part->first = sqlite3_column_int64(stmt, 0);
        part->end = sqlite3_column_int64(stmt, 1);
        if (part->end < part->first)
            part->end = part->first;
        part->next = part->end;
        rc = 0;
        sqlite3_reset(stmt);
    }
    sqlite3_finalize(stmt);
    return rc;
}

static int load_commits(stk_bus_file *file, stk_bus_topic_state *topic, stk_err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = stk_db_prepare(file->writer.db, "SELECT grp, partition, next FROM commits WHERE topic_id = ?1",
                            &stmt, err);
    if (rc < 0)
        return rc;
    sqlite3_bind_int64(stmt, 1, topic->id);
    while ((rc = stk_db_step(stmt, err)) == 1) {
        stk_bus_group *group = stk__bus_group_get(file, topic, (const char *)sqlite3_column_text(stmt, 0));
        int32_t partition = sqlite3_column_int(stmt, 1);
        if (partition >= 0 && partition < topic->nparts) {
            group->parts[partition].next = sqlite3_column_int64(stmt, 2);
            group->parts[partition].known = true;
        }
    }
    sqlite3_finalize(stmt);
    return rc;
}

static int load(stk_bus_file *file, const stk_bus_file_spec *spec, stk_err *err)
{
    sqlite3 *db = file->writer.db;
    int rc = stk_db_exec(db, "BEGIN IMMEDIATE", err);
    for (size_t i = 0; rc == 0 && i < spec->ntopics; i++)
        if (spec->topics[i].partitions < 1 || spec->topics[i].partitions > 65536)
            rc = stk_err_set(err, STK_E_CONFIG, "topic %s: 1 to 65536 partitions, not %d",
                             spec->topics[i].name, spec->topics[i].partitions);
        else
            rc = add_topic(db, &spec->topics[i], err);
    for (size_t i = 0; rc == 0 && i < spec->ntopics; i++) {
        rc = load_topic(db, &spec->topics[i], &file->topics[i], err);
        file->ntopics += rc == 0;
        if (rc == 0)
            rc = load_parts(db, &file->topics[i], err);
        if (rc == 0)
            rc = load_commits(file, &file->topics[i], err);
    }
    if (rc == 0)
        rc = stk_db_exec(db, "COMMIT", err);
    stk_db_rollback(db);
    return rc;
}

static int start_threads(stk_bus_file *file, stk_err *err)
{
    int rc = stk_db_open(&file->db_spec, &file->read_db, err);
    if (rc == 0)
        rc = stk_db_prepare(
            file->read_db,
            "SELECT offset, time, key, headers, value FROM messages"
            " WHERE topic_id = ?1 AND partition = ?2 AND offset >= ?3 ORDER BY offset LIMIT ?4",
            &file->read_stmt, err);
    if (rc == 0)
        rc = stk__bus_writer_prepare(file, err);
    if (rc == 0)
        rc = stk_db_checkpointer_start(&file->db_spec, file->writer.db, &file->checkpointer, err);
    if (rc < 0)
        return rc;
    int sys = pthread_create(&file->writer.thread, NULL, stk__bus_writer_main, file);
    file->writer.started = sys == 0;
    if (sys == 0) {
        sys = pthread_create(&file->read_thread, NULL, stk__bus_reader_main, file);
        file->reading = sys == 0;
    }
    return sys ? stk_err_errno(err, sys, "start the bus's threads") : 0;
}

int stk_bus_file_open(const stk_bus_file_spec *spec, stk_bus_file **ret, stk_err *err)
{
    stk_bus_file *file = stk_xcalloc(1, sizeof(*file));
    file->path = stk_xstrdup(spec->path);
    file->vfs = stk_xstrdup(spec->vfs);
    file->queue_max = spec->queue ? spec->queue : QUEUE_DEFAULT;
    file->topics = stk_xcalloc(spec->ntopics, sizeof(*file->topics));
    file->reads_tail = &file->reads;
    file->db_spec = (stk_db_spec){.path = file->path,
                                  .vfs = file->vfs,
                                  .page_size = 4096,
                                  .application_id = APPLICATION_ID,
                                  .version = 1,
                                  .schema = schema};
    pthread_mutex_init(&file->lock, NULL);
    stk__bus_cond_init(&file->write_wake);
    stk__bus_cond_init(&file->read_wake);
    stk__bus_cond_init(&file->settled);
    int rc = stk_db_open(&file->db_spec, &file->writer.db, err);
    if (rc == 0)
        rc = load(file, spec, err);
    if (rc == 0)
        rc = start_threads(file, err);
    if (rc < 0) {
        stk_bus_file_close(file);
        return stk_err_wrap(err, "bus"), rc;
    }
    *ret = file;
    return 0;
}

static void stop_threads(stk_bus_file *file)
{
    pthread_mutex_lock(&file->lock);
    file->stop = true;
    pthread_cond_signal(&file->write_wake);
    pthread_cond_signal(&file->read_wake);
    pthread_mutex_unlock(&file->lock);
    if (file->writer.started)
        pthread_join(file->writer.thread, NULL);
    if (file->reading)
        pthread_join(file->read_thread, NULL);
}

void stk_bus_file_close(stk_bus_file *file)
{
    stop_threads(file);
    stk_db_checkpointer_stop(file->checkpointer);
    stk_db_close(file->read_db);
    stk_db_close(file->writer.db);
    for (stk_bus_group *group; (group = file->groups);) {
        file->groups = group->next;
        stk__bus_group_free(group);
    }
    for (size_t i = 0; i < file->ntopics; i++) {
        free(file->topics[i].name);
        free(file->topics[i].parts);
    }
    pthread_cond_destroy(&file->write_wake);
    pthread_cond_destroy(&file->read_wake);
    pthread_cond_destroy(&file->settled);
    pthread_mutex_destroy(&file->lock);
    free(file->topics);
    free(file->path);
    free(file->vfs);
    free(file);
}

void stk_bus_file_refuse(stk_bus_file *file, bool on)
{
    pthread_mutex_lock(&file->lock);
    file->refusing = on;
    pthread_mutex_unlock(&file->lock);
}
