#include "proto/http/server_impl.h"

#define LINGER_TIME  stk_sec(1)
#define LINGER_BYTES (1u << 20)

static void on_turn(void *arg, unsigned what);

static size_t buffer_most(const stk_http_x *x)
{
    return x->in == STK__IN_BODY ? STK__BODY_BUFFER : x->server->limits.head.bytes;
}

static void set_watched(stk_http_x *x, bool on)
{
    stk_http_server *server = x->server;
    if (x->watched == on)
        return;
    x->watched = on;
    server->watched += on ? 1 : (size_t)-1;
    if (on && !event_pending(&server->watch, EV_TIMEOUT, NULL)) {
        struct timeval tv = stk_span_timeval(stk_ms(100));
        event_add(&server->watch, &tv);
    }
}

static stk_mono deadline_of(const stk_http_x *x)
{
    const stk_http_limits *limits = &x->server->limits;
    if (x->linger)
        return stk_mono_add(x->since, LINGER_TIME);
    if (stk__io_queued(&x->io) > 0)
        return stk_mono_add(x->io.sent_at, limits->stall_time);
    if (x->in == STK__IN_BODY && !x->paused)
        return stk_mono_add(x->io.read_at, limits->stall_time);
    if (x->in != STK__IN_HEAD)
        return (stk_mono){INT64_MAX};
    bool begun = stk__io_in(&x->io).n > 0 || (x->fresh && !x->adopted);
    return stk_mono_add(x->since, begun ? limits->head_time : limits->idle_time);
}

/* What to wait for next. A client that can't be read from now is looked after by the server's watch. */
static void arm(stk_http_x *x)
{
    bool read = !x->io.eof && stk__io_has_room(&x->io, buffer_most(x));
    stk__io_want_read(&x->io, read);
    set_watched(x, x->open && !read);
    stk__io_deadline(&x->io, deadline_of(x));
}

static void forget_exchange(stk_http_x *x)
{
    if (x->head_block)
        stk__io_return(&x->io, STK_TAKE(x->head_block), x->head_size);
    x->open = x->cut = x->close = x->paused = x->want_writable = x->client_closes = false;
    x->is_head = x->drop = false;
    x->in = STK__IN_HEAD;
    x->out = STK__OUT_NONE;
    x->scan = 0;
    x->data = NULL;
    x->body_left = x->body_seen = 0;
}

static void finish_exchange(stk_http_x *x, bool gone)
{
    if (!x->open)
        return;
    x->open = false;
    if (x->server->ops->on_done)
        x->server->ops->on_done(x, gone, x->server->arg);
}

static void conn_free(stk_http_x *x)
{
    stk_http_server *server = x->server;
    void (*on_close)(void *) = x->on_close;
    void *arg = x->close_arg;
    set_watched(x, false);
    if (x->next)
        x->next->prev = x->prev;
    if (x->prev)
        x->prev->next = x->next;
    else
        server->first = x->next;
    server->count--;
    free(x->head_block);
    stk__io_done(&x->io);
    free(x);
    stk__server_room(server);
    if (on_close)
        on_close(arg);
}

/* Closing with unread bytes makes the kernel send a reset, which can overtake the answer: so only the writing
 * side closes now, and for a short while what comes in is read and thrown away. */
static void close_conn(stk_http_x *x)
{
    bool quiet = x->io.eof || (x->client_closes && x->in == STK__IN_DONE && stk__io_in(&x->io).n == 0);
    if (quiet || shutdown(x->io.fd, SHUT_WR) < 0) {
        x->dead = true;
        return;
    }
    x->linger = true;
    x->linger_left = LINGER_BYTES;
    x->since = stk_mono_now();
}

static bool end_exchange(stk_http_x *x)
{
    finish_exchange(x, false);
    if (x->close || x->server->draining) {
        close_conn(x);
        return x->linger;
    }
    forget_exchange(x);
    x->since = stk_mono_now();
    return true;
}

static bool step_linger(stk_http_x *x)
{
    size_t n = stk__io_in(&x->io).n;
    stk__io_use(&x->io, n);
    x->linger_left -= stk_min(n, x->linger_left);
    if (x->io.eof || x->linger_left == 0)
        x->dead = true;
    return false;
}

