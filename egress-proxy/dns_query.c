#include "egress-proxy/dns_query.h"
#include "proto/base/id.h"
#include "proto/base/time.h"
#include <errno.h>
#include <event2/event_struct.h>

#define IN_ALL     stk_ms(4500) /* over all tries */
#define STRAYS_MAX 32
#define UDP_MAX    4096

struct stk_dns_query {
    struct event_base *base;
    const stk_dns_servers *servers;
    const char *name;
    stk_dns_type type;
    int64_t *spent;
    stk_dns_done_fn on_done;
    void *arg;
    int fd;
    struct event io, timer;
    unsigned tries, strays;
    uint16_t id;
    bool tcp;
    stk_reason reason; /* what a try ended with, for the timer to report */
    stk_buf out, in;   /* TCP */
};

static unsigned tries_in_all(const stk_dns_query *q)
{
    return q->servers->n == 1 ? 2 : (unsigned)q->servers->n;
}

static void set_timer(stk_dns_query *q, stk_span span)
{
    struct timeval tv = stk_span_timeval(span);
    evtimer_add(&q->timer, &tv);
}

static void hang_up(stk_dns_query *q)
{
    if (q->fd < 0)
        return;
    event_del(&q->io);
    close(q->fd);
    q->fd = -1;
}

static void next_try(stk_dns_query *q, stk_reason reason);

/* Reported from the loop, also when a socket failed at once. */
static void finish_later(stk_dns_query *q, stk_reason reason)
{
    hang_up(q);
    q->reason = reason;
    set_timer(q, stk_ns(0));
}

