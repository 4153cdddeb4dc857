/* A handle: publishing, waking its loop, completing what other threads finished, closing. */
#include "proto/bus/bus_sqlite_impl.h"
#include "proto/message/limits.h"
#include <errno.h>
#include <sys/eventfd.h>

#define QUEUE_BYTES  ((size_t)64 << 20)
#define CLOSE_WAIT   5 /* seconds */
#define CLOSE_ROUNDS 100

static stk_bus_handle *handle_of(stk_bus *bus)
{
    return STK_CONTAINER(bus, stk_bus_handle, base);
}

void stk__bus_wake(stk_bus_file *file)
{
    for (stk_bus_handle *h = file->handles; h; h = h->next) {
        if (!h->need_wake)
            continue;
        h->need_wake = false;
        if (h->signaled)
            continue;
        h->signaled = true;
        eventfd_write(h->wake_fd, 1);
    }
}

static void unlink_pub(stk_bus_handle *h, stk_bus_pub *pub)
{
    if (pub->newer)
        pub->newer->older = pub->older;
    else
        h->pubs = pub->older;
    if (pub->older)
        pub->older->newer = pub->newer;
    h->npubs--;
}

static void link_pub(stk_bus_handle *h, stk_bus_pub *pub)
{
    pub->older = h->pubs;
    if (h->pubs)
        h->pubs->newer = pub;
    h->pubs = pub;
    h->npubs++;
}

static void free_pub(stk_bus_pub *pub)
{
    stk__bus_rec_unref(pub->rec);
    free(pub->err);
    free(pub);
}

/* Its outcome is known: to the handle's completed list. */
void stk__bus_settle(stk_bus_pub *pub)
{
    stk_bus_handle *h = pub->bus;
    if (!h) {
        free_pub(pub);
        return;
    }
    unlink_pub(h, pub);
    stk__bus_list_add(&h->completed, pub);
    h->need_wake = true;
}

static int check_out(const stk_bus_out *out, const stk_bus_topic_state *topic, stk_err *err)
{
    if (!topic)
        return stk_err_set(err, STK_E_NOT_FOUND, "no topic %s", out->topic);
    if (out->partition < -1 || out->partition >= topic->nparts)
        return stk_err_set(err, STK_E_NOT_FOUND, "%s has no partition %d", out->topic, out->partition);
    if (out->nheaders > STK_BUS_HEADERS)
        return stk_err_set(err, STK_E_LIMIT, "%zu headers, at most %d", out->nheaders, STK_BUS_HEADERS);
    size_t size = out->key.n + out->value.n;
    for (size_t i = 0; i < out->nheaders; i++) {
        if (strlen(out->headers[i].name) > UINT8_MAX)
            return stk_err_set(err, STK_E_LIMIT, "a header's name is over %d bytes", UINT8_MAX);
        size += out->headers[i].value.n;
    }
    if (size > STK_RECORD_MAX)
        return stk_err_set(err, STK_E_TOO_LARGE, "a record of %zu bytes, at most %d", size, STK_RECORD_MAX);
    return 0;
}

static int check_room(const stk_bus_handle *h, stk_err *err)
{
    const stk_bus_file *file = h->file;
    if (file->refusing || h->closing)
        return stk_err_set(err, STK_E_UNAVAILABLE, "the bus refuses to take messages");
    if (file->queued >= file->queue_max || file->queued_bytes >= QUEUE_BYTES)
        return stk_err_set(err, STK_E_BUSY, "%zu messages wait for the bus", file->queued);
    return 0;
}

static void publish(stk_bus *bus, const stk_bus_out *out, stk_publish_done done, void *arg)
{
    stk_bus_handle *h = handle_of(bus);
    stk_bus_file *file = h->file;
    stk_bus_topic_state *topic = stk__bus_topic(file, out->topic);
    stk_err err;
    int rc = check_out(out, topic, &err);
    stk_bus_pub *pub = stk_xcalloc(1, sizeof(*pub));
    *pub = (stk_bus_pub){.bus = h, .done = done, .arg = arg};
    if (rc == 0) {
        int32_t partition =
            out->partition >= 0 ? out->partition : stk_bus_partition_of(out->key, topic->nparts);
        pub->rec = stk__bus_rec_new(topic, partition, out->key, out->headers, out->nheaders, out->value);
    }
    pthread_mutex_lock(&file->lock);
    link_pub(h, pub);
    if (rc == 0)
        rc = check_room(h, &err);
    if (rc < 0) {
        pub->outcome = STK_PUBLISH_REFUSED;
        pub->err = stk_xcalloc(1, sizeof(*pub->err));
        *pub->err = err;
        stk__bus_settle(pub);
        stk__bus_wake(file);
    } else {
        file->queued++;
        file->queued_bytes += stk__bus_rec_size(pub->rec);
        stk__bus_list_add(&file->queue, pub);
        stk__bus_write_wake(file);
    }
    pthread_mutex_unlock(&file->lock);
}

