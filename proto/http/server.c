#include "proto/http/server_impl.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>

#define ACCEPT_AT_ONCE 16
#define ACCEPT_PAUSE   stk_ms(100)
#define WATCH_EVERY    stk_ms(100)

static void set_accepting(stk_http_server *server, bool on)
{
    for (stk__listener *l = server->listeners; l; l = l->next) {
        if (on)
            event_add(&l->ev, NULL);
        else
            event_del(&l->ev);
    }
}

static void on_pause_over(evutil_socket_t fd, short what, void *arg)
{
    stk_http_server *server = arg;
    if (!server->full)
        set_accepting(server, true);
}

/* A connection has gone: accept again when that was what accepting waited for. */
void stk__server_room(stk_http_server *server)
{
    if (!server->full || server->freeing)
        return;
    server->full = false;
    if (!event_pending(&server->pause, EV_TIMEOUT, NULL))
        set_accepting(server, true);
}

static void on_watch(evutil_socket_t fd, short what, void *arg)
{
    stk_http_server *server = arg;
    for (stk_http_x *x = server->first; x && server->watched; x = x->next)
        if (x->watched)
            stk__conn_check(x);
    if (server->watched) {
        struct timeval tv = stk_span_timeval(WATCH_EVERY);
        event_add(&server->watch, &tv);
    }
}

static void pause_accepting(stk_http_server *server)
{
    struct timeval tv = stk_span_timeval(ACCEPT_PAUSE);
    set_accepting(server, false);
    event_add(&server->pause, &tv);
}

static bool accept_one(stk__listener *l)
{
    stk_http_server *server = l->server;
    struct sockaddr_storage addr = {0};
    socklen_t n = sizeof addr;
    if (server->count >= server->limits.connections) {
        server->full = true;
        set_accepting(server, false);
        return false;
    }
    int fd = accept4(l->fd, (struct sockaddr *)&addr, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
        stk__conn_new(server, fd, (const struct sockaddr *)&addr, NULL);
        return true;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK)
        return false;
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
        pause_accepting(server);
        return false;
    }
    return true;
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
    stk__listener *l = arg;
    for (int i = 0; i < ACCEPT_AT_ONCE && accept_one(l); i++)
        ;
}

static void fill_defaults(stk_http_limits *limits)
{
    const stk_http_limits defaults = {
        .head = {.bytes = 16384, .fields = STK_HEAD_MAX_FIELDS},
        .body = 1u << 20,
        .head_time = stk_sec(10),
        .idle_time = stk_sec(60),
        .stall_time = stk_sec(60),
        .connections = 1024,
        .write_buffer = 256u << 10,
    };
#define FILL(member)                                                                                         \
    if (!limits->member)                                                                                     \
    limits->member = defaults.member
    FILL(head.bytes);
    FILL(head.fields);
    FILL(body);
    FILL(head_time.ns);
    FILL(idle_time.ns);
    FILL(stall_time.ns);
    FILL(connections);
    FILL(write_buffer);
#undef FILL
}

/* sendfile has no MSG_NOSIGNAL: a client that went away must not end the process. */
static void ignore_sigpipe(void)
{
    struct sigaction now;
    if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        signal(SIGPIPE, SIG_IGN);
}

int stk_http_server_new(struct event_base *base, const stk_http_limits *limits, const stk_http_ops *ops,
                        void *arg, stk_http_server **ret, stk_err *err)
{
    if (!ops->on_head)
        return stk_err_set(err, STK_E_INTERNAL, "an HTTP server needs on_head");
    stk_http_server *server = stk_xcalloc(1, sizeof *server);
    *server = (stk_http_server){.base = base, .ops = ops, .arg = arg};
    if (limits)
        server->limits = *limits;
    fill_defaults(&server->limits);
    event_assign(&server->pause, base, -1, 0, on_pause_over, server);
    event_assign(&server->watch, base, -1, 0, on_watch, server);
    ignore_sigpipe();
    *ret = server;
    return 0;
}

int stk_http_server_listen(stk_http_server *server, int fd, stk_err *err)
{
    struct sockaddr_storage addr = {0};
    socklen_t n = sizeof addr;
    if (getsockname(fd, (struct sockaddr *)&addr, &n) < 0)
        return stk_err_errno(err, errno, "listen");
    stk__io_tcp_options(fd, addr.ss_family); /* accepted sockets inherit them on Linux */
    stk__listener *l = stk_xcalloc(1, sizeof *l);
    *l = (stk__listener){.next = server->listeners, .server = server, .fd = fd};
    event_assign(&l->ev, server->base, fd, EV_READ | EV_PERSIST, on_accept, l);
    server->listeners = l;
    if (!server->full && event_add(&l->ev, NULL) < 0) {
        server->listeners = l->next;
        free(l);
        return stk_err_set(err, STK_E_SYSTEM, "the listener can't be watched");
    }
    return 0;
}

int stk_http_server_adopt(stk_http_server *server, int fd, void (*on_close)(void *arg), void *arg,
                          stk_err *err)
{
    struct sockaddr_storage addr = {0};
    socklen_t n = sizeof addr;
    if (server->freeing)
        return stk_err_set(err, STK_E_CLOSED, "the server is ending");
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return stk_err_errno(err, errno, "adopt a connection");
    if (getpeername(fd, (struct sockaddr *)&addr, &n) < 0)
        return stk_err_errno(err, errno, "adopt a connection");
    stk__io_tcp_options(fd, addr.ss_family);
    stk__adopted adopted = {on_close, arg};
    stk__conn_new(server, fd, (const struct sockaddr *)&addr, &adopted);
    return 0;
}

static void close_listeners(stk_http_server *server)
{
    while (server->listeners) {
        stk__listener *l = server->listeners;
        server->listeners = l->next;
        event_del(&l->ev);
        close(l->fd);
        free(l);
    }
    event_del(&server->pause);
}

void stk_http_server_drain(stk_http_server *server)
{
    server->draining = true;
    close_listeners(server);
    for (stk_http_x *x = server->first, *next; x; x = next) {
        next = x->next;
        stk__conn_drain(x);
    }
}

size_t stk_http_server_connections(const stk_http_server *server)
{
    return server->count;
}

void stk_http_server_free(stk_http_server *server)
{
    server->freeing = true;
    close_listeners(server);
    while (server->first)
        stk__conn_destroy(server->first);
    event_del(&server->watch);
    free(server);
}
