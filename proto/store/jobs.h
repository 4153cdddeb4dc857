/* What the adapters have in common; included by their files only.
 *
 * Every call is a job: made on the loop's thread, worked on by the desk's writer (appends) or reader (all
 * else), told on the loop's thread again. Threads meet under desk->lock. */
#ifndef STK_STORE_JOBS_H
#define STK_STORE_JOBS_H

#include "proto/store/store.h"
#include <pthread.h>

#define STK__STORE_ROW_MAX ((size_t)STK_RECORD_MAX * 2) /* room for a row's canonical bytes */

typedef struct stk_store_job stk_store_job;
typedef struct stk_store_desk stk_store_desk;
typedef struct stk_store_handle stk_store_handle;

typedef struct stk_store_kind {
    size_t size;
    bool writes;
    bool long_one;                                          /* is given up when its handle closes */
    bool (*work)(stk_store_desk *desk, stk_store_job *job); /* readers: false = again later, others first */
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
    stk_store_desk *desk;
    stk_store_handle *next;
    int wake_fd;
    struct event *wake;
    bool running, closed;
    stk_store_list ready;
    /* under the desk's lock */
    bool signaled, closing;
    stk_store_list completed;
    stk_store_job *jobs;
};

/* What an adapter's reader does for each question; the writer is its own thread. */
typedef struct stk_store_work {
    bool (*query)(stk_store_desk *desk, stk_store_job *job);
    bool (*result)(stk_store_desk *desk, stk_store_job *job);
    bool (*offset)(stk_store_desk *desk, stk_store_job *job);
    bool (*verify)(stk_store_desk *desk, stk_store_job *job);
    bool (*ready)(const stk_store_desk *desk); /* under the lock */
} stk_store_work;

struct stk_store_desk {
    const stk_store_work *work;
    bool read_only; /* appends are refused */
    pthread_mutex_t lock;
    pthread_cond_t write_wake, read_wake, settled; /* monotonic */
    /* under the lock */
    bool stop;
    stk_store_list writes, reads;
    size_t waiting, waiting_bytes;
    stk_store_handle *handles;
};

void stk__store_desk_init(stk_store_desk *desk, const stk_store_work *work);
void stk__store_desk_stop(stk_store_desk *desk);
void stk__store_desk_done(stk_store_desk *desk);
int stk__store_handle_new(stk_store_desk *desk, stk_loop *loop, stk_store **ret, stk_err *err) STK_MUST_USE;

void stk__store_list_add(stk_store_list *list, stk_store_job *job);
stk_store_job *stk__store_list_pop(stk_store_list *list);
/* Takes waiting appends, up to what one transaction should hold. Needs the lock. */
stk_store_list stk__store_take_group(stk_store_desk *desk);
/* Makes a job of a handle; submit gives it to its thread, or fails it (err set, or too much is waiting). */
void *stk__store_job_new(stk_store *store, const stk_store_kind *kind, void *arg);
void stk__store_job_submit(stk_store_job *job);
void stk__store_job_free(stk_store_job *job);
/* Completes it; needs the lock. */
void stk__store_settle(stk_store_job *job);

#endif