static void trim(stk_bus *bus, const char *topic, int32_t partition, int64_t before)
{
    stk_bus_file *file = handle_of(bus)->file;
    stk_bus_topic_state *known = stk__bus_topic(file, topic);
    if (!known || partition < 0 || partition >= known->nparts)
        return;
    pthread_mutex_lock(&file->lock);
    stk_bus_trim_job **at = &file->trims;
    while (*at && ((*at)->topic != known || (*at)->partition != partition))
        at = &(*at)->next;
    if (!*at) {
        *at = stk_xcalloc(1, sizeof(**at));
        **at = (stk_bus_trim_job){.topic = known, .partition = partition, .before = before};
    } else if ((*at)->before < before) {
        (*at)->before = before;
    }
    stk__bus_write_wake(file);
    pthread_mutex_unlock(&file->lock);
}

static bool ready(const stk_bus *bus)
{
    stk_bus_file *file = STK_CONTAINER(bus, const stk_bus_handle, base)->file;
    pthread_mutex_lock(&file->lock);
    bool ok = !file->refusing && !file->full && !file->stop;
    pthread_mutex_unlock(&file->lock);
    return ok;
}

static void complete_pubs(stk_bus_handle *h)
{
    for (stk_bus_pub *pub; (pub = stk__bus_list_pop(&h->ready));) {
        bool there = pub->outcome == STK_PUBLISHED;
        if (pub->done)
            pub->done(pub->outcome, pub->rec ? pub->rec->partition : -1, there ? pub->rec->offset : -1,
                      pub->err, pub->arg);
        free_pub(pub);
    }
}

static void complete_fetches(stk_bus_handle *h)
{
    for (stk_bus_read *read; (read = h->answers);) {
        h->answers = read->next;
        stk_bus_msg msg;
        if (read->rec && !stk__bus_rec_msg(read->rec, &msg)) {
            stk_err_set(&read->err, STK_E_CORRUPT, "%s/%d: the headers at offset %lld are damaged",
                        read->topic->name, read->partition, (long long)read->from);
            stk__bus_rec_unref(STK_TAKE(read->rec));
        }
        read->done(read->rec ? &msg : NULL, read->rec ? NULL : &read->err, read->arg);
        stk__bus_rec_unref(read->rec);
        free(read);
    }
}

/* Takes over what other threads completed and calls back. */
static void complete(stk_bus_handle *h)
{
    pthread_mutex_lock(&h->file->lock);
    h->signaled = false;
    stk__bus_list_move(&h->completed, &h->ready);
    stk_bus_read **last = &h->answers;
    while (*last)
        last = &(*last)->next;
    *last = STK_TAKE(h->fetched);
    for (stk_bus_reader *c = h->consumers; c; c = c->next)
        c->due = c->flagged;
    pthread_mutex_unlock(&h->file->lock);
    complete_pubs(h);
    complete_fetches(h);
}

static void sweep_consumers(stk_bus_handle *h)
{
    for (stk_bus_reader **at = &h->consumers; *at;) {
        stk_bus_reader *c = *at;
        if (c->dead) {
            *at = c->next;
            stk__bus_consumer_free(c);
        } else {
            at = &c->next;
        }
    }
}

static void free_handle(stk_bus_handle *h)
{
    sweep_consumers(h);
    event_free(h->wake);
    close(h->wake_fd);
    free(h);
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    stk_bus_handle *h = arg;
    eventfd_t ignored;
    eventfd_read(h->wake_fd, &ignored);
    h->running = true;
    complete(h);
    for (stk_bus_reader *c = h->consumers; c && !h->closed; c = c->next)
        if (c->due && !c->dead)
            stk__bus_consumer_run(c);
    h->running = false;
    if (h->closed)
        free_handle(h);
    else
        sweep_consumers(h);
}

