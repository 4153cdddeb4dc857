/* Inside of the embedded bus; included by bus_sqlite*.c only.
 *
 * Threads: each handle lives on its loop's thread; one writer (publishes, commits, trims), one reader
 * (fetches, consumers that are behind), one checkpointer. All of them meet under file->lock. A handle is
 * woken by its eventfd.
 *
 * A partition of a consumer (`sub`) has `want`: the next offset to be put into the consumer's inbox. Whoever
 * brings exactly that offset (the writer from memory, the reader from SQL) appends it and moves `want` on, so
 * order holds and nothing comes twice, and a consumer that has caught up never causes a read. */
#ifndef STK_BUS_SQLITE_IMPL_H
#define STK_BUS_SQLITE_IMPL_H

#include "proto/base/sqlite.h"
#include "proto/bus/ack.h"
#include "proto/bus/bus_sqlite.h"
#include <pthread.h>
#include <stdatomic.h>

typedef struct stk_bus_rec stk_bus_rec;
typedef struct stk_bus_sub stk_bus_sub;
typedef struct stk_bus_pub stk_bus_pub;
typedef struct stk_bus_read stk_bus_read;
typedef struct stk_bus_group stk_bus_group;
typedef struct stk_bus_handle stk_bus_handle;
typedef struct stk_bus_reader stk_bus_reader; /* one consumer */

typedef struct stk_bus_part {
    int64_t first; /* lowest offset that was not trimmed */
    int64_t end;   /* next offset; what readers may rely on */
    int64_t next;  /* the writer's own */
    stk_bus_sub *subs;
} stk_bus_part;

typedef struct stk_bus_topic_state {
    char *name;
    int64_t id;
    int32_t nparts;
    bool compacted;
    stk_bus_part *parts;
} stk_bus_topic_state;

/* One message in memory: key, headers, value follow. Counted: publisher, inboxes. */
struct stk_bus_rec {
    atomic_int refs;
    const stk_bus_topic_state *topic;
    int32_t partition;
    int64_t offset;
    stk_wall time;
    size_t nkey, nheaders, nvalue; /* bytes */
    char data[];
};

struct stk_bus_pub {
    stk_bus_pub *next;          /* queue, batch, done list */
    stk_bus_pub *older, *newer; /* of its handle */
    stk_bus_handle *bus;        /* NULL: nobody waits any more */
    stk_bus_rec *rec;
    stk_publish_done done;
    void *arg;
    stk_publish_outcome outcome;
    stk_err *err;
};

/* A request to the reader: one message for a fetch, or the next ones for a sub. */
struct stk_bus_read {
    stk_bus_read *next;
    const stk_bus_topic_state *topic;
    int32_t partition;
    int64_t from, end;        /* end: the partition's when it was asked */
    stk_bus_reader *consumer; /* NULL: it has gone */
    stk_bus_handle *bus;      /* of a fetch */
    void (*done)(const stk_bus_msg *msg, const stk_err *err, void *arg);
    void *arg;
    stk_bus_rec *rec;
    stk_err err;
};

typedef struct stk_bus_node {
    struct stk_bus_node *next;
    stk_bus_rec *rec;
    stk_bus_sub *sub;
} stk_bus_node;
typedef struct stk_bus_inbox {
    stk_bus_node *head, **tail;
} stk_bus_inbox;

typedef enum stk_sub_state { STK_SUB_NONE, STK_SUB_LIVE, STK_SUB_REVOKING } stk_sub_state;

struct stk_bus_sub {
    stk_bus_reader *consumer;
    stk_bus_part *part;
    stk_bus_sub *next; /* of the part */
    int32_t partition;
    /* under the file's lock */
    stk_sub_state state;
    bool fresh;    /* assigned, its loop has not looked yet */
    bool revoke;   /* to be given back */
    bool broken;   /* on_error was or will be called; no more reads */
    int64_t start; /* where it was assigned */
    int64_t want;
    int64_t mark; /* the end when it was assigned */
    /* on the loop's thread */
    stk_ack ack;
    size_t out; /* delivered, not finished */
};

