#include "proto/base/fd.h"
#include "proto/base/proc.h"
#include <errno.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>

/* One output of the child: kept up to the cap, read on past it so that the child never blocks. */
typedef struct output {
    struct event event;
    int fd;
    stk_buf buf;
} output;

typedef struct collect {
    stk_proc *proc;
    stk_timer *timer;
    output outs[2];
    bool timed_out;
    stk_run_done done;
    void *arg;
} collect;

static void output_close(output *o)
{
    if (o->fd < 0)
        return;
    event_del(&o->event);
    close(o->fd);
    o->fd = -1;
}

static void collect_free(collect *c)
{
    for (size_t i = 0; i < STK_COUNT(c->outs); i++) {
        output_close(&c->outs[i]);
        stk_buf_done(&c->outs[i].buf);
    }
    stk_timer_free(c->timer);
    stk_proc_free(c->proc);
    free(c);
}
STK_DEFINE_FREEP(collect, collect_freep, collect_free)

/* False at the end of the stream. */
static bool read_once(output *o)
{
    char past[16 * 1024];
    ssize_t n;
    do
        n = read(o->fd, past, sizeof(past));
    while (n < 0 && errno == EINTR);
    if (n <= 0)
        return n < 0 && errno == EAGAIN;
    stk_buf_add(&o->buf, past, stk_min((size_t)n, o->buf.cap - o->buf.n));
    return true;
}

static void on_output(evutil_socket_t fd, short what, void *arg)
{
    output *o = arg;
    if (!read_once(o))
        output_close(o);
}

/* What the child wrote before it ended is in the pipe; who else still holds the pipe is not waited for. */
static void drain(output *o)
{
    for (size_t had = SIZE_MAX; o->fd >= 0 && o->buf.n != had && o->buf.n < o->buf.cap;) {
        had = o->buf.n;
        if (!read_once(o))
            output_close(o);
    }
}

static void on_end(stk_proc *proc, const stk_proc_end *end, void *arg)
{
    collect *c STK_AUTO(collect_freep) = arg;
    drain(&c->outs[0]);
    drain(&c->outs[1]);
    c->done(end, c->timed_out, stk_buf_view(&c->outs[0].buf), stk_buf_view(&c->outs[1].buf), c->arg);
}

/* The child leads a session of its own and is not reaped yet, so its group is certainly this one. */
static void on_deadline(void *arg)
{
    collect *c = arg;
    c->timed_out = true;
    kill(-stk_proc_pid(c->proc), SIGKILL);
    stk_proc_kill(c->proc, SIGKILL);
}

static int output_open(stk_loop *loop, output *o, size_t most, int *ret_write, stk_err *err)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return stk_err_errno(err, errno, "make a pipe");
    o->fd = fds[0];
    *ret_write = fds[1];
    o->buf = STK_BUF(most);
    event_assign(&o->event, stk_loop_base(loop), o->fd, EV_READ | EV_PERSIST, on_output, o);
    if (event_add(&o->event, NULL) < 0)
        return stk_err_set(err, STK_E_SYSTEM, "watch the output of a child");
    return stk_fd_nonblock(o->fd, err);
}

/* A memory file: the child reads it at its own pace and nobody has to feed it. */
static int input_open(stk_str input, int *ret_fd, stk_err *err)
{
    int fd STK_AUTO(stk_closep) = memfd_create("stockade-input", MFD_CLOEXEC);
    if (fd < 0)
        return stk_err_errno(err, errno, "make a memory file");
    int rc = stk_fd_write_all(fd, input.p, input.n, err);
    if (rc < 0)
        return rc;
    if (lseek(fd, 0, SEEK_SET) < 0)
        return stk_err_errno(err, errno, "rewind a memory file");
    *ret_fd = fd;
    fd = -1;
    return 0;
}

static int name_fd(stk_proc_spec *spec, int child, int ours, stk_err *err)
{
    for (size_t i = 0; i < spec->nfds; i++)
        if (spec->fds[i].child == child)
            return stk_err_set(err, STK_E_INTERNAL, "descriptor %d is collected and can't be given", child);
    if (spec->nfds == STK_COUNT(spec->fds))
        return stk_err_set(err, STK_E_LIMIT, "too many descriptors for a child");
    spec->fds[spec->nfds].child = child;
    spec->fds[spec->nfds++].ours = ours;
    return 0;
}

int stk_proc_collect(stk_loop *loop, const stk_proc_spec *given, stk_str input, size_t most, stk_span limit,
                     stk_run_done done, void *arg, stk_err *err)
{
    collect *c STK_AUTO(collect_freep) = stk_xcalloc(1, sizeof(*c));
    c->outs[0].fd = c->outs[1].fd = -1;
    c->done = done;
    c->arg = arg;
    c->timer = stk_timer_new(loop, on_deadline, c);
    stk_proc_spec spec = *given;
    int in STK_AUTO(stk_closep) = -1;
    int out STK_AUTO(stk_closep) = -1;
    int errout STK_AUTO(stk_closep) = -1;
    int rc = output_open(loop, &c->outs[0], most, &out, err);
    if (rc == 0)
        rc = output_open(loop, &c->outs[1], most, &errout, err);
    if (rc == 0 && input.n > 0)
        rc = input_open(input, &in, err);
    if (rc == 0 && in >= 0)
        rc = name_fd(&spec, 0, in, err);
    if (rc == 0)
        rc = name_fd(&spec, 1, out, err);
    if (rc == 0)
        rc = name_fd(&spec, 2, errout, err);
    if (rc == 0)
        rc = stk_proc_start(loop, &spec, on_end, c, &c->proc, err);
    if (rc < 0)
        return rc;
    stk_timer_set(c->timer, limit);
    (void)STK_TAKE(c);
    return 0;
}

typedef struct blocking {
    stk_loop *loop;
    stk_proc_end end;
    bool timed_out;
    stk_buf *out;
    int rc;
} blocking;

static void on_blocking_done(const stk_proc_end *end, bool timed_out, stk_str out, stk_str errout, void *arg)
{
    blocking *b = arg;
    b->end = *end;
    b->timed_out = timed_out;
    if (b->out)
        b->rc = stk_buf_str(b->out, out);
    stk_loop_stop(b->loop);
}

int stk_proc_run(const stk_proc_spec *spec, stk_span limit, stk_proc_end *ret_end, stk_buf *out, stk_err *err)
{
    stk_loop *loop STK_AUTO(stk_loop_freep) = NULL;
    int rc = stk_loop_new(&loop, err);
    if (rc < 0)
        return rc;
    blocking b = {.loop = loop, .out = out};
    size_t most = out ? out->cap - out->n : 0;
    rc = stk_proc_collect(loop, spec, stk_str_n("", 0), out ? most + 1 : 0, limit, on_blocking_done, &b, err);
    if (rc < 0)
        return rc;
    stk_loop_run(loop);
    if (b.timed_out)
        return stk_err_set(err, STK_E_TIMEOUT, "%s was killed after %lld ms", spec->path,
                           (long long)stk_span_ms(limit));
    if (b.rc < 0)
        return stk_err_set(err, STK_E_LIMIT, "%s wrote more than %zu bytes", spec->path, most);
    *ret_end = b.end;
    return 0;
}
