#include "egress-proxy/dialer.h"
#include <errno.h>
#include <event2/event_struct.h>
#include <netinet/tcp.h>

#define STAGGER stk_ms(250)

typedef struct attempt {
    stk_dialer *dialer;
    int fd;
    struct event event;
} attempt;

struct stk_dialer {
    struct event_base *base;
    stk_sock *addrs;
    attempt *attempts;
    size_t n, next, running;
    bool overloaded;
    struct event stagger, deadline;
    stk_dialed_fn on_done;
    void *arg;
};

static void set(struct event *event, stk_span span)
{
    struct timeval tv = stk_span_timeval(span);
    evtimer_add(event, &tv);
}

static void finish(stk_dialer *dialer, stk_reason reason, int fd, const stk_sock *peer)
{
    stk_dialed_fn on_done = dialer->on_done;
    void *arg = dialer->arg;
    stk_sock copy = peer ? *peer : (stk_sock){.any.sa_family = AF_UNSPEC};
    stk_dialer_free(dialer);
    on_done(reason, fd, &copy, arg);
}

static void drop(attempt *at)
{
    event_del(&at->event);
    close(at->fd);
    at->fd = -1;
    at->dialer->running--;
}

static bool peer_is(int fd, const stk_sock *want)
{
    stk_sock peer;
    socklen_t len = sizeof(peer);
    if (getpeername(fd, &peer.any, &len) < 0 || !stk_sock_same_addr(&peer, want))
        return false;
    return want->any.sa_family == AF_INET ? peer.v4.sin_port == want->v4.sin_port
                                          : peer.v6.sin6_port == want->v6.sin6_port;
}

static void try_next(stk_dialer *dialer);

static void on_connect(evutil_socket_t fd, short what, void *arg)
{
    attempt *at = arg;
    stk_dialer *dialer = at->dialer;
    const stk_sock *want = &dialer->addrs[at - dialer->attempts];
    int error = 0, one = 1;
    socklen_t len = sizeof(error);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 || error || !peer_is(fd, want)) {
        drop(at);
        try_next(dialer);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    event_del(&at->event);
    at->fd = -1;
    finish(dialer, STK_R_ALLOWED, fd, want);
}

/* True when a connection is under way. */
static bool start(stk_dialer *dialer, size_t i)
{
    attempt *at = &dialer->attempts[i];
    const stk_sock *addr = &dialer->addrs[i];
    at->fd = socket(addr->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (at->fd < 0) {
        dialer->overloaded |= errno == EMFILE || errno == ENFILE || errno == ENOBUFS;
        return false;
    }
    if (connect(at->fd, &addr->any, stk_sock_len(addr)) < 0 && errno != EINPROGRESS) {
        dialer->overloaded |= errno == EADDRNOTAVAIL;
        close(at->fd);
        at->fd = -1;
        return false;
    }
    event_assign(&at->event, dialer->base, at->fd, EV_WRITE, on_connect, at);
    event_add(&at->event, NULL);
    dialer->running++;
    return true;
}

static void try_next(stk_dialer *dialer)
{
    while (dialer->next < dialer->n)
        if (start(dialer, dialer->next++)) {
            if (dialer->next < dialer->n)
                set(&dialer->stagger, STAGGER);
            return;
        }
    if (dialer->running == 0)
        set(&dialer->stagger, stk_ns(0));
}

static void on_stagger(evutil_socket_t fd, short what, void *arg)
{
    stk_dialer *dialer = arg;
    if (dialer->next == dialer->n && dialer->running == 0)
        finish(dialer, dialer->overloaded ? STK_R_OVERLOADED : STK_R_CONNECT_FAILED, -1, NULL);
    else
        try_next(dialer);
}

static void on_deadline(evutil_socket_t fd, short what, void *arg)
{
    finish(arg, STK_R_CONNECT_TIMEOUT, -1, NULL);
}

stk_dialer *stk_dialer_new(struct event_base *base, const stk_sock *addrs, size_t n, stk_span in_all,
                           stk_dialed_fn on_done, void *arg)
{
    stk_dialer *dialer = stk_xcalloc(1, sizeof(*dialer));
    *dialer = (stk_dialer){.base = base, .n = n, .on_done = on_done, .arg = arg};
    dialer->addrs = (stk_sock *)(void *)stk_xmemdup(addrs, n * sizeof(*addrs));
    dialer->attempts = stk_xcalloc(n, sizeof(*dialer->attempts));
    for (size_t i = 0; i < n; i++)
        dialer->attempts[i] = (attempt){.dialer = dialer, .fd = -1};
    evtimer_assign(&dialer->stagger, base, on_stagger, dialer);
    evtimer_assign(&dialer->deadline, base, on_deadline, dialer);
    set(&dialer->deadline, in_all);
    try_next(dialer);
    return dialer;
}

void stk_dialer_free(stk_dialer *dialer)
{
    for (size_t i = 0; i < dialer->n; i++)
        if (dialer->attempts[i].fd >= 0)
            drop(&dialer->attempts[i]);
    evtimer_del(&dialer->stagger);
    evtimer_del(&dialer->deadline);
    free(dialer->addrs);
    free(dialer->attempts);
    free(dialer);
}
