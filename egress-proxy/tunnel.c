#include "egress-proxy/tunnel.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#define TURN      ((size_t)1 << 20) /* bytes a direction may move before others get their turn */
#define BULK_FROM 32768             /* a read of this size says: splice */

/* One direction. */
typedef struct half {
    stk_tunnel *tunnel;
    int from, to;
    struct event readable, writable;
    stk_flow_wait tokens;
    char *held; /* read, not yet written */
    size_t held_n, held_at;
    stk_pipe pipe; /* read < 0: none lent */
    size_t piped;
    size_t turn; /* bytes of the present turn */
    bool bulk, eof, done;
    int64_t bytes;
} half;

typedef struct guard {
    stk_buf seen;
    struct event timer;
    bool ticking;
} guard;

struct stk_tunnel {
    stk_flow *flow;
    stk_tunnel_spec spec;
    half out, in; /* client -> origin, origin -> client */
    guard *guard; /* until the TLS check is through */
    struct event idle, begin;
    stk_mono last;
};

static void finish(stk_tunnel *tunnel, stk_reason reason)
{
    tunnel->spec.on_end(reason, tunnel->spec.arg);
}

static void want_read(half *h)
{
    event_del(&h->writable);
    event_add(&h->readable, NULL);
}

static void want_write(half *h)
{
    event_del(&h->readable);
    event_add(&h->writable, NULL);
}

static void hold(half *h, const char *p, size_t n)
{
    h->held = stk_xmemdup(p, n);
    h->held_n = n;
    h->held_at = 0;
}

static void moved(half *h, size_t n)
{
    h->bytes += (int64_t)n;
    h->tunnel->last = stk_mono_now();
}

static void return_pipe(half *h)
{
    if (h->pipe.read >= 0)
        stk_pipes_return(&h->tunnel->flow->pipes, &h->pipe, h->piped == 0);
}

/* 1: all is out; 0: the other side takes no more now; -1: it is gone. */
static int flush_held(half *h)
{
    while (h->held_at < h->held_n) {
        ssize_t n = send(h->to, h->held + h->held_at, h->held_n - h->held_at, MSG_NOSIGNAL);
        if (n < 0)
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        h->held_at += (size_t)n;
        moved(h, (size_t)n);
    }
    free(h->held);
    h->held = NULL;
    return 1;
}