/* What the writer still has after the wait: nobody can know how it ends. */
static void abandon(stk_bus_handle *h)
{
    for (stk_bus_pub *pub = h->pubs; pub; pub = pub->older) {
        pub->bus = NULL;
        stk_bus_pub *copy = stk_xcalloc(1, sizeof(*copy));
        *copy = (stk_bus_pub){.done = pub->done, .arg = pub->arg, .outcome = STK_PUBLISH_UNKNOWN};
        copy->err = stk_xcalloc(1, sizeof(*copy->err));
        stk_err_set(copy->err, STK_E_OUTCOME_UNKNOWN, "the bus was closed before it answered");
        stk__bus_list_add(&h->completed, copy);
    }
    h->pubs = NULL;
}

static void abandon_fetch(stk_bus_handle *h, stk_bus_read *read)
{
    if (!read || read->bus != h)
        return;
    stk_bus_read *copy = stk_xcalloc(1, sizeof(*copy));
    *copy = (stk_bus_read){.bus = h, .done = read->done, .arg = read->arg};
    stk_err_set(&copy->err, STK_E_UNAVAILABLE, "the bus was closed before it answered");
    stk__bus_fetched(copy);
    read->bus = NULL;
}

static void leave_file(stk_bus_handle *h)
{
    stk_bus_file *file = h->file;
    pthread_mutex_lock(&file->lock);
    h->closing = true;
    stk_mono until = stk_mono_add(stk_mono_now(), stk_sec(CLOSE_WAIT));
    while ((h->npubs || h->nfetches) && stk_mono_before(stk_mono_now(), until))
        stk__bus_wait_until(&file->settled, &file->lock, until);
    abandon(h);
    abandon_fetch(h, file->serving);
    for (stk_bus_read *read = file->reads; read; read = read->next)
        abandon_fetch(h, read);
    stk_bus_handle **at = &file->handles;
    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    pthread_mutex_unlock(&file->lock);
}

/* Callbacks may publish again (and are refused): a few rounds, then the rest is dropped. */
static void close_bus(stk_bus *bus)
{
    stk_bus_handle *h = handle_of(bus);
    bool inside = h->running;
    h->running = true; /* keeps the list of consumers as it is */
    for (stk_bus_reader *c = h->consumers; c; c = c->next)
        if (!c->dead)
            stk__bus_unsubscribe(&c->base);
    leave_file(h);
    for (int round = 0; round < CLOSE_ROUNDS && (round == 0 || h->completed.head || h->fetched); round++)
        complete(h);
    for (stk_bus_pub *pub; (pub = stk__bus_list_pop(&h->completed));)
        free_pub(pub);
    h->closed = true;
    if (!inside)
        free_handle(h);
}

static const stk_bus_ops ops = {.publish = publish,
                                .subscribe = stk__bus_subscribe,
                                .finish = stk__bus_finish,
                                .pause = stk__bus_pause,
                                .unsubscribe = stk__bus_unsubscribe,
                                .fetch = stk__bus_fetch,
                                .trim = trim,
                                .ready = ready,
                                .close = close_bus};

int stk_bus_sqlite_new(stk_bus_file *file, stk_loop *loop, stk_bus **ret, stk_err *err)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return stk_err_errno(err, errno, "eventfd");
    stk_bus_handle *h = stk_xcalloc(1, sizeof(*h));
    h->base.ops = &ops;
    h->file = file;
    h->wake_fd = fd;
    h->wake = event_new(stk_loop_base(loop), fd, EV_READ | EV_PERSIST, on_wake, h);
    if (!h->wake || event_add(h->wake, NULL) < 0) {
        if (h->wake)
            event_free(h->wake);
        close(fd);
        free(h);
        return stk_err_set(err, STK_E_INTERNAL, "watch the bus's eventfd");
    }
    pthread_mutex_lock(&file->lock);
    h->next = file->handles;
    file->handles = h;
    pthread_mutex_unlock(&file->lock);
    *ret = &h->base;
    return 0;
}
