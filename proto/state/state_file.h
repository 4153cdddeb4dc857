/* Inside the SQLite adapter: the file with its two threads, and the handles of the loops. Everything runs on
 * the writer, in order of the calls; only RUN_LIST, which may have to walk a million rows, has a thread and a
 * connection of its own. */
#ifndef STK_STATE_STATE_FILE_H
#define STK_STATE_STATE_FILE_H

#include "proto/state/state_sdb.h"
#include "proto/state/state_sqlite.h"
#include <pthread.h>
#include <stdatomic.h>

#define STK_STATE_QUEUE 100000 /* operations waiting for the writer at most; then BUSY */
#define STK_STATE_GROUP 256    /* of one commit */

typedef struct stk_op_queue_list {
    stk_op *first, **last;
    size_t n;
} stk_op_queue_list;
static inline void stk__ops_init(stk_op_queue_list *list)
{
    *list = (stk_op_queue_list){NULL, &list->first, 0};
}
static inline void stk__ops_push(stk_op_queue_list *list, stk_op *op)
{
    op->next = NULL;
    *list->last = op;
    list->last = &op->next;
    list->n++;
}
static inline stk_op *stk__ops_pop(stk_op_queue_list *list)
{
    stk_op *op = list->first;
    if (op && !(list->first = op->next))
        list->last = &list->first;
    list->n -= op != NULL;
    return op;
}

typedef struct stk_handle stk_handle;

/* A thread with its connection and its queue. */
typedef struct stk_state_thread {
    stk_state_file *file;
    stk_sdb sdb; /* the thread's, once it runs */
    bool reader;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    stk_op_queue_list queue; /* op->adapter = its handle */
    bool waiting, stop;
} stk_state_thread;

struct stk_state_file {
    stk_state_thread writer, reader;
    stk_db_checkpointer *checkpointer;
    stk_mono (*clock)(void *arg);
    void *clock_arg;
    pthread_mutex_t lock; /* of the handles; taken before a handle's own */
    stk_handle *handles;
    atomic_bool ready;
};

/* False: too many wait. */
bool stk__thread_push(stk_state_file *file, stk_op *op);

/* From either thread: `done` operations (of any handle) and notes to whoever waits for them. */
void stk__deliver(stk_state_file *file, stk_op_queue_list *done, const stk_note_name *notes, size_t nnotes);

#endif