static int flush_pipe(half *h)
{
    while (h->piped > 0) {
        ssize_t n = splice(h->pipe.read, NULL, h->to, NULL, h->piped, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
        if (n <= 0)
            return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
        h->piped -= (size_t)n;
        moved(h, (size_t)n);
    }
    return 1;
}

static int flush(half *h)
{
    if (h->held)
        return flush_held(h);
    return h->piped ? flush_pipe(h) : 1;
}

static ssize_t read_spliced(half *h, size_t most)
{
    ssize_t n = splice(h->from, NULL, h->pipe.write, NULL, stk_min(most, h->pipe.size),
                       SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
    if (n > 0)
        h->piped += (size_t)n;
    return n;
}

static ssize_t read_copied(half *h, size_t most)
{
    char *scratch = h->tunnel->flow->scratch;
    ssize_t n = recv(h->from, scratch, stk_min(most, STK_SCRATCH), 0);
    if (n <= 0)
        return n;
    h->bulk = n >= BULK_FROM;
    ssize_t out = send(h->to, scratch, (size_t)n, MSG_NOSIGNAL);
    if (out < 0 && errno != EAGAIN && errno != EINTR)
        return -1;
    size_t gone = out < 0 ? 0 : (size_t)out;
    if (gone)
        moved(h, gone);
    if (gone < (size_t)n)
        hold(h, scratch + gone, (size_t)n - gone);
    return n;
}

/* What was read of the client's first bytes; false when the tunnel ended. */
static bool guard_check(stk_tunnel *tunnel, bool over)
{
    guard *g = tunnel->guard;
    stk_hello hello;
    stk_hello_state state = stk_hello_read((const uint8_t *)g->seen.p, g->seen.n, &hello);
    if (state == STK_HELLO_MORE && !over) {
        if (g->seen.n && !g->ticking) {
            struct timeval tv = stk_span_timeval(tunnel->spec.hello);
            evtimer_add(&g->timer, &tv);
            g->ticking = true;
        }
        return true;
    }
    stk_reason reason = STK_R_ALLOWED;
    if (g->seen.n)
        reason = stk_sni_judge(tunnel->spec.tls, state, &hello, tunnel->spec.host);
    if (reason != STK_R_ALLOWED) {
        finish(tunnel, reason);
        return false;
    }
    if (g->seen.n)
        hold(&tunnel->out, g->seen.p, g->seen.n);
    evtimer_del(&g->timer);
    stk_buf_done(&g->seen);
    free(STK_TAKE(tunnel->guard));
    return true;
}

static void on_hello_timeout(evutil_socket_t fd, short what, void *arg)
{
    guard_check(arg, true);
}

static ssize_t read_guarded(half *h, size_t most)
{
    stk_buf *seen = &h->tunnel->guard->seen;
    char *to = stk_buf_room(seen, STK_HELLO_MAX);
    ssize_t n = recv(h->from, to, stk_min(most, STK_HELLO_MAX), 0);
    if (n > 0)
        seen->n += (size_t)n;
    return n;
}

static void end_half(half *h)
{
    stk_tunnel *tunnel = h->tunnel;
    event_del(&h->readable);
    event_del(&h->writable);
    stk_flow_forget(tunnel->flow, &h->tokens);
    return_pipe(h);
    h->done = true;
    if (tunnel->out.done && tunnel->in.done)
        finish(tunnel, STK_R_CLOSED);
    else
        shutdown(
            h->to,
            SHUT_WR); /* a receiver that is gone shows in the other direction, which may still hold bytes */
}

static bool is_guarded(const half *h)
{
    return h->tunnel->guard && h == &h->tunnel->out;
}

/* Reads once. True: go on; false: wait, or the tunnel ended. */
static bool read_some(half *h, size_t *ret_n)
{
    stk_tunnel *tunnel = h->tunnel;
    bool guarded = is_guarded(h);
    if (h->bulk && h->pipe.read < 0 && !stk_pipes_lend(&tunnel->flow->pipes, &h->pipe))
        h->bulk = false;
    bool spliced = h->bulk && !guarded;
    size_t most = guarded ? STK_HELLO_MAX : spliced ? h->pipe.size : STK_SCRATCH;
    int64_t took = stk_flow_take(tunnel->flow, (int64_t)most, &h->tokens);
    if (took < 0) {
        finish(tunnel, STK_R_BYTES_EXCEEDED);
        return false;
    }
    if (took == 0) {
        return_pipe(h);
        event_del(&h->readable);
        return false;
    }
    ssize_t n = guarded   ? read_guarded(h, (size_t)took)
                : spliced ? read_spliced(h, (size_t)took)
                          : read_copied(h, (size_t)took);
    int why = errno;
    stk_flow_moved(tunnel->flow, took, n > 0 ? n : 0);
    *ret_n = n > 0 ? (size_t)n : 0;
    if (n > 0)
        return guarded ? guard_check(tunnel, false) : true;
    if (n == 0) {
        h->eof = true;
        return guarded ? guard_check(tunnel, true) : true;
    }
    if (spliced && why == EINVAL) {
        h->bulk = false;
        return_pipe(h);
        return true;
    }
    if (why != EAGAIN && why != EINTR) {
        finish(tunnel, STK_R_RESET);
        return false;
    }
    h->bulk = h->bulk && h->turn >= BULK_FROM;
    return_pipe(h);
    want_read(h);
    return false;
}

static void pump(half *h)
{
    for (h->turn = 0; h->turn < TURN;) {
        size_t n = 0;
        int flushed = flush(h);
        if (flushed < 0) {
            finish(h->tunnel, STK_R_RESET);
            return;
        }
        if (flushed == 0) {
            want_write(h);
            return;
        }
        if (h->eof) {
            end_half(h);
            return;
        }
        bool small = !h->bulk;
        if (!read_some(h, &n))
            return;
        h->turn += n;
        /* A short read has emptied the socket: one call saved for each small message. */
        if (small && n && n < BULK_FROM && !h->held && !h->eof)
            break;
    }
    want_read(h);
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
    pump(arg);
}

static void on_tokens(void *arg)
{
    pump(arg);
}

static void on_begin(evutil_socket_t fd, short what, void *arg)
{
    stk_tunnel *tunnel = arg;
    if (tunnel->guard && tunnel->guard->seen.n && !guard_check(tunnel, false))
        return;
    pump(&tunnel->out);
}

static void arm_idle(stk_tunnel *tunnel, stk_span left)
{
    struct timeval tv = stk_span_timeval(left);
    evtimer_add(&tunnel->idle, &tv);
}

static void on_idle(evutil_socket_t fd, short what, void *arg)
{
    stk_tunnel *tunnel = arg;
    stk_span quiet = stk_mono_sub(stk_mono_now(), tunnel->last);
    if (quiet.ns >= tunnel->spec.idle.ns)
        finish(tunnel, STK_R_IDLE_TIMEOUT);
    else
        arm_idle(tunnel, stk_ns(tunnel->spec.idle.ns - quiet.ns));
}

static void half_init(stk_tunnel *tunnel, half *h, int from, int to)
{
    h->tunnel = tunnel;
    h->from = from;
    h->to = to;
    h->pipe.read = -1;
    h->tokens.on_tokens = on_tokens;
    h->tokens.arg = h;
    event_assign(&h->readable, tunnel->flow->base, from, EV_READ | EV_PERSIST, on_ready, h);
    event_assign(&h->writable, tunnel->flow->base, to, EV_WRITE | EV_PERSIST, on_ready, h);
}

stk_tunnel *stk_tunnel_new(stk_flow *flow, const stk_tunnel_spec *spec)
{
    stk_tunnel *tunnel = stk_xcalloc(1, sizeof(*tunnel));
    tunnel->flow = flow;
    tunnel->spec = *spec;
    tunnel->last = stk_mono_now();
    half_init(tunnel, &tunnel->out, spec->client, spec->origin);
    half_init(tunnel, &tunnel->in, spec->origin, spec->client);
    evtimer_assign(&tunnel->idle, flow->base, on_idle, tunnel);
    evtimer_assign(&tunnel->begin, flow->base, on_begin, tunnel);
    arm_idle(tunnel, spec->idle);
    if (spec->tls != STK_TLS_OFF) {
        tunnel->guard = stk_xcalloc(1, sizeof(*tunnel->guard));
        stk_buf_init(&tunnel->guard->seen, 4 * STK_SCRATCH);
        evtimer_assign(&tunnel->guard->timer, flow->base, on_hello_timeout, tunnel);
    }
    stk_flow_moved(flow, 0, (int64_t)spec->early.n);
    if (spec->early.n && tunnel->guard)
        stk_buf_str(&tunnel->guard->seen, spec->early);
    else if (spec->early.n)
        hold(&tunnel->out, spec->early.p, spec->early.n);
    if (spec->early.n)
        event_active(&tunnel->begin, EV_TIMEOUT, 1);
    else
        event_add(&tunnel->out.readable, NULL);
    event_add(&tunnel->in.readable, NULL);
    return tunnel;
}

static void half_done(half *h)
{
    event_del(&h->readable);
    event_del(&h->writable);
    stk_flow_forget(h->tunnel->flow, &h->tokens);
    return_pipe(h);
    free(h->held);
}

void stk_tunnel_free(stk_tunnel *tunnel)
{
    half_done(&tunnel->out);
    half_done(&tunnel->in);
    event_del(&tunnel->idle);
    event_del(&tunnel->begin);
    if (tunnel->guard) {
        evtimer_del(&tunnel->guard->timer);
        stk_buf_done(&tunnel->guard->seen);
        free(tunnel->guard);
    }
    free(tunnel);
}

int64_t stk_tunnel_bytes_in(const stk_tunnel *tunnel)
{
    return tunnel->in.bytes;
}

int64_t stk_tunnel_bytes_out(const stk_tunnel *tunnel)
{
    return tunnel->out.bytes;
}
