#include "workers/runtime/relay.h"
#include "proto/base/fd.h"
#include "proto/base/time.h"
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#define CHUNK         65536
#define TURNS         4 /* reads before others get their turn     */
#define DIAL_EVERY_MS 5 /* while the proxy's backlog is full      */
#define DIAL_TRIES    1000
#define LINGER_MS     1000

typedef struct conn conn;

typedef struct side {
    conn *conn;
    int fd;
    struct event *readable;
    struct event *writable;
    char *held; /* bytes for this side that it did not take yet */
    size_t held_n, held_at;
    bool shut; /* we told this side that no more will come */
} side;

struct conn {
    conn *next, **at;
    stk_relay *relay;
    side sides[2];       /* 0 = the command's, 1 = the proxy's */
    struct event *again; /* the next try to dial, or the end of lingering */
    int tries;
    bool discard; /* one side is gone: what the other still sends goes nowhere */
};

struct stk_relay {
    struct event_base *base;
    struct event *acceptable;
    struct event *pause;
    int fd;
    stk_rt_address to;
    size_t n, most;
    conn *conns;
    char chunk[CHUNK];
};

static void side_done(side *s)
{
    if (s->readable)
        event_free(s->readable);
    if (s->writable)
        event_free(s->writable);
    stk_closep(&s->fd);
    free(s->held);
}

static void conn_free(conn *c)
{
    stk_relay *relay = c->relay;
    *c->at = c->next;
    if (c->next)
        c->next->at = c->at;
    if (c->again)
        event_free(c->again);
    side_done(&c->sides[0]);
    side_done(&c->sides[1]);
    free(c);
    if (relay->n-- == relay->most)
        event_add(relay->acceptable, NULL);
}

static side *other(const side *s)
{
    return &s->conn->sides[s == &s->conn->sides[0]];
}

/* False when the connection is over and freed. */
static bool pass_end(side *to)
{
    conn *c = to->conn;
    shutdown(to->fd, SHUT_WR);
    to->shut = true;
    if (!other(to)->shut)
        return true;
    conn_free(c);
    return false;
}

static bool failed(ssize_t n)
{
    return n < 0 && errno != EAGAIN && errno != EINTR;
}

static void hold(side *to, const char *p, size_t n)
{
    to->held = stk_xmemdup(p, n);
    to->held_n = n;
    to->held_at = 0;
    event_add(to->writable, NULL);
    event_del(other(to)->readable);
}

static void on_linger_over(evutil_socket_t fd, short what, void *arg)
{
    conn_free(arg);
}

/* Not a half-close: the peer has closed its socket. (Of a TCP peer that shows only in a later error.) */
static bool is_gone(int fd)
{
    struct pollfd at = {.fd = fd};
    return poll(&at, 1, 0) == 1 && (at.revents & POLLHUP);
}

/* `from` is gone and the other side was told. That one may still be sending: closing at once would reset it
 * and could take from it what it has not read yet. */
static void linger(side *from)
{
    conn *c = from->conn;
    c->discard = true;
    if (from->held) {
        free(STK_TAKE(from->held));
        event_del(from->writable);
        event_add(other(from)->readable, NULL);
    }
    struct timeval tv = stk_span_timeval(stk_ms(LINGER_MS));
    if (c->again)
        event_free(c->again);
    c->again = evtimer_new(c->relay->base, on_linger_over, c);
    evtimer_add(c->again, &tv);
}

static void end_of(side *from)
{
    bool gone = is_gone(from->fd);
    event_del(from->readable);
    if (from->conn->discard)
        conn_free(from->conn);
    else if (pass_end(other(from)) && gone)
        linger(from);
}

/* False when nothing more is to be read now. */
static bool pass(side *from, const char *p, size_t n)
{
    side *to = other(from);
    if (from->conn->discard)
        return true;
    ssize_t sent = send(to->fd, p, n, MSG_NOSIGNAL);
    if (failed(sent)) {
        conn_free(from->conn);
        return false;
    }
    size_t took = sent > 0 ? (size_t)sent : 0;
    if (took == n)
        return true;
    hold(to, p + took, n - took);
    return false;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    side *from = arg;
    char *chunk = from->conn->relay->chunk;
    for (int turn = 0; turn < TURNS; turn++) {
        ssize_t n = read(from->fd, chunk, CHUNK);
        if (n < 0) {
            if (failed(n))
                conn_free(from->conn);
            return;
        }
        if (n == 0) {
            end_of(from);
            return;
        }
        if (!pass(from, chunk, (size_t)n))
            return;
    }
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
    side *to = arg;
    ssize_t n = send(to->fd, to->held + to->held_at, to->held_n - to->held_at, MSG_NOSIGNAL);
    if (failed(n)) {
        conn_free(to->conn);
        return;
    }
    if (n > 0)
        to->held_at += (size_t)n;
    if (to->held_at < to->held_n)
        return;
    free(STK_TAKE(to->held));
    event_del(to->writable);
    event_add(other(to)->readable, NULL);
}

