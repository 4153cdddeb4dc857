#include "proto/base/sqlite.h"
#include <pthread.h>
#include <time.h>

#define CHECKPOINT_BYTES (4 << 20)
#define ASSIST_BYTES     (16 << 20)
#define IDLE_MS          1000

struct stk_db_checkpointer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    sqlite3 *db;     /* of the thread */
    sqlite3 *writer; /* of the writer's thread */
    int page_size;
    int frames;    /* in the WAL now */
    int copied;    /* of those, covered by the last pass */
    int assist_at; /* frames at which the writer helps */
    bool busy, stop;
};

static int frames_in(const stk_db_checkpointer *ck, int bytes)
{
    return bytes / ck->page_size;
}

static int on_commit(void *arg, sqlite3 *db, const char *name, int frames)
{
    stk_db_checkpointer *ck = arg;
    pthread_mutex_lock(&ck->lock);
    bool idle = ck->frames == 0;
    if (frames < ck->frames) {
        ck->copied = 0;
        ck->assist_at = frames_in(ck, ASSIST_BYTES);
    }
    ck->frames = frames;
    if (idle || (!ck->busy && frames - ck->copied >= frames_in(ck, CHECKPOINT_BYTES)))
        pthread_cond_signal(&ck->wake);
    pthread_mutex_unlock(&ck->lock);
    return SQLITE_OK;
}

/* Anything but a failed fsync (which ends the process) is tried again at the next occasion. */
static bool checkpoint(sqlite3 *db)
{
    int in_wal = 0, done = 0;
    int rc = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, &in_wal, &done);
    if (rc != SQLITE_OK)
        stk_db_fail(db, rc, NULL, "checkpoint");
    return rc == SQLITE_OK && in_wal == done;
}

/* True when much was added since the last pass, or something, and nobody wrote for a while. */
static bool due(stk_db_checkpointer *ck)
{
    while (!ck->stop) {
        int seen = ck->frames;
        if (seen - ck->copied >= frames_in(ck, CHECKPOINT_BYTES))
            return true;
        if (seen == ck->copied) {
            pthread_cond_wait(&ck->wake, &ck->lock);
            continue;
        }
        struct timespec until;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += IDLE_MS / 1000;
        if (pthread_cond_timedwait(&ck->wake, &ck->lock, &until) != 0 && ck->frames == seen)
            return true;
    }
    return false;
}

/* All of it is in the database: the next commit starts the WAL over. */
static void all_copied(stk_db_checkpointer *ck)
{
    ck->frames = ck->copied = 0;
    ck->assist_at = frames_in(ck, ASSIST_BYTES);
}

static void *run(void *arg)
{
    stk_db_checkpointer *ck = arg;
    pthread_mutex_lock(&ck->lock);
    while (due(ck)) {
        int before = ck->frames;
        ck->busy = true;
        pthread_mutex_unlock(&ck->lock);
        bool done = checkpoint(ck->db);
        pthread_mutex_lock(&ck->lock);
        ck->busy = false;
        if (ck->frames == before && done)
            all_copied(ck);
        else
            ck->copied = before < ck->frames ? before : ck->frames;
    }
    pthread_mutex_unlock(&ck->lock);
    return NULL;
}

void stk_db_checkpointer_assist(stk_db_checkpointer *ck)
{
    pthread_mutex_lock(&ck->lock);
    bool now = !ck->busy && ck->frames >= ck->assist_at;
    if (now)
        ck->assist_at = ck->frames + frames_in(ck, CHECKPOINT_BYTES);
    pthread_mutex_unlock(&ck->lock);
    if (now && checkpoint(ck->writer)) {
        pthread_mutex_lock(&ck->lock);
        all_copied(ck);
        pthread_mutex_unlock(&ck->lock);
    }
}

static void free_all(stk_db_checkpointer *ck)
{
    stk_db_close(ck->db);
    pthread_cond_destroy(&ck->wake);
    pthread_mutex_destroy(&ck->lock);
    free(ck);
}

int stk_db_checkpointer_start(const stk_db_spec *spec, sqlite3 *writer, stk_db_checkpointer **ret,
                              stk_err *err)
{
    stk_db_checkpointer *ck = stk_xcalloc(1, sizeof(*ck));
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&ck->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&ck->lock, NULL);
    ck->writer = writer;
    ck->page_size = spec->page_size ? spec->page_size : 8192;
    ck->assist_at = frames_in(ck, ASSIST_BYTES);
    int rc = stk_db_open(spec, &ck->db, err);
    int sys = rc == 0 ? pthread_create(&ck->thread, NULL, run, ck) : 0;
    if (sys)
        rc = stk_err_errno(err, sys, "start the checkpointer");
    if (rc < 0) {
        free_all(ck);
        return rc;
    }
    sqlite3_wal_hook(writer, on_commit, ck);
    *ret = ck;
    return 0;
}

void stk_db_checkpointer_stop(stk_db_checkpointer *ck)
{
    if (!ck)
        return;
    sqlite3_wal_hook(ck->writer, NULL, NULL);
    pthread_mutex_lock(&ck->lock);
    ck->stop = true;
    pthread_cond_signal(&ck->wake);
    pthread_mutex_unlock(&ck->lock);
    pthread_join(ck->thread, NULL);
    free_all(ck);
}