struct stk_bus_reader {
    stk_consumer base;
    stk_bus_handle *bus;
    stk_bus_reader *next; /* of the handle */
    stk_bus_topic_state *topic;
    stk_bus_group *group;
    stk_bus_reader *next_member;
    const stk_consumer_ops *ops;
    void *arg;
    size_t window;
    stk_bus_sub *subs;
    int32_t nsubs;
    /* under the file's lock */
    stk_bus_inbox inbox;
    size_t held, held_bytes; /* inbox and ready */
    bool flagged;            /* its handle must look at it */
    stk_bus_read *read;      /* in flight */
    int32_t turn;            /* sub that reads next */
    stk_err *failure;
    /* on the loop's thread */
    stk_bus_inbox ready;
    size_t unfinished;
    bool paused, running, dead, caught_up, due;
};

typedef struct stk_bus_group_part {
    int64_t next; /* longest finished prefix */
    bool dirty, known;
    stk_bus_reader *owner, *target;
} stk_bus_group_part;
struct stk_bus_group {
    stk_bus_group *next;
    char *name;
    stk_bus_topic_state *topic;
    stk_bus_group_part *parts;
    stk_bus_reader *members;
};

typedef struct stk_bus_trim_job {
    struct stk_bus_trim_job *next;
    stk_bus_topic_state *topic;
    int32_t partition;
    int64_t before;
} stk_bus_trim_job;

typedef struct stk_bus_list {
    stk_bus_pub *head, **tail;
} stk_bus_list;

struct stk_bus_handle {
    stk_bus base;
    stk_bus_file *file;
    stk_bus_handle *next;
    int wake_fd;
    struct event *wake;
    stk_bus_reader *consumers; /* the loop's thread; dead ones too while `running` */
    bool running, closing, closed;
    stk_bus_list ready; /* taken from `completed`, callbacks due */
    stk_bus_read *answers;
    /* under the file's lock */
    bool signaled, need_wake;
    stk_bus_list completed;
    stk_bus_read *fetched;
    stk_bus_pub *pubs;      /* all in flight */
    size_t npubs, nfetches; /* in flight */
};

typedef struct stk_bus_writer {
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *insert, *save, *trim, *compact, *trimmed, *probe;
    pthread_t thread;
    bool started;
} stk_bus_writer;

struct stk_bus_file {
    char *path, *vfs;
    stk_db_spec db_spec;
    stk_bus_topic_state *topics;
    size_t ntopics, queue_max;
    pthread_mutex_t lock;
    pthread_cond_t write_wake, read_wake, settled;
    stk_bus_writer writer;
    sqlite3 *read_db;
    sqlite3_stmt *read_stmt;
    pthread_t read_thread;
    bool reading;
    stk_db_checkpointer *checkpointer;
    /* under the lock */
    bool stop, refusing, writer_idle;
    bool full; /* no space at the last try */
    stk_bus_list queue;
    size_t queued, queued_bytes;
    stk_bus_trim_job *trims;
    bool commits_dirty, commits_now;
    stk_mono commits_since;
    stk_bus_read *reads, **reads_tail, *serving;
    stk_bus_group *groups;
    stk_bus_handle *handles;
};

/* records */
stk_bus_rec *stk__bus_rec_new(const stk_bus_topic_state *topic, int32_t partition, stk_str key,
                              const stk_bus_header *headers, size_t nheaders, stk_str value);
stk_bus_rec *stk__bus_rec_load(const stk_bus_topic_state *topic, int32_t partition, int64_t offset,
                               stk_wall time, stk_str key, stk_str headers, stk_str value);
