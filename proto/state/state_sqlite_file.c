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
static int run_one(stk_state_file *file, stk_op *op)
{
    stk_sdb *db = &file->sdb;
    sqlite3_int64 before = sqlite3_total_changes64(db->db);
    db->err = &op->err;
    db->now = file->clock(file->clock_arg).ns;
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

/* One transaction for all of them. When it fails, none of them happened. */
static void run_group(stk_state_file *file, stk_op_queue_list *group)
{
    stk_sdb *db = &file->sdb;
    stk_err err = {0};
    db->err = &err;
    db->nnotes = 0;
    int rc = STK_SQL_DO(db, "BEGIN IMMEDIATE");
    for (stk_op *op = group->first; rc == 0 && op; op = op->next)
        if ((rc = run_one(file, op)) < 0)
            err = op->err;
    db->err = &err;
    if (rc == 0)
        rc = STK_SQL_DO(db, "COMMIT");
    if (rc < 0) {
        stk_err ignored = {0};
        stk_db_rollback(db->db);
        fail_all(group, &err);
        db->nnotes = 0;
        db->err = &ignored;
        if (stk__meta_load(db) < 0)
            db->open = false;
    }
    db->err = NULL;
    atomic_store(&file->ready, rc == 0);
}

static bool take_group(stk_state_file *file, stk_op_queue_list *group)
{
    stk__ops_init(group);
    pthread_mutex_lock(&file->lock);
    while (!file->queue.n && !file->stop) {
        file->waiting = true;
        pthread_cond_wait(&file->wake, &file->lock);
    }
    file->waiting = false;
    while (file->queue.n && group->n < STK_STATE_GROUP)
        stk__ops_push(group, stk__ops_pop(&file->queue));
    pthread_mutex_unlock(&file->lock);
    return group->n > 0;
}

void *stk__writer_run(void *arg)
{
    stk_state_file *file = arg;
    stk_op_queue_list group;
    while (take_group(file, &group)) {
        run_group(file, &group);
        stk__deliver(file, &group, (const stk_note_name *)file->sdb.notes, file->sdb.nnotes);
        stk_db_checkpointer_assist(file->checkpointer);
    }
    return NULL;
}

static stk_db_spec spec_of(const char *path)
{
    return (stk_db_spec){.path = path,
                         .fast = true,
                         .page_size = 4096,
                         .application_id = 0x53544b53,
                         .version = 1,
                         .schema = stk__state_schema};
}

static int start(stk_state_file *file, const char *path, const char *boot, stk_err *err)
{
    stk_db_spec spec = spec_of(path);
    stk_sdb *db = &file->sdb;
    int rc = stk_db_open(&spec, &db->db, err);
    if (rc < 0)
        return rc;
    db->err = err;
    db->now = stk_mono_now().ns;
    rc = stk_db_exec(db->db, "BEGIN IMMEDIATE", err);
    if (rc == 0)
        rc = stk__meta_start(db, boot);
    if (rc == 0)
        rc = stk_db_exec(db->db, "COMMIT", err);
    stk_db_rollback(db->db);
    if (rc < 0 || (rc = stk_db_checkpointer_start(&spec, db->db, &file->checkpointer, err)) < 0)
        return rc;
    int sys = pthread_create(&file->thread, NULL, stk__writer_run, file);
    return sys ? stk_err_errno(err, sys, "start the writer of %s", path) : 0;
}

static void free_all(stk_state_file *file)
{
    stk_db_checkpointer_stop(file->checkpointer);
    stk_db_close(file->sdb.db);
    free(file->sdb.notes);
    pthread_cond_destroy(&file->wake);
    pthread_mutex_destroy(&file->lock);
    free(file);
}

int stk_state_file_open_boot(const char *path, const char *boot_id, stk_state_file **ret, stk_err *err)
{
    stk_err own = {0};
    stk_state_file *file = stk_xcalloc(1, sizeof(*file));
    file->clock = real_clock;
    pthread_mutex_init(&file->lock, NULL);
    pthread_cond_init(&file->wake, NULL);
    stk__ops_init(&file->queue);
    atomic_store(&file->ready, true);
    int rc = start(file, path, boot_id, err ? err : &own);
    if (rc < 0) {
        free_all(file);
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
    pthread_mutex_lock(&file->lock);
    file->stop = true;
    pthread_cond_signal(&file->wake);
    pthread_mutex_unlock(&file->lock);
    pthread_join(file->thread, NULL);
    free_all(file);
}
