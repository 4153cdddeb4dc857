/* A handle: jobs out to the threads, completed jobs back to the loop, closing. */
#include "proto/store/store_sqlite_impl.h"
#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>

#define WAITING_MAX   10000
#define WAITING_BYTES ((size_t)128 << 20)
#define CLOSE_WAIT    5 /* seconds */
#define CLOSE_ROUNDS  100

static stk_store_handle *handle_of(stk_store *store)
{
    return STK_CONTAINER(store, stk_store_handle, base);
}

void stk__store_list_add(stk_store_list *list, stk_store_job *job)
{
    job->next = NULL;
    if (list->head)
        list->last->next = job;
    else
        list->head = job;
    list->last = job;
}

stk_store_job *stk__store_list_pop(stk_store_list *list)
{
    stk_store_job *job = list->head;
    if (job)
        list->head = job->next;
    return job;
}

void *stk__store_job_new(stk_store *store, const stk_store_kind *kind, void *arg)
{
    stk_store_job *job = stk_xcalloc(1, kind->size);
    job->kind = kind;
    job->store = handle_of(store);
    job->arg = arg;
    return job;
}

void stk__store_job_free(stk_store_job *job)
{
    if (job->kind->done)
        job->kind->done(job);
    free(job);
}

static void link_job(stk_store_job *job)
{
    job->older = job->store->jobs;
    if (job->older)
        job->older->newer = job;
    job->store->jobs = job;
    job->store->file->waiting++;
    job->store->file->waiting_bytes += job->bytes;
}

static void unlink_job(stk_store_job *job)
{
    if (job->newer)
        job->newer->older = job->older;
    else
        job->store->jobs = job->older;
    if (job->older)
        job->older->newer = job->newer;
    job->store->file->waiting--;
    job->store->file->waiting_bytes -= job->bytes;
}

void stk__store_settle(stk_store_job *job)
{
    stk_store_handle *h = job->store;
    if (!h) {
        stk__store_job_free(job);
        return;
    }
    unlink_job(job);
    stk__store_list_add(&h->completed, job);
    if (!h->signaled) {
        h->signaled = true;
        eventfd_write(h->wake_fd, 1);
    }
    pthread_cond_broadcast(&h->file->settled);
}

void stk__store_job_submit(stk_store_job *job)
{
    stk_store_file *file = job->store->file;
    pthread_mutex_lock(&file->lock);
    link_job(job);
    if (!job->err.code && job->store->closing)
        stk_err_set(&job->err, STK_E_UNAVAILABLE, "the store is closing");
    if (!job->err.code && (file->waiting > WAITING_MAX || file->waiting_bytes > WAITING_BYTES))
        stk_err_set(&job->err, STK_E_BUSY, "%zu requests wait for the store", file->waiting);
    if (job->err.code) {
        stk__store_settle(job);
    } else if (job->kind->writes) {
        stk__store_list_add(&file->writes, job);
        pthread_cond_signal(&file->write_wake);
    } else {
        stk__store_list_add(&file->reads, job);
        pthread_cond_signal(&file->read_wake);
    }
    pthread_mutex_unlock(&file->lock);
}

static void complete(stk_store_handle *h)
{
    pthread_mutex_lock(&h->file->lock);
    h->signaled = false;
    for (stk_store_job *job; (job = stk__store_list_pop(&h->completed));)
        stk__store_list_add(&h->ready, job);
    pthread_mutex_unlock(&h->file->lock);
    for (stk_store_job *job; (job = stk__store_list_pop(&h->ready));) {
        job->kind->tell(job);
        stk__store_job_free(job);
    }
}

static void free_handle(stk_store_handle *h)
{
    event_free(h->wake);
    close(h->wake_fd);
    free(h);
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    stk_store_handle *h = arg;
    eventfd_t ignored;
    eventfd_read(h->wake_fd, &ignored);
    h->running = true;
    complete(h);
    h->running = false;
    if (h->closed)
        free_handle(h);
}

/* Jobs that a thread still works on: told as failed now, freed by that thread later. */
static void abandon(stk_store_handle *h)
{
    for (stk_store_job *job = h->jobs; job; job = job->older) {
        stk_store_job *stub = stk_xcalloc(1, job->kind->size);
        stub->kind = job->kind;
        stub->tell = job->tell;
        stub->arg = job->arg;
        stk_err_set(&stub->err, STK_E_UNAVAILABLE, "the store was closed before it answered");
        stk__store_list_add(&h->completed, stub);
        h->file->waiting--;
        h->file->waiting_bytes -= job->bytes;
        job->store = NULL;
    }
    h->jobs = NULL;
}

static void wait_for_jobs(stk_store_handle *h)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += CLOSE_WAIT;
    int rc = 0;
    while (h->jobs && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&h->file->settled, &h->file->lock, &until);
}

static void close_store(stk_store *store)
{
    stk_store_handle *h = handle_of(store);
    stk_store_file *file = h->file;
    bool inside = h->running;
    h->running = true;
    pthread_mutex_lock(&file->lock);
    h->closing = true;
    wait_for_jobs(h);
    abandon(h);
    stk_store_handle **at = &file->handles;
    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    pthread_mutex_unlock(&file->lock);
    for (int round = 0; round < CLOSE_ROUNDS && (round == 0 || h->completed.head); round++)
        complete(h);
    for (stk_store_job *job; (job = stk__store_list_pop(&h->completed));)
        stk__store_job_free(job);
    h->closed = true;
    if (!inside)
        free_handle(h);
}

static bool ready(const stk_store *store)
{
    stk_store_file *file = STK_CONTAINER(store, const stk_store_handle, base)->file;
    pthread_mutex_lock(&file->lock);
    bool ok = !file->full && !file->stop;
    pthread_mutex_unlock(&file->lock);
    return ok;
}

const stk_store_ops stk__store_ops = {.append = stk__store_append,
                                      .offset = stk__store_offset,
                                      .query = stk__store_query,
                                      .result = stk__store_result,
                                      .verify = stk__store_verify,
                                      .ready = ready,
                                      .close = close_store};

int stk_store_sqlite_new(stk_store_file *file, stk_loop *loop, stk_store **ret, stk_err *err)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return stk_err_errno(err, errno, "eventfd");
    stk_store_handle *h = stk_xcalloc(1, sizeof(*h));
    h->base.ops = &stk__store_ops;
    h->file = file;
    h->wake_fd = fd;
    h->wake = event_new(stk_loop_base(loop), fd, EV_READ | EV_PERSIST, on_wake, h);
    if (!h->wake || event_add(h->wake, NULL) < 0) {
        if (h->wake)
            event_free(h->wake);
        close(fd);
        free(h);
        return stk_err_set(err, STK_E_SYSTEM, "watch the store's eventfd");
    }
    pthread_mutex_lock(&file->lock);
    h->next = file->handles;
    file->handles = h;
    pthread_mutex_unlock(&file->lock);
    *ret = &h->base;
    return 0;
}
