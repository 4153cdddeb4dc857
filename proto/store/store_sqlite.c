/* The file and its reader thread. */
#include "proto/store/store_sqlite_impl.h"

#define APPLICATION_ID   0x73746b73 /* "stks" */
#define WRITER_CACHE_KIB "32768"    /* the ends of four indexes, so that an insert does not read the file */

static const char schema[] =
    "CREATE TABLE audit(partition INTEGER NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL UNIQUE, time "
    "INTEGER NOT NULL,"
    " tenant TEXT NOT NULL, agent TEXT NOT NULL, run TEXT NOT NULL, action TEXT NOT NULL, row BLOB NOT NULL, "
    "hash BLOB NOT NULL,"
    " PRIMARY KEY(partition, seq)) WITHOUT ROWID;"
    "CREATE INDEX audit_time ON audit(time, id);"
    "CREATE INDEX audit_tenant ON audit(tenant, time, id);"
    "CREATE INDEX audit_run ON audit(run, time, id) WHERE run <> '';"
    "CREATE TABLE results(run TEXT PRIMARY KEY, tenant TEXT NOT NULL, assignment TEXT NOT NULL, event BLOB "
    "NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE late(run TEXT NOT NULL, assignment TEXT NOT NULL, kind TEXT NOT NULL, pending INTEGER NOT "
    "NULL,"
    " event BLOB NOT NULL, PRIMARY KEY(run, assignment, kind)) WITHOUT ROWID;"
    "CREATE TABLE offsets(topic TEXT NOT NULL, partition INTEGER NOT NULL, next INTEGER NOT NULL,"
    " PRIMARY KEY(topic, partition)) WITHOUT ROWID;"
    "CREATE TABLE probe(n INTEGER NOT NULL); INSERT INTO probe VALUES(0);";

stk_db_spec stk__store_db_spec(const char *path, const char *vfs, bool read_only)
{
    return (stk_db_spec){.path = path,
                         .vfs = vfs,
                         .read_only = read_only,
                         .application_id = APPLICATION_ID,
                         .version = 1,
                         .schema = schema};
}

static void *reader_main(void *arg)
{
    stk_store_file *file = arg;
    pthread_mutex_lock(&file->desk.lock);
    for (;;) {
        while (!file->desk.reads.head && !file->desk.stop)
            pthread_cond_wait(&file->desk.read_wake, &file->desk.lock);
        stk_store_job *job = stk__store_list_pop(&file->desk.reads);
        if (!job)
            break;
        if (job->kind->long_one && (!job->store || job->store->closing))
            stk_err_set(&job->err, STK_E_CANCELLED, "the store was closed");
        pthread_mutex_unlock(&file->desk.lock);
        bool over = job->kind->work(&file->desk, job);
        pthread_mutex_lock(&file->desk.lock);
        if (over)
            stk__store_settle(job);
        else
            stk__store_list_add(&file->desk.reads, job);
    }
    pthread_mutex_unlock(&file->desk.lock);
    return NULL;
}

static int start(stk_store_file *file, stk_err *err)
{
    int rc = stk_db_open(&file->db_spec, &file->writer.db, err);
    if (rc == 0)
        rc = stk_db_exec(file->writer.db, "PRAGMA cache_size = -" WRITER_CACHE_KIB, err);
    if (rc == 0)
        rc = stk_db_open(&file->db_spec, &file->read_db, err);
    if (rc == 0)
        rc = stk__store_writer_prepare(file, err);
    if (rc == 0)
        rc = stk_db_checkpointer_start(&file->db_spec, file->writer.db, &file->checkpointer, err);
    if (rc < 0)
        return rc;
    int sys = pthread_create(&file->writer.thread, NULL, stk__store_writer_main, file);
    file->writer.started = sys == 0;
    if (sys == 0) {
        sys = pthread_create(&file->read_thread, NULL, reader_main, file);
        file->reading = sys == 0;
    }
    return sys ? stk_err_errno(err, sys, "start the store's threads") : 0;
}

static bool ready(const stk_store_desk *desk)
{
    return !STK_CONTAINER(desk, const stk_store_file, desk)->full;
}

static const stk_store_work work = {.query = stk__sqlite_query,
                                    .result = stk__sqlite_result,
                                    .offset = stk__sqlite_offset,
                                    .verify = stk__sqlite_verify,
                                    .ready = ready};

int stk_store_sqlite_new(stk_store_file *file, stk_loop *loop, stk_store **ret, stk_err *err)
{
    return stk__store_handle_new(&file->desk, loop, ret, err);
}

int stk_store_file_open(const char *path, const char *vfs, stk_store_file **ret, stk_err *err)
{
    stk_store_file *file = stk_xcalloc(1, sizeof(*file));
    file->path = stk_xstrdup(path);
    file->vfs = stk_xstrdup(vfs);
    file->db_spec = stk__store_db_spec(file->path, file->vfs, false);
    stk_buf_init(&file->writer.scratch, STK__STORE_ROW_MAX + STK_SHA256);
    stk__store_desk_init(&file->desk, &work);
    int rc = start(file, err);
    if (rc < 0) {
        stk_store_file_close(file);
        return stk_err_wrap(err, "store"), rc;
    }
    *ret = file;
    return 0;
}

void stk_store_file_close(stk_store_file *file)
{
    stk__store_desk_stop(&file->desk);
    if (file->writer.started)
        pthread_join(file->writer.thread, NULL);
    if (file->reading)
        pthread_join(file->read_thread, NULL);
    stk_db_checkpointer_stop(file->checkpointer);
    stk_db_close(file->read_db);
    stk_db_close(file->writer.db);
    stk_buf_done(&file->writer.scratch);
    stk__store_desk_done(&file->desk);
    free(file->path);
    free(file->vfs);
    free(file);
}
