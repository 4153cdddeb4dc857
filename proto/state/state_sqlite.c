/* The port over one file: a handle per loop. The writer's thread leaves finished operations and due watches
 * with the handle and posts one task for all of them; the loop runs it. */
#include "proto/state/state_file.h"
#include <stdio.h>

enum { BUCKETS = 1024 };

typedef struct watch watch;
struct watch {
    watch *next;     /* of the bucket */
    watch *next_due; /* of the due list, while `due` */
    int64_t id;      /* low bits = the bucket */
    bool due, dead;
    stk_state_note note;
    void *arg;
    stk_note_name what;
};

struct stk_handle {
    stk_state st;
    stk_state_file *file;
    stk_loop *loop;
    stk_handle *next; /* of the file */
    stk_task task;
    pthread_mutex_t lock;
    stk_op_queue_list done;
    watch *due, **due_last;
    watch *buckets[BUCKETS];
    int64_t watches; /* ids given */
    bool posted, running, closed;
};

static unsigned bucket_of(const char *what)
{
    uint32_t h = 2166136261u;
    for (const char *p = what; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    return (h ^ (h >> 15)) % BUCKETS;
}

static void handle_free(stk_handle *h)
{
    for (watch *w = h->due, *next; w; w = next) {
        next = w->next_due;
        if (w->dead)
            free(w);
    }
    for (size_t i = 0; i < BUCKETS; i++)
        for (watch *w = h->buckets[i], *next; w; w = next) {
            next = w->next;
            free(w);
        }
    pthread_mutex_destroy(&h->lock);
    free(h);
}

/* Called with the lock held. */
static void post(stk_handle *h)
{
    if (h->posted)
        return;
    h->posted = true;
    stk_loop_post_task(h->loop, &h->task);
}

static void run_done(stk_op_queue_list *done)
{
    for (stk_op *op; (op = stk__ops_pop(done));) {
        if (op->done)
            op->done(op, op->arg);
        stk_op_free(op);
    }
}

/* One at a time, because a note may unwatch any other. */
static bool next_note(stk_handle *h, watch *ret)
{
    pthread_mutex_lock(&h->lock);
    watch *w = h->due;
    if (w) {
        if (!(h->due = w->next_due))
            h->due_last = &h->due;
        w->due = false;
        *ret = *w;
        if (w->dead)
            free(w);
    }
    pthread_mutex_unlock(&h->lock);
    return w != NULL;
}

static void on_posted(void *arg)
{
    stk_handle *h = arg;
    stk_op_queue_list done;
    stk__ops_init(&done);
    pthread_mutex_lock(&h->lock);
    h->posted = false;
    h->running = true;
    while (h->done.n)
        stk__ops_push(&done, stk__ops_pop(&h->done));
    pthread_mutex_unlock(&h->lock);
    run_done(&done);
    for (watch w; !h->closed && next_note(h, &w);)
        if (!w.dead)
            w.note(w.what, w.arg);
    pthread_mutex_lock(&h->lock);
    h->running = false;
    bool last = h->closed && !h->posted;
    pthread_mutex_unlock(&h->lock);
    if (last)
        handle_free(h);
}

static void mark_due(stk_handle *h, const char *what)
{
    for (watch *w = h->buckets[bucket_of(what)]; w; w = w->next) {
        if (w->due || strcmp(w->what, what) != 0)
            continue;
        w->due = true;
        w->next_due = NULL;
        *h->due_last = w;
        h->due_last = &w->next_due;
    }
}

void stk__deliver(stk_state_file *file, stk_op_queue_list *done, const stk_note_name *notes, size_t nnotes)
{
    for (stk_op *op; (op = stk__ops_pop(done));) {
        stk_handle *h = op->adapter;
        pthread_mutex_lock(&h->lock);
        stk__ops_push(&h->done, op);
        post(h);
        pthread_mutex_unlock(&h->lock);
    }
    pthread_mutex_lock(&file->lock);
    for (stk_handle *h = nnotes ? file->handles : NULL; h; h = h->next) {
        pthread_mutex_lock(&h->lock);
        for (size_t i = 0; i < nnotes; i++)
            mark_due(h, notes[i]);
        if (h->due)
            post(h);
        pthread_mutex_unlock(&h->lock);
    }
    pthread_mutex_unlock(&file->lock);
}

static stk_handle *handle_of(stk_state *st)
{
    return STK_CONTAINER(st, stk_handle, st);
}

static void handle_call(stk_state *st, stk_op *op)
{
    stk_handle *h = handle_of(st);
    op->adapter = h;
    if (stk__thread_push(h->file, op))
        return;
    op->rc = stk_err_set(&op->err, STK_E_BUSY, "%d operations wait for state", STK_STATE_QUEUE);
    pthread_mutex_lock(&h->lock);
    stk__ops_push(&h->done, op);
    post(h);
    pthread_mutex_unlock(&h->lock);
}

static int64_t handle_watch(stk_state *st, const char *what, stk_state_note note, void *arg)
{
    stk_handle *h = handle_of(st);
    watch *w = stk_xcalloc(1, sizeof(*w));
    snprintf(w->what, sizeof(w->what), "%s", what);
    w->note = note;
    w->arg = arg;
    unsigned bucket = bucket_of(w->what);
    pthread_mutex_lock(&h->lock);
    w->id = ++h->watches * BUCKETS + bucket;
    w->next = h->buckets[bucket];
    h->buckets[bucket] = w;
    pthread_mutex_unlock(&h->lock);
    return w->id;
}

static void handle_unwatch(stk_state *st, int64_t id)
{
    stk_handle *h = handle_of(st);
    watch *gone = NULL;
    pthread_mutex_lock(&h->lock);
    for (watch **at = id > 0 ? &h->buckets[id % BUCKETS] : &gone; *at; at = &(*at)->next)
        if ((*at)->id == id) {
            gone = *at;
            *at = gone->next;
            break;
        }
    if (gone && gone->due) {
        gone->dead = true;
        gone = NULL;
    }
    pthread_mutex_unlock(&h->lock);
    free(gone);
}

static bool handle_ready(const stk_state *st)
{
    const stk_handle *h = (const stk_handle *)(const void *)((const char *)st - offsetof(stk_handle, st));
    return atomic_load(&h->file->ready);
}

static void handle_close(stk_state *st)
{
    stk_handle *h = handle_of(st);
    pthread_mutex_lock(&h->file->lock);
    stk_handle **at = &h->file->handles;
    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    pthread_mutex_unlock(&h->file->lock);
    pthread_mutex_lock(&h->lock);
    h->closed = true;
    bool busy = h->posted || h->running;
    pthread_mutex_unlock(&h->lock);
    if (!busy)
        handle_free(h);
}

static const stk_state_ops handle_ops = {handle_call, handle_watch, handle_unwatch, handle_ready,
                                         handle_close};

int stk_state_sqlite_new(stk_state_file *file, stk_loop *loop, stk_state **ret, stk_err *err)
{
    stk_handle *h = stk_xcalloc(1, sizeof(*h));
    h->st.ops = &handle_ops;
    h->file = file;
    h->loop = loop;
    h->task = (stk_task){.fn = on_posted, .arg = h};
    h->due_last = &h->due;
    stk__ops_init(&h->done);
    pthread_mutex_init(&h->lock, NULL);
    pthread_mutex_lock(&file->lock);
    h->next = file->handles;
    file->handles = h;
    pthread_mutex_unlock(&file->lock);
    *ret = &h->st;
    return 0;
}
