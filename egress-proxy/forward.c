#include "egress-proxy/forward.h"
#include <errno.h>
#include <sys/socket.h>

#define OUT_MOST     (4 * STK_SCRATCH)
#define HEAD_MOST    ((size_t)65536)
#define TURN         ((size_t)1 << 20)
#define INTERIM_MOST 16 /* 1xx answers before the real one */

/* One direction: bytes from a socket through a body into what is to be written to the other. */
typedef struct side {
    stk_forward *fw;
    int from, to;
    struct event readable, writable;
    stk_flow_wait tokens;
    stk_buf in; /* read, not used: the rest behind a head, or of a pipelined request */
    stk_buf out;
    size_t sent; /* of out */
    stk_body body;
    bool eof;
} side;

struct stk_forward {
    stk_flow *flow;
    stk_forward_spec spec;
    side up, down; /* client -> origin, origin -> client */
    stk_head head; /* of the response */
    size_t scan;
    int interim;
    bool responding, answered, closes;
    struct event idle, begin;
    stk_mono last;
};

static void finish(stk_forward *fw, stk_reason reason)
{
    fw->spec.on_end(reason, fw->spec.arg);
}

/* 1: all is out; 0: wait; -1: the peer is gone. */
static int flush(side *s)
{
    while (s->sent < s->out.n) {
        ssize_t n = send(s->to, s->out.p + s->sent, s->out.n - s->sent, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            event_del(&s->readable);
            event_add(&s->writable, NULL);
            return 0;
        }
        if (n < 0)
            return -1;
        s->sent += (size_t)n;
        s->fw->last = stk_mono_now();
        s->fw->answered |= s == &s->fw->down;
    }
    event_del(&s->writable);
    stk_buf_reset(&s->out);
    s->sent = 0;
    return 1;
}

typedef enum read_result { GOT_BYTES, GOT_NOTHING, GOT_END } read_result;

/* Reads once into the scratch buffer. GOT_END: the exchange is over. */
static read_result read_some(side *s, stk_str *ret)
{
    stk_forward *fw = s->fw;
    int64_t took = stk_flow_take(fw->flow, (int64_t)STK_SCRATCH, &s->tokens);
    if (took < 0) {
        finish(fw, STK_R_BYTES_EXCEEDED);
        return GOT_END;
    }
    if (took == 0) {
        event_del(&s->readable);
        return GOT_NOTHING;
    }
    ssize_t n = recv(s->from, fw->flow->scratch, (size_t)took, 0);
    stk_flow_moved(fw->flow, took, n > 0 ? n : 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        event_add(&s->readable, NULL);
        return GOT_NOTHING;
    }
    if (n < 0) {
        finish(fw, s == &fw->up ? STK_R_RESET : STK_R_BAD_RESPONSE);
        return GOT_END;
    }
    s->eof = n == 0;
    *ret = stk_str_n(fw->flow->scratch, (size_t)n);
    return GOT_BYTES;
}

/* --- the request
 * ------------------------------------------------------------------------------------------------- */

/* False: the exchange is over. */
static bool take_request(stk_forward *fw, stk_str bytes)
{
    side *up = &fw->up;
    ptrdiff_t used = stk_body_feed(&up->body, bytes, &up->out);
    if (used < 0) {
        finish(fw, STK_R_BAD_FRAMING);
        return false;
    }
    if ((size_t)used < bytes.n)
        stk_buf_add(&up->in, bytes.p + used, bytes.n - (size_t)used);
    if (up->eof && !up->body.done) {
        finish(fw, STK_R_RESET);
        return false;
    }
    return true;
}

static void pump_up(stk_forward *fw)
{
    side *up = &fw->up;
    for (size_t turn = 0; turn < TURN; turn += STK_SCRATCH) {
        int flushed = flush(up);
        if (flushed < 0) {
            /* An origin that has answered enough may close before it has read all: its answer counts. */
            up->body.done = up->body.done || fw->responding;
            fw->closes = true;
            stk_buf_reset(&up->out);
            up->sent = 0;
            event_del(&up->readable);
            event_del(&up->writable);
            return;
        }
        if (flushed == 0)
            return;
        if (up->body.done) {
            event_del(&up->readable);
            return;
        }
        stk_str bytes = {NULL, 0};
        read_result got = read_some(up, &bytes);
        if (got != GOT_BYTES || !take_request(fw, bytes))
            return;
    }
    event_add(&up->readable, NULL);
}

/* --- the response
 * ------------------------------------------------------------------------------------------------ */

static bool bad_response(stk_forward *fw)
{
    finish(fw, STK_R_BAD_RESPONSE);
    return false;
}

/* 100 is passed on to who asked for it, other interim answers are not; a switch of protocols never is. */
static bool on_interim(stk_forward *fw)
{
    if (fw->head.status == 101 || ++fw->interim > INTERIM_MOST)
        return bad_response(fw);
    if (fw->head.status == 100 && fw->spec.expect_continue)
        stk_buf_str(&fw->down.out, STK_STR("HTTP/1.1 100 Continue\r\n\r\n"));
    return true;
}

static bool take_head(stk_forward *fw, bool *ret_more)
{
    static const stk_head_limits limits = {.bytes = HEAD_MOST};
    side *down = &fw->down;
    stk_head_fault fault;
    const char *why;
    *ret_more = false;
    ptrdiff_t used = stk_head_response(stk_buf_view(&down->in), &limits, &fw->scan, fw->spec.how.to_head,
                                       false, &fw->head, &fault, &why);
    if (used < 0 || (used == 0 && down->eof))
        return bad_response(fw);
    if (used == 0)
        return true;
    fw->scan = 0;
    *ret_more = true;
    if (fw->head.status >= 200) {
        stk_framing framing = stk_response_rewrite(&fw->head, &fw->spec.how, &down->out);
        stk_body_init(&down->body, fw->head.framing, fw->head.length, framing);
        fw->responding = true;
        fw->closes |= framing == STK_FRAMING_CLOSE;
    } else if (!on_interim(fw)) {
        return false;
    }
    stk_buf_drop(&down->in, (size_t)used);
    return true;
}