static void split_target(stk_http_x *x)
{
    stk_str path = x->head.target;
    const char *scheme = path.p[0] != '/' ? memmem(path.p, path.n, "://", 3) : NULL;
    if (scheme) {
        const char *after = scheme + 3, *end = path.p + path.n;
        while (after < end && *after != '/' && *after != '?')
            after++;
        path = stk_str_n(after, (size_t)(end - after));
    }
    const char *mark = memchr(path.p, '?', path.n);
    x->query = mark ? stk_str_n(mark + 1, path.n - (size_t)(mark - path.p) - 1) : (stk_str){"", 0};
    x->path = mark ? stk_str_n(path.p, (size_t)(mark - path.p)) : path;
    if (x->path.n == 0)
        x->path = STK_STR("/");
}

static void end_of_body(stk_http_x *x)
{
    x->in = STK__IN_DONE;
    if (x->out != STK__OUT_ENDED && !x->cut && x->server->ops->on_end)
        x->server->ops->on_end(x, x->server->arg);
}

static void begin_exchange(stk_http_x *x, size_t used)
{
    x->head_block = stk__io_pin(&x->io, used, &x->head_size);
    x->fresh = false;
    x->is_head = stk_str_eq(x->head.method, STK_STR("HEAD"));
    x->close = x->client_closes = !x->head.keep_alive;
    x->in = x->head.framing == STK_FRAMING_NONE ? STK__IN_DONE : STK__IN_HELD;
    x->body_left = x->head.length;
    split_target(x);
    if (x->head.expect_other) {
        stk__conn_refuse(x, 417, "expectation_failed", "the expectation is not known here");
        return;
    }
    x->open = true;
    x->server->ops->on_head(x, x->server->arg);
    if (x->in == STK__IN_DONE)
        end_of_body(x);
}

static bool step_head(stk_http_x *x)
{
    stk_str in = stk__io_in(&x->io);
    if (in.n == 0) {
        x->dead = x->io.eof || x->server->draining;
        return false;
    }
    stk_head_fault fault = STK_HEAD_OK;
    const char *why = "";
    ptrdiff_t used = stk_head_request(in, &x->server->limits.head, &x->scan, &x->head, &fault, &why);
    if (used > 0)
        begin_exchange(x, (size_t)used);
    else if (used < 0)
        stk__conn_refuse(x, stk_head_fault_status(fault), stk_head_fault_text(fault), why);
    else if (x->io.eof)
        stk__conn_refuse(x, 400, "bad_request", "the request ended inside its head");
    return used != 0 || x->io.eof;
}

/* Takes the next run of body bytes. False when there is nothing to go on with; *ret_end at the end of the
 * body. */
static bool next_run(stk_http_x *x, stk_str *ret_data, size_t *ret_used, bool *ret_end)
{
    stk_str in = stk__io_in(&x->io);
    if (x->head.framing == STK_FRAMING_CHUNKED) {
        ptrdiff_t used = stk_chunked_feed(&x->chunked, in, ret_data, ret_end);
        if (used < 0) {
            stk__conn_refuse(x, 400, "bad_framing", "the chunked framing of the body is malformed");
            return false;
        }
        *ret_used = (size_t)used;
    } else {
        size_t n = in.n < x->body_left ? in.n : (size_t)x->body_left;
        *ret_data = stk_str_n(in.p, n);
        *ret_used = n;
        x->body_left -= n;
        *ret_end = x->body_left == 0;
    }
    return *ret_used > 0 || *ret_end;
}

static bool step_body(stk_http_x *x)
{
    stk_str data = {NULL, 0};
    size_t used = 0;
    bool end = false;
    if (!next_run(x, &data, &used, &end)) {
        if (x->in == STK__IN_BODY && x->io.eof)
            stk__conn_refuse(x, 400, "bad_request", "the request ended inside its body");
        return x->in != STK__IN_BODY;
    }
    if (data.n > x->body_most - x->body_seen) {
        stk__conn_refuse(x, 413, "too_large", "the body is larger than the limit");
        return true;
    }
    x->body_seen += data.n;
    if (data.n && x->server->ops->on_body)
        x->server->ops->on_body(x, data, x->server->arg);
    stk__io_use(&x->io, used);
    if (end && x->in == STK__IN_BODY)
        end_of_body(x);
    return true;
}

