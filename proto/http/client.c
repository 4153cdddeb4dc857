#include "proto/http/client_impl.h"
#include <errno.h>
#include <sys/socket.h>

#define BODY_BUFFER  (64u << 10)
#define MOST_INTERIM 8

static void fail(stk_http_conn *conn, const stk_err *err)
{
    bool sent = conn->state != STK__CONN_IDLE && conn->io.sent > conn->sent_before;
    conn->state = STK__CONN_DEAD;
    stk__io_drop_queue(&conn->io);
    stk__tell_fail(conn, err, sent);
}

static bool fail_with(stk_http_conn *conn, stk_code code, const char *why)
{
    stk_err err;
    stk_err_set(&err, code, "%s", why);
    fail(conn, &err);
    return false;
}

static bool ended(const stk_http_conn *conn)
{
    return conn->io.eof || conn->io.read_failed;
}

static bool fail_closed(stk_http_conn *conn, const char *when)
{
    stk_err err;
    if (conn->io.error)
        stk_err_set(&err, STK_E_CLOSED, "the peer closed the connection %s: %s", when,
                    strerror(conn->io.error));
    else
        stk_err_set(&err, STK_E_CLOSED, "the peer closed the connection %s", when);
    fail(conn, &err);
    return false;
}

/* Whether bytes followed the answer is seen here; what comes later, by step_idle. */
static bool end_answer(stk_http_conn *conn)
{
    bool reusable = conn->head.keep_alive && conn->flushed && !conn->io.write_failed && !ended(conn) &&
                    stk__io_in(&conn->io).n == 0;
    conn->state = reusable ? STK__CONN_IDLE : STK__CONN_DEAD;
    stk__tell_end(conn, reusable);
    return true;
}

static bool step_idle(stk_http_conn *conn)
{
    if (stk__io_in(&conn->io).n > 0)
        return fail_with(conn, STK_E_PROTOCOL, "the peer sent bytes that nobody asked for");
    return ended(conn) ? fail_closed(conn, "while it was idle") : false;
}

static bool take_head(stk_http_conn *conn, size_t used)
{
    stk_head *head = &conn->head;
    if (head->status == 101)
        return fail_with(conn, STK_E_PROTOCOL, "the peer switched protocols unasked");
    if (head->status < 200) {
        stk__io_use(&conn->io, used);
        conn->scan = 0;
        return ++conn->interim <= MOST_INTERIM ||
               fail_with(conn, STK_E_PROTOCOL, "the peer sent too many interim answers");
    }
    if (head->framing == STK_FRAMING_LENGTH && head->length > conn->limits.body)
        return fail_with(conn, STK_E_LIMIT, "the answer is larger than the limit");
    conn->head_block = stk__io_pin(&conn->io, used, &conn->head_size);
    conn->state = STK__CONN_BODY;
    conn->body_left = head->length;
    conn->body_seen = 0;
    stk_chunked_init(&conn->chunked);
    stk__tell_head(conn);
    if (conn->freed || head->framing != STK_FRAMING_NONE)
        return true;
    return end_answer(conn);
}

static bool step_head(stk_http_conn *conn)
{
    stk_head_fault fault = STK_HEAD_OK;
    const char *why = "";
    stk_str in = stk__io_in(&conn->io);
    ptrdiff_t used = 0;
    if (in.n)
        used = stk_head_response(in, &conn->limits.head, &conn->scan, conn->to_head, false, &conn->head,
                                 &fault, &why);
    if (used < 0)
        return fail_with(conn, fault == STK_HEAD_TOO_LARGE ? STK_E_LIMIT : STK_E_PROTOCOL, why);
    if (used > 0)
        return take_head(conn, (size_t)used);
    return ended(conn) ? fail_closed(conn, "before its answer") : false;
}

/* -1: broken framing. */
static ptrdiff_t next_run(stk_http_conn *conn, stk_str in, stk_str *ret_data, bool *ret_end)
{
    if (conn->head.framing == STK_FRAMING_CHUNKED)
        return stk_chunked_feed(&conn->chunked, in, ret_data, ret_end);
    size_t n = in.n;
    if (conn->head.framing == STK_FRAMING_LENGTH) {
        n = n < conn->body_left ? n : (size_t)conn->body_left;
        conn->body_left -= n;
        *ret_end = conn->body_left == 0;
    }
    *ret_data = stk_str_n(in.p, n);
    return (ptrdiff_t)n;
}

static bool step_body(stk_http_conn *conn)
{
    stk_str data = {NULL, 0}, in = stk__io_in(&conn->io);
    bool end = false;
    ptrdiff_t used = next_run(conn, in, &data, &end);
    if (used < 0)
        return fail_with(conn, STK_E_PROTOCOL, "the chunked framing of the answer is malformed");
    if (used == 0 && ended(conn)) {
        bool by_close = conn->head.framing == STK_FRAMING_CLOSE && conn->io.eof;
        return by_close ? end_answer(conn) : fail_closed(conn, "inside its answer");
    }
    if (used == 0)
        return false;
    if (data.n > conn->limits.body - conn->body_seen)
        return fail_with(conn, STK_E_LIMIT, "the answer is larger than the limit");
    conn->body_seen += data.n;
    if (data.n && !stk__tell_body(conn, data))
        return fail_with(conn, STK_E_LIMIT, "the answer is larger than the limit");
    if (conn->freed)
        return false;
    stk__io_use(&conn->io, (size_t)used);
    return end ? end_answer(conn) : true;
}

static void note_flushed(stk_http_conn *conn)
{
    if (!conn->whole || conn->flushed || conn->io.write_failed || stk__io_queued(&conn->io) > 0)
        return;
    conn->flushed = true;
    conn->since = stk_mono_now();
}

