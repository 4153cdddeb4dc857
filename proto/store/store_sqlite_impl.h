/* Inside of the embedded store; included by store_sqlite*.c only.
 *
 * Every call is a job: made on the loop's thread, worked on by the writer (appends) or the reader (all else),
 * told on the loop's thread again. Threads meet under file->lock. */
#ifndef STK_STORE_SQLITE_IMPL_H
#define STK_STORE_SQLITE_IMPL_H

#include "proto/base/sqlite.h"
#include "proto/store/chain.h"
#include "proto/store/store_sqlite.h"
#include <pthread.h>

#define STK__STORE_ROW_MAX ((size_t)STK_RECORD_MAX * 2) /* room for a row's canonical bytes */

typedef struct stk_store_job stk_store_job;
typedef struct stk_store_handle stk_store_handle;

typedef struct stk_store_kind {
    size_t size;
    bool writes;
    bool long_one;                                          /* is given up when its handle closes */
    bool (*work)(stk_store_file *file, stk_store_job *job); /* readers: false = again later, others first */
    void (*tell)(stk_store_job *job);
    void (*done)(stk_store_job *job); /* frees what it owns; may be NULL */
} stk_store_kind;

struct stk_store_job {
    const stk_store_kind *kind;
    stk_store_job *next;          /* in a queue or the completed list */
    stk_store_job *older, *newer; /* of its handle */
    stk_store_handle *store;      /* NULL: nobody waits any more */
    union {
        stk_store_done done;
        stk_audit_rows rows;
        stk_result_got got;
        stk_verify_done verified;
    } tell;
    void *arg;
    size_t bytes;
    stk_err err; /* code 0 = none */
};

typedef struct stk_store_list {
    stk_store_job *head, *last;
} stk_store_list;

struct stk_store_handle {
    stk_store base;
    stk_store_file *file;
    stk_store_handle *next;
    int wake_fd;
    struct event *wake;
    bool running, closed;
    stk_store_list ready;
    /* under the file's lock */
    bool signaled, closing;
    stk_store_list completed;
    stk_store_job *jobs;
};

typedef struct stk_store_writer {
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *offset, *advance, *head, *row, *result, *winner, *late, *settle_won,
        *settle_lost, *probe;
    pthread_t thread;
    bool started;
    stk_buf scratch;
} stk_store_writer;

struct stk_store_file {
    char *path, *vfs;
    stk_db_spec db_spec;
    stk_store_writer writer;
    sqlite3 *read_db;
    pthread_t read_thread;
    bool reading;
    stk_db_checkpointer *checkpointer;
    pthread_mutex_t lock;
    pthread_cond_t write_wake, read_wake, settled;
    /* under the lock */
    bool stop, full;
    stk_store_list writes, reads;
    size_t waiting, waiting_bytes;
    stk_store_handle *handles;
};

void stk__store_list_add(stk_store_list *list, stk_store_job *job);
stk_store_job *stk__store_list_pop(stk_store_list *list);
/* Makes a job of a handle; submit gives it to its thread, or fails it (err set, or too much is waiting). */
void *stk__store_job_new(stk_store *store, const stk_store_kind *kind, void *arg);
void stk__store_job_submit(stk_store_job *job);
void stk__store_job_free(stk_store_job *job);
/* Completes it; needs the lock. */
void stk__store_settle(stk_store_job *job);
stk_db_spec stk__store_db_spec(const char *path, const char *vfs, bool read_only);

int stk__store_writer_prepare(stk_store_file *file, stk_err *err);
void *stk__store_writer_main(void *file);

void stk__store_append(stk_store *store, const stk_store_batch *batch, stk_store_done done, void *arg);
void stk__store_offset(stk_store *store, const char *topic, int32_t partition, stk_store_done done,
                       void *arg);
void stk__store_query(stk_store *store, const stk_audit_query *query, stk_audit_rows done, void *arg);
void stk__store_result(stk_store *store, const char *tenant, const char *run, stk_result_got done, void *arg);
void stk__store_verify(stk_store *store, stk_verify_done done, void *arg);

extern const stk_store_ops stk__store_ops;

#endif