static bool step_answer(stk_http_x *x)
{
    if (stk__io_queued(&x->io) > 0)
        stk__io_flush(&x->io);
    if (x->io.write_failed)
        return true;
    size_t queued = stk__io_queued(&x->io);
    if (x->out == STK__OUT_ENDED && queued == 0)
        return end_exchange(x);
    if (x->out != STK__OUT_STREAM || !x->want_writable || queued > x->server->limits.write_buffer / 2)
        return false;
    x->want_writable = false;
    if (x->server->ops->on_writable)
        x->server->ops->on_writable(x, x->server->arg);
    return true;
}

static bool broken(const stk_http_x *x)
{
    return x->cut || x->io.read_failed || x->io.write_failed;
}

static bool step(stk_http_x *x)
{
    if (broken(x)) {
        finish_exchange(x, true);
        x->dead = true;
        return false;
    }
    if (x->linger)
        return step_linger(x);
    if (x->in == STK__IN_HEAD)
        return step_head(x);
    if (x->in == STK__IN_BODY && !x->paused && step_body(x))
        return true;
    return step_answer(x);
}

static void run(stk_http_x *x)
{
    x->busy = true;
    while (step(x) || (broken(x) && !x->dead))
        ;
    x->busy = false;
    if (x->dead)
        conn_free(x);
    else
        arm(x);
}

static void on_deadline(stk_http_x *x)
{
    if (x->linger)
        x->dead = true;
    else if (stk__io_queued(&x->io) > 0)
        x->cut = true;
    else if (x->in == STK__IN_BODY)
        stk__conn_refuse(x, 408, "timeout", "the body came too slowly");
    else if (x->in == STK__IN_HEAD && stk__io_in(&x->io).n > 0)
        stk__conn_refuse(x, 408, "head_timeout", "the head came too slowly");
    else
        x->cut = true;
}

static void on_turn(void *arg, unsigned what)
{
    stk_http_x *x = arg;
    if (what & STK__IO_READ) {
        bool idle = x->in == STK__IN_HEAD && stk__io_in(&x->io).n == 0;
        stk__io_fill(&x->io, buffer_most(x));
        if (idle && stk__io_in(&x->io).n > 0 && (x->adopted || !x->fresh))
            x->since = x->io.read_at;
        if (x->io.eof && x->open && stk__io_hung_up(&x->io))
            x->cut = true;
    }
    if (what & STK__IO_TIME)
        on_deadline(x);
    run(x);
}

void stk__conn_check(stk_http_x *x)
{
    if (!stk__io_hung_up(&x->io))
        return;
    x->cut = true;
    stk__conn_kick(x);
}

void stk__conn_kick(stk_http_x *x)
{
    if (!x->busy)
        stk__io_kick(&x->io);
}

void stk__conn_new(stk_http_server *server, int fd, const struct sockaddr *addr, const stk__adopted *adopted)
{
    stk_http_x *x = stk_xcalloc(1, sizeof *x);
    x->server = server;
    if (adopted) {
        x->adopted = true;
        x->on_close = adopted->on_close;
        x->close_arg = adopted->arg;
    }
    x->fresh = true;
    if (addr->sa_family == AF_INET)
        memcpy(&x->addr.v4, addr, sizeof x->addr.v4);
    else if (addr->sa_family == AF_INET6)
        memcpy(&x->addr.v6, addr, sizeof x->addr.v6);
    x->next = server->first;
    if (x->next)
        x->next->prev = x;
    server->first = x;
    server->count++;
    stk__io_init(&x->io, server->base, fd, on_turn, x);
    x->since = x->io.read_at;
    arm(x);
}

void stk__conn_destroy(stk_http_x *x)
{
    x->busy = true;
    finish_exchange(x, true);
    conn_free(x);
}

void stk__conn_drain(stk_http_x *x)
{
    if (x->in == STK__IN_HEAD && !x->busy && stk__io_in(&x->io).n == 0)
        conn_free(x);
}
