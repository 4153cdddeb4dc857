#include "proto/state/state_file.h"

static int (*const operations[STK_OP_KINDS])(stk_sdb *db, stk_op *op) = {
#define X(sym, name) [STK_OP_##sym] = stk__do_##name,
    STK_STATE_OPS(X)
#undef X
};

static stk_mono real_clock(void *arg)
{
    return stk_mono_now();
}

/* 0, or negative when the whole group must go: it failed after it had written something. */
static int run_one(stk_state_thread *th, stk_op *op)
{
    stk_sdb *db = &th->sdb;
    sqlite3_int64 before = sqlite3_total_changes64(db->db);
    db->err = &op->err;
    db->now = th->file->clock(th->file->clock_arg).ns;
    op->rc = operations[op->kind](db, op);
    bool wrote = sqlite3_total_changes64(db->db) != before;
    return op->rc < 0 && (wrote || sqlite3_get_autocommit(db->db)) ? op->rc : 0;
}

static void fail_all(stk_op_queue_list *group, const stk_err *why)
{
    for (stk_op *op = group->first; op; op = op->next) {
        if (op->rc < 0)
            continue;
        op->err = *why;
        op->rc = -(int)why->code;
    }
}

static void roll_back(stk_state_thread *th, stk_op_queue_list *group, const stk_err *why)
{
    stk_sdb *db = &th->sdb;
    stk_err ignored = {0};
    stk_db_rollback(db->db);
    fail_all(group, why);
    db->nnotes = 0;
    db->err = &ignored;
    if (!th->reader && stk__meta_load(db) < 0)
        db->open = false;
}

/* One transaction for all of them. When it fails, none of them happened. */
static void run_group(stk_state_thread *th, stk_op_queue_list *group)
{
    stk_sdb *db = &th->sdb;
    stk_err err = {0};
    db->err = &err;
    db->nnotes = 0;
    int rc = th->reader ? STK_SQL_DO(db, "BEGIN") : STK_SQL_DO(db, "BEGIN IMMEDIATE");
    for (stk_op *op = group->first; rc == 0 && op; op = op->next)
        if ((rc = run_one(th, op)) < 0)
            err = op->err;
    db->err = &err;
    if (rc == 0)
        rc = STK_SQL_DO(db, "COMMIT");
    if (rc < 0)
        roll_back(th, group, &err);
    db->err = NULL;
    if (!th->reader)
        atomic_store(&th->file->ready, rc == 0);
}

static bool take_group(stk_state_thread *th, stk_op_queue_list *group)
{
    stk__ops_init(group);
    pthread_mutex_lock(&th->lock);
    while (!th->queue.n && !th->stop) {
        th->waiting = true;
        pthread_cond_wait(&th->wake, &th->lock);
    }
    th->waiting = false;
    while (th->queue.n && group->n < STK_STATE_GROUP)
        stk__ops_push(group, stk__ops_pop(&th->queue));
    pthread_mutex_unlock(&th->lock);
    return group->n > 0;
}

static void *thread_run(void *arg)
{
    stk_state_thread *th = arg;
    stk_op_queue_list group;
    while (take_group(th, &group)) {
        run_group(th, &group);
        stk__deliver(th->file, &group, (const stk_note_name *)th->sdb.notes, th->sdb.nnotes);
        if (!th->reader)
            stk_db_checkpointer_assist(th->file->checkpointer);
    }
    return NULL;
}

bool stk__thread_push(stk_state_file *file, stk_op *op)
{
    stk_state_thread *th = op->kind == STK_OP_RUN_LIST ? &file->reader : &file->writer;
    pthread_mutex_lock(&th->lock);
    bool room = th->queue.n < STK_STATE_QUEUE;
    if (room)
        stk__ops_push(&th->queue, op);
    if (th->waiting)
        pthread_cond_signal(&th->wake);
    pthread_mutex_unlock(&th->lock);
    return room;
}

static void thread_init(stk_state_thread *th, stk_state_file *file, bool reader)
{
    th->file = file;
    th->reader = reader;
    pthread_mutex_init(&th->lock, NULL);
    pthread_cond_init(&th->wake, NULL);
    stk__ops_init(&th->queue);
}

static int thread_start(stk_state_thread *th, stk_err *err)
{
    int sys = pthread_create(&th->thread, NULL, thread_run, th);
    th->started = sys == 0;
    return sys ? stk_err_errno(err, sys, "start a thread of state") : 0;
}

static void thread_done(stk_state_thread *th)
{
    pthread_mutex_lock(&th->lock);
    th->stop = true;
    pthread_cond_signal(&th->wake);
    pthread_mutex_unlock(&th->lock);
    if (th->started)
        pthread_join(th->thread, NULL);
    pthread_cond_destroy(&th->wake);
    pthread_mutex_destroy(&th->lock);
}

/* Which boot the file is of is settled before anybody can ask. */
static int begin_boot(stk_sdb *db, const char *boot, stk_err *err)
{
    db->err = err;
    db->now = stk_mono_now().ns;
    int rc = stk_db_exec(db->db, "BEGIN IMMEDIATE", err);
    if (rc == 0)
        rc = stk__meta_start(db, boot);
    if (rc == 0)
        rc = stk_db_exec(db->db, "COMMIT", err);
    stk_db_rollback(db->db);
    return rc;
}

static int start(stk_state_file *file, const char *path, const char *boot, stk_err *err)
{
    stk_db_spec spec = {.path = path,
                        .fast = true,
                        .page_size = 4096,
                        .application_id = 0x53544b53,
                        .version = 1,
                        .schema = stk__state_schema};
    if (stk_db_open(&spec, &file->writer.sdb.db, err) < 0 || begin_boot(&file->writer.sdb, boot, err) < 0 ||
        stk_db_checkpointer_start(&spec, file->writer.sdb.db, &file->checkpointer, err) < 0 ||
        stk_db_open(&spec, &file->reader.sdb.db, err) < 0 || thread_start(&file->writer, err) < 0)
        return -(int)err->code;
    return thread_start(&file->reader, err);
}

int stk_state_file_open_boot(const char *path, const char *boot_id, stk_state_file **ret, stk_err *err)
{
    stk_err own = {0};
    stk_state_file *file = stk_xcalloc(1, sizeof(*file));
    file->clock = real_clock;
    pthread_mutex_init(&file->lock, NULL);
    thread_init(&file->writer, file, false);
    thread_init(&file->reader, file, true);
    atomic_store(&file->ready, true);
    int rc = start(file, path, boot_id, err ? err : &own);
    if (rc < 0) {
        stk_state_file_close(file);
        return rc;
    }
    *ret = file;
    return 0;
}

int stk_state_file_open(const char *path, stk_state_file **ret, stk_err *err)
{
    return stk_state_file_open_boot(path, stk_boot_id(), ret, err);
}

void stk_state_file_set_clock(stk_state_file *file, stk_mono (*clock)(void *arg), void *arg)
{
    file->clock = clock;
    file->clock_arg = arg;
}

void stk_state_file_close(stk_state_file *file)
{
    if (!file)
        return;
    thread_done(&file->reader);
    thread_done(&file->writer);
    stk_db_checkpointer_stop(file->checkpointer);
    stk_db_close(file->reader.sdb.db);
    stk_db_close(file->writer.sdb.db);
    free(file->reader.sdb.notes);
    free(file->writer.sdb.notes);
    pthread_mutex_destroy(&file->lock);
    free(file);
}