static bool take_response(stk_forward *fw, stk_str bytes)
{
    side *down = &fw->down;
    bool more = true;
    if (!fw->responding) {
        stk_buf_str(&down->in, bytes);
        while (more && !fw->responding)
            if (!take_head(fw, &more))
                return false;
        if (!fw->responding)
            return true;
        bytes = stk_buf_view(&down->in);
    }
    ptrdiff_t used = stk_body_feed(&down->body, bytes, &down->out);
    stk_buf_done(&down->in);
    stk_buf_init(&down->in, HEAD_MOST + STK_SCRATCH);
    if (used < 0 || (down->eof && !stk_body_eof(&down->body, &down->out)))
        return bad_response(fw);
    return true;
}

static void pump_down(stk_forward *fw)
{
    side *down = &fw->down;
    for (size_t turn = 0; turn < TURN; turn += STK_SCRATCH) {
        int flushed = flush(down);
        if (flushed < 0) {
            finish(fw, STK_R_RESET);
            return;
        }
        if (flushed == 0)
            return;
        if (fw->responding && down->body.done) {
            finish(fw, STK_R_CLOSED);
            return;
        }
        stk_str bytes = {NULL, 0};
        read_result got = read_some(down, &bytes);
        if (got != GOT_BYTES || !take_response(fw, bytes))
            return;
    }
    event_add(&down->readable, NULL);
}

/* --- life
 * -------------------------------------------------------------------------------------------------------- */

static void pump(side *s)
{
    if (s == &s->fw->up)
        pump_up(s->fw);
    else
        pump_down(s->fw);
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
    stk_forward *fw = arg;
    stk_buf early = fw->up.in;
    stk_buf_init(&fw->up.in, OUT_MOST);
    if (take_request(fw, stk_buf_view(&early)))
        pump_up(fw);
    stk_buf_done(&early);
}

static void arm_idle(stk_forward *fw, stk_span left)
{
    struct timeval tv = stk_span_timeval(left);
    evtimer_add(&fw->idle, &tv);
}

static void on_idle(evutil_socket_t fd, short what, void *arg)
{
    stk_forward *fw = arg;
    stk_span quiet = stk_mono_sub(stk_mono_now(), fw->last);
    if (quiet.ns >= fw->spec.idle.ns)
        finish(fw, fw->responding ? STK_R_IDLE_TIMEOUT : STK_R_RESPONSE_TIMEOUT);
    else
        arm_idle(fw, stk_ns(fw->spec.idle.ns - quiet.ns));
}

static void side_init(stk_forward *fw, side *s, int from, int to)
{
    s->fw = fw;
    s->from = from;
    s->to = to;
    s->tokens.on_tokens = on_tokens;
    s->tokens.arg = s;
    event_assign(&s->readable, fw->flow->base, from, EV_READ | EV_PERSIST, on_ready, s);
    event_assign(&s->writable, fw->flow->base, to, EV_WRITE | EV_PERSIST, on_ready, s);
}

stk_forward *stk_forward_new(stk_flow *flow, stk_forward_spec *spec)
{
    stk_forward *fw = stk_xcalloc(1, sizeof(*fw));
    fw->flow = flow;
    fw->spec = *spec;
    fw->last = stk_mono_now();
    side_init(fw, &fw->up, spec->client, spec->origin);
    side_init(fw, &fw->down, spec->origin, spec->client);
    stk_buf_init(&fw->up.in, OUT_MOST);
    stk_buf_init(&fw->down.in, HEAD_MOST + STK_SCRATCH);
    stk_buf_init(&fw->down.out, OUT_MOST + HEAD_MOST);
    fw->up.out = spec->head;
    fw->up.out.cap = OUT_MOST;
    spec->head = (stk_buf){0};
    stk_buf_str(&fw->up.in, spec->early);
    stk_flow_moved(flow, 0, (int64_t)spec->early.n);
    stk_body_init(&fw->up.body, spec->framing, spec->length, spec->framing);
    evtimer_assign(&fw->idle, flow->base, on_idle, fw);
    evtimer_assign(&fw->begin, flow->base, on_begin, fw);
    arm_idle(fw, spec->idle);
    event_active(&fw->begin, EV_TIMEOUT, 1);
    event_add(&fw->down.readable, NULL);
    return fw;
}

static void side_done(side *s)
{
    event_del(&s->readable);
    event_del(&s->writable);
    stk_flow_forget(s->fw->flow, &s->tokens);
    stk_buf_done(&s->in);
    stk_buf_done(&s->out);
}

void stk_forward_free(stk_forward *fw)
{
    side_done(&fw->up);
    side_done(&fw->down);
    event_del(&fw->idle);
    event_del(&fw->begin);
    free(fw);
}

bool stk_forward_answered(const stk_forward *fw)
{
    return fw->answered;
}

bool stk_forward_reusable(stk_forward *fw, stk_buf *rest)
{
    bool whole = fw->up.body.done && fw->up.out.n == fw->up.sent && !fw->closes && !fw->up.eof;
    if (!whole || !fw->spec.how.keep_alive)
        return false;
    stk_buf_str(rest, stk_buf_view(&fw->up.in));
    return true;
}

int64_t stk_forward_bytes_in(const stk_forward *fw)
{
    return fw->down.body.bytes;
}

int64_t stk_forward_bytes_out(const stk_forward *fw)
{
    return fw->up.body.bytes;
}
