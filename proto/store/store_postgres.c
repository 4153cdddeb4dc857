/* The two threads. */
#include "proto/store/store_postgres_impl.h"
#include <errno.h>
#include <sys/eventfd.h>
#include <time.h>

#define WATCH 1 /* seconds between looks at an idle connection */

/* Waits for work or a moment to look after the connection. */
static void idle(stk_store_desk *desk, pthread_cond_t *wake, const stk_pg_link *link)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + (int64_t)WATCH * 1000000000;
    if (!link->conn) {
        int64_t left = stk_mono_sub(link->retry_at, stk_mono_now()).ns;
        ns = until.tv_nsec + (left > 0 ? left : 0);
    }
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    pthread_cond_timedwait(wake, &desk->lock, &until);
}

static void write_group(stk_store_pg *pg)
{
    stk_store_list group = stk__store_take_group(&pg->desk);
    pthread_mutex_unlock(&pg->desk.lock);
    stk__pg_write(&pg->writer, &group);
    pthread_mutex_lock(&pg->desk.lock);
    for (stk_store_job *job; (job = stk__store_list_pop(&group));)
        stk__store_settle(job);
}

static void *writer_main(void *arg)
{
    stk_store_pg *pg = arg;
    stk_store_desk *desk = &pg->desk;
    stk_err ignored;
    pthread_mutex_lock(&desk->lock);
    while (!desk->stop || desk->writes.head) {
        if (desk->writes.head) {
            write_group(pg);
        } else {
            pthread_mutex_unlock(&desk->lock);
            (void)!stk__pg_link_up(&pg->writer, &ignored);
            pthread_mutex_lock(&desk->lock);
        }
        pg->writer_up = pg->writer.conn != NULL;
        if (!desk->writes.head && !desk->stop)
            idle(desk, &desk->write_wake, &pg->writer);
    }
    pthread_mutex_unlock(&desk->lock);
    return NULL;
}

static void answer(stk_store_pg *pg)
{
    stk_store_desk *desk = &pg->desk;
    stk_store_job *job = stk__store_list_pop(&desk->reads);
    if (job->kind->long_one && (!job->store || job->store->closing))
        stk_err_set(&job->err, STK_E_CANCELLED, "the store was closed");
    pthread_mutex_unlock(&desk->lock);
    bool over = job->err.code || stk__pg_link_up(&pg->reader, &job->err) < 0 || job->kind->work(desk, job);
    pthread_mutex_lock(&desk->lock);
    if (over)
        stk__store_settle(job);
    else
        stk__store_list_add(&desk->reads, job);
}

static void *reader_main(void *arg)
{
    stk_store_pg *pg = arg;
    stk_store_desk *desk = &pg->desk;
    stk_err ignored;
    pthread_mutex_lock(&desk->lock);
    while (!desk->stop || desk->reads.head) {
        if (desk->reads.head) {
            answer(pg);
        } else {
            pthread_mutex_unlock(&desk->lock);
            (void)!stk__pg_link_up(&pg->reader, &ignored);
            pthread_mutex_lock(&desk->lock);
        }
        pg->reader_up = pg->reader.conn != NULL;
        if (!desk->reads.head && !desk->stop)
            idle(desk, &desk->read_wake, &pg->reader);
    }
    pthread_mutex_unlock(&desk->lock);
    return NULL;
}

static bool ready(const stk_store_desk *desk)
{
    const stk_store_pg *pg = STK_CONTAINER(desk, const stk_store_pg, desk);
    return pg->reader_up && (pg->writer_up || pg->read_only);
}

static const stk_store_work work = {.query = stk__pg_query,
                                    .result = stk__pg_result,
                                    .offset = stk__pg_offset,
                                    .verify = stk__pg_verify,
                                    .ready = ready};

int stk_store_postgres_new(stk_store_pg *pg, stk_loop *loop, stk_store **ret, stk_err *err)
{
    return stk__store_handle_new(&pg->desk, loop, ret, err);
}

static int start(stk_store_pg *pg, const stk_store_postgres_spec *spec, stk_err *err)
{
    int rc = stk__pg_link_init(&pg->writer, spec, true, err);
    if (rc == 0)
        rc = stk__pg_link_init(&pg->reader, spec, false, err);
    if (rc < 0)
        return rc;
    pg->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (pg->stop_fd < 0)
        return stk_err_errno(err, errno, "eventfd");
    pg->writer.stop_fd = pg->reader.stop_fd = pg->stop_fd;
    int sys = 0;
    if (!pg->read_only) {
        sys = pthread_create(&pg->write_thread, NULL, writer_main, pg);
        pg->writing = sys == 0;
    }
    if (sys == 0) {
        sys = pthread_create(&pg->read_thread, NULL, reader_main, pg);
        pg->reading = sys == 0;
    }
    return sys ? stk_err_errno(err, sys, "start the store's threads") : 0;
}

int stk_store_postgres_open(const stk_store_postgres_spec *spec, stk_store_pg **ret, stk_err *err)
{
    stk_store_pg *pg = stk_xcalloc(1, sizeof(*pg));
    pg->ring = spec->ring;
    pg->read_only = spec->read_only;
    pg->stop_fd = -1;
    stk__store_desk_init(&pg->desk, &work);
    pg->desk.read_only = spec->read_only;
    int rc = start(pg, spec, err);
    if (rc < 0) {
        stk_store_postgres_close(pg);
        return stk_err_wrap(err, "store"), rc;
    }
    *ret = pg;
    return 0;
}

void stk_store_postgres_close(stk_store_pg *pg)
{
    if (pg->stop_fd >= 0)
        eventfd_write(pg->stop_fd, 1);
    stk__store_desk_stop(&pg->desk);
    if (pg->writing)
        pthread_join(pg->write_thread, NULL);
    if (pg->reading)
        pthread_join(pg->read_thread, NULL);
    stk__pg_link_done(&pg->writer);
    stk__pg_link_done(&pg->reader);
    stk_closep(&pg->stop_fd);
    stk__store_desk_done(&pg->desk);
    free(pg);
}