static int open_socket(stk_dns_query *q, int type)
{
    const stk_sock *server = &q->servers->v[(q->tries - 1) % q->servers->n];
    q->fd = socket(server->any.sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (q->fd < 0)
        return errno == EMFILE || errno == ENFILE ? STK_R_OVERLOADED : STK_R_DNS_UNREACHABLE;
    if (connect(q->fd, &server->any, stk_sock_len(server)) < 0 && errno != EINPROGRESS)
        return STK_R_DNS_UNREACHABLE;
    return STK_R_ALLOWED;
}

static size_t encode(stk_dns_query *q, uint8_t out[STK_DNS_QUERY_MAX])
{
    stk_random(&q->id, sizeof(q->id));
    ++*q->spent;
    return stk_dns_encode(q->id, q->name, q->type, out);
}

static void on_udp(evutil_socket_t fd, short what, void *arg);
static void on_tcp(evutil_socket_t fd, short what, void *arg);

static void start_udp(stk_dns_query *q)
{
    uint8_t message[STK_DNS_QUERY_MAX];
    size_t n = encode(q, message);
    q->tcp = false;
    int reason = n ? open_socket(q, SOCK_DGRAM) : STK_R_DNS_MALFORMED;
    if (reason == STK_R_ALLOWED && send(q->fd, message, n, 0) < 0)
        reason = STK_R_DNS_UNREACHABLE;
    if (reason != STK_R_ALLOWED) {
        finish_later(q, (stk_reason)reason);
        return;
    }
    event_assign(&q->io, q->base, q->fd, EV_READ | EV_PERSIST, on_udp, q);
    event_add(&q->io, NULL);
}

static void start_tcp(stk_dns_query *q)
{
    uint8_t message[2 + STK_DNS_QUERY_MAX];
    hang_up(q);
    size_t n = encode(q, message + 2);
    message[0] = (uint8_t)(n >> 8);
    message[1] = (uint8_t)n;
    q->tcp = true;
    stk_buf_done(&q->out);
    stk_buf_done(&q->in);
    stk_buf_init(&q->out, sizeof(message));
    stk_buf_init(&q->in, 2 + STK_DNS_ANSWER_MAX);
    stk_buf_add(&q->out, message, n + 2);
    int reason = open_socket(q, SOCK_STREAM);
    if (reason != STK_R_ALLOWED) {
        next_try(q, reason == STK_R_OVERLOADED ? STK_R_OVERLOADED : STK_R_DNS_TRUNCATED);
        return;
    }
    event_assign(&q->io, q->base, q->fd, EV_WRITE, on_tcp, q);
    event_add(&q->io, NULL);
}

static stk_span try_span(const stk_dns_query *q)
{
    return stk_ns(IN_ALL.ns / tries_in_all(q));
}

/* `reason`: how the present try ended. Calls back when it was the last. */
static void next_try(stk_dns_query *q, stk_reason reason)
{
    bool may_repeat = reason == STK_R_DNS_TIMEOUT; /* the same server once more */
    unsigned most = may_repeat ? tries_in_all(q) : (unsigned)q->servers->n;
    hang_up(q);
    if (q->tries >= most || reason == STK_R_OVERLOADED) {
        evtimer_del(&q->timer);
        q->on_done(reason, NULL, q->arg);
        return;
    }
    q->tries++;
    q->strays = 0;
    set_timer(q, try_span(q));
    start_udp(q);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    stk_dns_query *q = arg;
    stk_reason reason = q->reason;
    q->reason = STK_R_DNS_TIMEOUT;
    next_try(q, reason);
}

/* False when the query is over, and maybe freed. */
static bool on_message(stk_dns_query *q, const uint8_t *p, size_t n)
{
    stk_dns_answer answer;
    switch (stk_dns_decode(p, n, q->id, q->name, q->type, &answer)) {
    case STK_DNS_STRAY:
        if (++q->strays < STRAYS_MAX && !q->tcp)
            return true;
        next_try(q, STK_R_DNS_MALFORMED);
        return false;
    case STK_DNS_CUT:
        if (q->tcp)
            next_try(q, STK_R_DNS_TRUNCATED);
        else
            start_tcp(q);
        return false;
    case STK_DNS_OK:
        hang_up(q);
        evtimer_del(&q->timer);
        q->on_done(STK_R_ALLOWED, &answer, q->arg);
        return false;
    case STK_DNS_NXDOMAIN:
        hang_up(q);
        evtimer_del(&q->timer);
        q->on_done(STK_R_DNS_NXDOMAIN, NULL, q->arg);
        return false;
    case STK_DNS_SERVFAIL:
        next_try(q, STK_R_DNS_SERVFAIL);
        return false;
    case STK_DNS_MALFORMED:
        break;
    }
    next_try(q, STK_R_DNS_MALFORMED);
    return false;
}

static void on_udp(evutil_socket_t fd, short what, void *arg)
{
    stk_dns_query *q = arg;
    uint8_t message[UDP_MAX];
    for (;;) {
        ssize_t n = recv(q->fd, message, sizeof(message), 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n < 0) {
            next_try(q, STK_R_DNS_UNREACHABLE);
            return;
        }
        if (!on_message(q, message, (size_t)n))
            return;
    }
}

static void rearm(stk_dns_query *q, short what)
{
    event_del(&q->io);
    event_assign(&q->io, q->base, q->fd, what, on_tcp, q);
    event_add(&q->io, NULL);
}

static bool tcp_send(stk_dns_query *q)
{
    ssize_t n = send(q->fd, q->out.p, q->out.n, MSG_NOSIGNAL);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    stk_buf_drop(&q->out, (size_t)n);
    return true;
}

static bool tcp_receive(stk_dns_query *q, bool *ret_whole)
{
    size_t want =
        q->in.n < 2 ? 2 - q->in.n : 2 + ((size_t)(uint8_t)q->in.p[0] << 8 | (uint8_t)q->in.p[1]) - q->in.n;
    char *to = stk_buf_room(&q->in, want);
    ssize_t n = to ? recv(q->fd, to, want, 0) : 0;
    if (n < 0)
        return errno == EAGAIN || errno == EINTR;
    q->in.n += (size_t)n;
    size_t whole = q->in.n < 2 ? 0 : 2 + ((size_t)(uint8_t)q->in.p[0] << 8 | (uint8_t)q->in.p[1]);
    *ret_whole = whole > 2 && q->in.n == whole;
    return n > 0;
}

static void on_tcp(evutil_socket_t fd, short what, void *arg)
{
    stk_dns_query *q = arg;
    bool whole = false;
    if (q->out.n ? !tcp_send(q) : !tcp_receive(q, &whole))
        next_try(q, STK_R_DNS_TRUNCATED);
    else if (whole)
        on_message(q, (const uint8_t *)q->in.p + 2, q->in.n - 2);
    else
        rearm(q, q->out.n ? EV_WRITE : EV_READ);
}

stk_dns_query *stk_dns_query_new(struct event_base *base, const stk_dns_servers *servers, const char *name,
                                 stk_dns_type type, int64_t *spent, stk_dns_done_fn on_done, void *arg)
{
    stk_dns_query *q = stk_xcalloc(1, sizeof(*q));
    *q = (stk_dns_query){.base = base,
                         .servers = servers,
                         .name = name,
                         .type = type,
                         .spent = spent,
                         .on_done = on_done,
                         .arg = arg,
                         .fd = -1,
                         .tries = 1,
                         .reason = STK_R_DNS_TIMEOUT};
    evtimer_assign(&q->timer, base, on_timer, q);
    set_timer(q, try_span(q));
    start_udp(q);
    return q;
}

void stk_dns_query_hurry(stk_dns_query *q, stk_span left)
{
    q->tries = tries_in_all(q);
    set_timer(q, left);
}

void stk_dns_query_free(stk_dns_query *q)
{
    hang_up(q);
    evtimer_del(&q->timer);
    stk_buf_done(&q->out);
    stk_buf_done(&q->in);
    free(q);
}