size_t stk__bus_headers_size(const stk_bus_header *headers, size_t n);
static inline stk_bus_rec *stk__bus_rec_ref(stk_bus_rec *rec)
{
    atomic_fetch_add_explicit(&rec->refs, 1, memory_order_relaxed);
    return rec;
}
void stk__bus_rec_unref(stk_bus_rec *rec);
static inline size_t stk__bus_rec_size(const stk_bus_rec *rec)
{
    return sizeof(*rec) + rec->nkey + rec->nheaders + rec->nvalue;
}
static inline stk_str stk__bus_rec_key(const stk_bus_rec *rec)
{
    return stk_str_n(rec->data, rec->nkey);
}
static inline stk_str stk__bus_rec_headers(const stk_bus_rec *rec)
{
    return stk_str_n(rec->data + rec->nkey, rec->nheaders);
}
static inline stk_str stk__bus_rec_value(const stk_bus_rec *rec)
{
    return stk_str_n(rec->data + rec->nkey + rec->nheaders, rec->nvalue);
}
/* Fills *msg with views into the record; false when its headers are damaged. */
bool stk__bus_rec_msg(const stk_bus_rec *rec, stk_bus_msg *msg);

/* small things */
void stk__bus_list_add(stk_bus_list *list, stk_bus_pub *pub);
stk_bus_pub *stk__bus_list_pop(stk_bus_list *list);
void stk__bus_list_move(stk_bus_list *from, stk_bus_list *to);
stk_bus_topic_state *stk__bus_topic(stk_bus_file *file, const char *name);
int stk__bus_cond_init(pthread_cond_t *cond);
/* Until signaled or `until`; the lock is held. */
void stk__bus_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, stk_mono until);

/* A fetch is over: to its handle, or away. */
void stk__bus_fetched(stk_bus_read *read);
/* Each needs the lock. wake: writes the eventfd of handles that need it. */
void stk__bus_flag(stk_bus_reader *c);
void stk__bus_wake(stk_bus_file *file);
void stk__bus_settle(stk_bus_pub *pub);
void stk__bus_append(stk_bus_sub *sub, stk_bus_rec *rec); /* rec->offset == sub->want */
void stk__bus_offer(stk_bus_sub *sub,
                    stk_bus_rec *rec); /* appends when it is the next one and there is room */
void stk__bus_read_queue(stk_bus_file *file, stk_bus_read *read);
void stk__bus_write_wake(stk_bus_file *file);
void stk__bus_sub_attach(stk_bus_sub *sub, int64_t start);
void stk__bus_sub_detach(stk_bus_sub *sub);
/* Forgets what is held of it; from its loop's thread. */
void stk__bus_sub_drop(stk_bus_sub *sub);
void stk__bus_inbox_init(stk_bus_inbox *inbox);
void stk__bus_inbox_move(stk_bus_inbox *from, stk_bus_inbox *to);
void stk__bus_node_free(stk_bus_node *node);
#define STK__BUS_HOLD_LOW 128 /* records held below which the reader is asked for more */

/* threads */
void *stk__bus_writer_main(void *file);
int stk__bus_writer_prepare(stk_bus_file *file, stk_err *err);
void *stk__bus_reader_main(void *file);
void stk__bus_fetch(stk_bus *bus, const char *topic, int32_t partition, int64_t offset,
                    void (*done)(const stk_bus_msg *msg, const stk_err *err, void *arg), void *arg);

/* groups; the lock is held */
stk_bus_group *stk__bus_group_get(stk_bus_file *file, stk_bus_topic_state *topic, const char *name);
void stk__bus_group_join(stk_bus_file *file, stk_bus_reader *c);
void stk__bus_group_leave(stk_bus_file *file, stk_bus_reader *c);
/* The partition's owner has let go (its callback has run): to the target, if there is one. */
void stk__bus_group_release(stk_bus_file *file, stk_bus_reader *c, int32_t partition);
void stk__bus_group_finished(stk_bus_file *file, stk_bus_group *group, int32_t partition, int64_t prefix);
void stk__bus_group_free(stk_bus_group *group);

/* consumers (loop's thread) */
int stk__bus_subscribe(stk_bus *bus, const stk_consumer_spec *spec, const stk_consumer_ops *ops, void *arg,
                       stk_consumer **ret, stk_err *err);
void stk__bus_finish(stk_consumer *consumer, int32_t partition, int64_t offset);
void stk__bus_pause(stk_consumer *consumer, bool on);
void stk__bus_unsubscribe(stk_consumer *consumer);
void stk__bus_consumer_run(stk_bus_reader *c);
void stk__bus_consumer_free(stk_bus_reader *c);

#endif