static void join(conn *c)
{
    stk_relay *relay = c->relay;
    for (int i = 0; i < 2; i++) {
        side *s = &c->sides[i];
        s->readable = event_new(relay->base, s->fd, EV_READ | EV_PERSIST, on_readable, s);
        s->writable = event_new(relay->base, s->fd, EV_WRITE | EV_PERSIST, on_writable, s);
        event_add(s->readable, NULL);
    }
}

static void dial(conn *c);

static void on_again(evutil_socket_t fd, short what, void *arg)
{
    dial(arg);
}

static void wait_and_dial(conn *c, bool for_writing)
{
    struct timeval tv = stk_span_timeval(for_writing ? stk_sec(5) : stk_ms(DIAL_EVERY_MS));
    if (c->again)
        event_free(c->again);
    int fd = for_writing ? c->sides[1].fd : -1;
    c->again = event_new(c->relay->base, fd, for_writing ? EV_WRITE : 0, on_again, c);
    event_add(c->again, &tv);
}

static void dial(conn *c)
{
    const stk_rt_address *to = &c->relay->to;
    if (c->tries++ == DIAL_TRIES) {
        conn_free(c);
        return;
    }
    if (connect(c->sides[1].fd, (const struct sockaddr *)&to->sa, to->n) == 0 || errno == EISCONN)
        join(c);
    else if (errno == EINPROGRESS || errno == EALREADY)
        wait_and_dial(c, true);
    else if (errno == EAGAIN || errno == EINTR)
        wait_and_dial(c, false);
    else
        conn_free(c);
}

static void carry(stk_relay *relay, int client)
{
    int out = socket(relay->to.sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (out < 0) {
        close(client);
        return;
    }
    int on = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    conn *c = stk_xcalloc(1, sizeof(*c));
    *c = (conn){.next = relay->conns, .at = &relay->conns, .relay = relay};
    if (c->next)
        c->next->at = &c->next;
    relay->conns = c;
    c->sides[0] = (side){.conn = c, .fd = client};
    c->sides[1] = (side){.conn = c, .fd = out};
    if (++relay->n == relay->most)
        event_del(relay->acceptable);
    dial(c);
}

static void on_acceptable(evutil_socket_t fd, short what, void *arg)
{
    stk_relay *relay = arg;
    for (int turn = 0; turn < TURNS && relay->n < relay->most; turn++) {
        int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (client >= 0) {
            carry(relay, client);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            struct timeval tv = stk_span_timeval(stk_ms(20));
            event_del(relay->acceptable);
            evtimer_add(relay->pause, &tv);
            return;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
    stk_relay *relay = arg;
    if (relay->n < relay->most)
        event_add(relay->acceptable, NULL);
}

int stk_relay_new(struct event_base *base, const char *from, const char *to, size_t most, stk_relay **ret,
                  stk_err *err)
{
    stk_rt_address address;
    int fd;
    if (stk_rt_address_parse(to, &address, err) < 0 || stk_listen(from, 128, &fd, err) < 0)
        return stk_err_wrap(err, "relay");
    stk_relay *relay = stk_xcalloc(1, sizeof(*relay));
    relay->base = base;
    relay->fd = fd;
    relay->to = address;
    relay->most = most;
    relay->acceptable = event_new(base, fd, EV_READ | EV_PERSIST, on_acceptable, relay);
    relay->pause = evtimer_new(base, on_pause_over, relay);
    event_add(relay->acceptable, NULL);
    *ret = relay;
    return 0;
}

void stk_relay_free(stk_relay *relay)
{
    while (relay->conns)
        conn_free(relay->conns);
    event_free(relay->acceptable);
    event_free(relay->pause);
    close(relay->fd);
    free(relay);
}
