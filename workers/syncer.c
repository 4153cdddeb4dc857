#include "workers/syncer.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

typedef struct request {
    struct request *next;
    int fd;
    int errnum;
    stk_sync_done done;
    void *arg;
} request;

struct stk_syncer {
    stk_loop *loop;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    request *first, **last;
    bool stop;
};

static void deliver(void *arg)
{
    request *req = arg;
    req->done(req->errnum, req->arg);
    free(req);
}

static void *sync_thread(void *arg)
{
    stk_syncer *syncer = arg;
    pthread_mutex_lock(&syncer->mutex);
    for (;;) {
        while (!syncer->first && !syncer->stop)
            pthread_cond_wait(&syncer->wake, &syncer->mutex);
        request *req = syncer->first;
        if (!req)
            break;
        syncer->first = req->next;
        if (!syncer->first)
            syncer->last = &syncer->first;
        pthread_mutex_unlock(&syncer->mutex);
        req->errnum = fdatasync(req->fd) < 0 ? errno : 0;
        close(req->fd);
        stk_loop_post(syncer->loop, deliver, req);
        pthread_mutex_lock(&syncer->mutex);
    }
    pthread_mutex_unlock(&syncer->mutex);
    return NULL;
}

int stk_syncer_new(stk_loop *loop, stk_syncer **ret, stk_err *err)
{
    stk_syncer *syncer = stk_xcalloc(1, sizeof(*syncer));
    syncer->loop = loop;
    syncer->last = &syncer->first;
    pthread_mutex_init(&syncer->mutex, NULL);
    pthread_cond_init(&syncer->wake, NULL);
    int rc = pthread_create(&syncer->thread, NULL, sync_thread, syncer);
    if (rc != 0) {
        free(syncer);
        return stk_err_errno(err, rc, "start the journal thread");
    }
    *ret = syncer;
    return 0;
}

void stk_syncer_sync(stk_syncer *syncer, int fd, stk_sync_done done, void *arg)
{
    request *req = stk_xcalloc(1, sizeof(*req));
    *req = (request){.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3), .done = done, .arg = arg};
    if (req->fd < 0) {
        req->errnum = errno;
        stk_loop_post(syncer->loop, deliver, req);
        return;
    }
    pthread_mutex_lock(&syncer->mutex);
    *syncer->last = req;
    syncer->last = &req->next;
    pthread_cond_signal(&syncer->wake);
    pthread_mutex_unlock(&syncer->mutex);
}

void stk_syncer_free(stk_syncer *syncer)
{
    pthread_mutex_lock(&syncer->mutex);
    syncer->stop = true;
    pthread_cond_signal(&syncer->wake);
    pthread_mutex_unlock(&syncer->mutex);
    pthread_join(syncer->thread, NULL);
    pthread_mutex_destroy(&syncer->mutex);
    pthread_cond_destroy(&syncer->wake);
    free(syncer);
}