/* The peer may have answered before it closed: so a failed write is not the end, what was received is read
 * first. */
static void step_out(stk_http_conn *conn)
{
    if (stk__io_queued(&conn->io) > 0)
        stk__io_flush(&conn->io);
    if (conn->io.write_failed)
        stk__io_drop_queue(&conn->io);
    note_flushed(conn);
    bool room = stk__io_queued(&conn->io) < BODY_BUFFER;
    if (!conn->want_writable || !room || conn->whole || conn->io.write_failed)
        return;
    conn->want_writable = false;
    if (conn->ops && conn->ops->on_writable)
        conn->ops->on_writable(conn, conn->arg);
}

static bool step(stk_http_conn *conn)
{
    if (conn->freed || conn->state == STK__CONN_DEAD)
        return false;
    if (conn->failure.code) {
        stk_err err = conn->failure;
        fail(conn, &err);
        return false;
    }
    step_out(conn);
    if (conn->freed)
        return false;
    if (conn->state == STK__CONN_IDLE)
        return step_idle(conn);
    if (conn->state == STK__CONN_HEAD)
        return step_head(conn);
    return conn->state == STK__CONN_BODY && !conn->paused && step_body(conn);
}

static void really_free(stk_http_conn *conn)
{
    stk__io_done(&conn->io);
    stk_buf_done(&conn->call.body);
    free(conn->head_block);
    free(conn);
}

static void run(stk_http_conn *conn)
{
    conn->busy = true;
    while (step(conn))
        ;
    conn->busy = false;
    if (conn->freed)
        really_free(conn);
    else
        stk__conn_arm(conn);
}

static stk_mono deadline_of(stk_http_conn *conn)
{
    const stk_http_conn_limits *limits = &conn->limits;
    stk_span stall = limits->stall.ns == INT64_MAX ? limits->first : limits->stall;
    if (conn->state == STK__CONN_BODY)
        return conn->paused ? (stk_mono){INT64_MAX} : stk_mono_add(conn->io.read_at, limits->stall);
    if (conn->state != STK__CONN_HEAD)
        return (stk_mono){INT64_MAX};
    if (conn->flushed || conn->io.write_failed)
        return stk_mono_add(conn->since, limits->first);
    if (stk__io_queued(&conn->io) > 0)
        return stk_mono_add(conn->io.sent_at, stall);
    return (stk_mono){INT64_MAX};
}

static stk_mono sooner(stk_mono a, stk_mono b)
{
    return stk_mono_before(a, b) ? a : b;
}

void stk__conn_arm(stk_http_conn *conn)
{
    stk__io *io = &conn->io;
    bool alive = conn->state != STK__CONN_DEAD;
    note_flushed(conn);
    size_t most = conn->state == STK__CONN_BODY ? BODY_BUFFER : conn->limits.head.bytes;
    stk__io_want_read(io, alive && !ended(conn) && stk__io_has_room(io, most));
    stk_mono at = alive ? deadline_of(conn) : (stk_mono){INT64_MAX};
    if (alive && conn->call.done)
        at = sooner(at, conn->call.until);
    stk__io_deadline(io, at);
}

static void on_turn(void *arg, unsigned what)
{
    stk_http_conn *conn = arg;
    if (what & STK__IO_READ)
        stk__io_fill(&conn->io, conn->state == STK__CONN_BODY ? BODY_BUFFER : conn->limits.head.bytes);
    if (what & STK__IO_TIME && conn->state != STK__CONN_DEAD)
        stk_err_set(&conn->failure, STK_E_TIMEOUT,
                    conn->state == STK__CONN_BODY ? "the answer stalled" : "no answer in time");
    run(conn);
}

static void fill_defaults(stk_http_conn_limits *limits)
{
    if (!limits->head.bytes)
        limits->head.bytes = 16384;
    if (!limits->head.fields)
        limits->head.fields = STK_HEAD_MAX_FIELDS;
    if (!limits->body)
        limits->body = 8u << 20;
    if (!limits->first.ns)
        limits->first = stk_sec(30);
    if (!limits->stall.ns)
        limits->stall = stk_sec(30);
}

void stk__conn_limits(stk_http_conn *conn, const stk_http_conn_limits *limits)
{
    conn->limits = limits ? *limits : conn->own;
    fill_defaults(&conn->limits);
}

int stk_http_conn_new(struct event_base *base, int fd, const stk_http_conn_limits *limits,
                      const stk_http_conn_ops *ops, void *arg, stk_http_conn **ret, stk_err *err)
{
    int domain = AF_UNSPEC;
    socklen_t n = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &n) < 0)
        return stk_err_errno(err, errno, "take a connection");
    stk__io_tcp_options(fd, domain);
    stk_http_conn *conn = stk_xcalloc(1, sizeof *conn);
    conn->ops = ops;
    conn->arg = arg;
    if (limits)
        conn->own = *limits;
    stk__conn_limits(conn, NULL);
    stk__io_init(&conn->io, base, fd, on_turn, conn);
    stk__conn_arm(conn);
    *ret = conn;
    return 0;
}

void stk_http_conn_free(stk_http_conn *conn)
{
    if (!conn || conn->freed)
        return;
    conn->freed = true;
    if (!conn->busy)
        really_free(conn);
}

void stk_http_conn_pause(stk_http_conn *conn)
{
    conn->paused = true;
}

void stk_http_conn_resume(stk_http_conn *conn)
{
    if (!conn->paused)
        return;
    conn->paused = false;
    conn->io.read_at = stk_mono_now();
    if (!conn->busy)
        stk__io_kick(&conn->io);
}
