/* A handle: jobs out to the threads, completed jobs back to the loop, closing. */
#include "proto/store/ask.h"
#include "proto/store/batch.h"
#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>

#define WAITING_MAX   10000
#define WAITING_BYTES ((size_t)128 << 20)
#define GROUP_BYTES   ((size_t)32 << 20)
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

stk_store_list stk__store_take_group(stk_store_desk *desk)
{
    stk_store_list group = {0};
    size_t bytes = 0;
    while (desk->writes.head && bytes < GROUP_BYTES) {
        stk_store_job *job = stk__store_list_pop(&desk->writes);
        bytes += job->bytes;
        stk__store_list_add(&group, job);
    }
    return group;
}

static void link_job(stk_store_job *job)
{
    job->older = job->store->jobs;
    if (job->older)
        job->older->newer = job;
    job->store->jobs = job;
    job->store->desk->waiting++;
    job->store->desk->waiting_bytes += job->bytes;
}

static void unlink_job(stk_store_job *job)
{
    if (job->newer)
        job->newer->older = job->older;
    else
        job->store->jobs = job->older;
    if (job->older)
        job->older->newer = job->newer;
    job->store->desk->waiting--;
    job->store->desk->waiting_bytes -= job->bytes;
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
    pthread_cond_broadcast(&h->desk->settled);
}

void stk__store_job_submit(stk_store_job *job)
{
    stk_store_desk *desk = job->store->desk;
    pthread_mutex_lock(&desk->lock);
    link_job(job);
    if (!job->err.code && job->store->closing)
        stk_err_set(&job->err, STK_E_UNAVAILABLE, "the store is closing");
    if (!job->err.code && job->kind->writes && desk->read_only)
        stk_err_set(&job->err, STK_E_USAGE, "the store was opened for reading");
    if (!job->err.code && (desk->waiting > WAITING_MAX || desk->waiting_bytes > WAITING_BYTES))
        stk_err_set(&job->err, STK_E_BUSY, "%zu requests wait for the store", desk->waiting);
    if (job->err.code) {
        stk__store_settle(job);
    } else if (job->kind->writes) {
        stk__store_list_add(&desk->writes, job);
        pthread_cond_signal(&desk->write_wake);
    } else {
        stk__store_list_add(&desk->reads, job);
        pthread_cond_signal(&desk->read_wake);
    }
    pthread_mutex_unlock(&desk->lock);
}

static void complete(stk_store_handle *h)
{
    pthread_mutex_lock(&h->desk->lock);
    h->signaled = false;
    for (stk_store_job *job; (job = stk__store_list_pop(&h->completed));)
        stk__store_list_add(&h->ready, job);
    pthread_mutex_unlock(&h->desk->lock);
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
        h->desk->waiting--;
        h->desk->waiting_bytes -= job->bytes;
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
        rc = pthread_cond_timedwait(&h->desk->settled, &h->desk->lock, &until);
}

static void close_store(stk_store *store)
{
    stk_store_handle *h = handle_of(store);
    stk_store_desk *desk = h->desk;
    bool inside = h->running;
    h->running = true;
    pthread_mutex_lock(&desk->lock);
    h->closing = true;
    wait_for_jobs(h);
    abandon(h);
    stk_store_handle **at = &desk->handles;
    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    pthread_mutex_unlock(&desk->lock);
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
    stk_store_desk *desk = STK_CONTAINER(store, const stk_store_handle, base)->desk;
    pthread_mutex_lock(&desk->lock);
    bool ok = !desk->stop && desk->work->ready(desk);
    pthread_mutex_unlock(&desk->lock);
    return ok;
}

static const stk_store_ops ops = {.append = stk__store_append,
                                  .offset = stk__store_offset,
                                  .query = stk__store_query,
                                  .result = stk__store_result,
                                  .verify = stk__store_verify,
                                  .ready = ready,
                                  .close = close_store};

int stk__store_handle_new(stk_store_desk *desk, stk_loop *loop, stk_store **ret, stk_err *err)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0)
        return stk_err_errno(err, errno, "eventfd");
    stk_store_handle *h = stk_xcalloc(1, sizeof(*h));
    h->base.ops = &ops;
    h->desk = desk;
    h->wake_fd = fd;
    h->wake = event_new(stk_loop_base(loop), fd, EV_READ | EV_PERSIST, on_wake, h);
    if (!h->wake || event_add(h->wake, NULL) < 0) {
        if (h->wake)
            event_free(h->wake);
        close(fd);
        free(h);
        return stk_err_set(err, STK_E_SYSTEM, "watch the store's eventfd");
    }
    pthread_mutex_lock(&desk->lock);
    h->next = desk->handles;
    desk->handles = h;
    pthread_mutex_unlock(&desk->lock);
    *ret = &h->base;
    return 0;
}

static void cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

void stk__store_desk_init(stk_store_desk *desk, const stk_store_work *work)
{
    *desk = (stk_store_desk){.work = work};
    pthread_mutex_init(&desk->lock, NULL);
    cond_init(&desk->write_wake);
    cond_init(&desk->read_wake);
    cond_init(&desk->settled);
}

void stk__store_desk_stop(stk_store_desk *desk)
{
    pthread_mutex_lock(&desk->lock);
    desk->stop = true;
    pthread_cond_signal(&desk->write_wake);
    pthread_cond_signal(&desk->read_wake);
    pthread_mutex_unlock(&desk->lock);
}

void stk__store_desk_done(stk_store_desk *desk)
{
    pthread_cond_destroy(&desk->write_wake);
    pthread_cond_destroy(&desk->read_wake);
    pthread_cond_destroy(&desk->settled);
    pthread_mutex_destroy(&desk->lock);
}
