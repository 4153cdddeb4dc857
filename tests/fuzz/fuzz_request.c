/* A server connection that is sent these bytes: every exchange that began ends once, bodies keep to their
 * limit, and the connection is closed in the end. First byte: where the bytes are cut in two, and what the
 * program does. */
#include "proto/http/server.h"
#include <sys/socket.h>

typedef struct seen {
    int heads, dones, closes;
    uint64_t body;
    uint8_t mode;
} seen;

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void on_head(stk_http_x *x, void *arg)
{
    seen *s = arg;
    s->heads++;
    s->body = 0;
    check(s->heads == s->dones + 1);
    check(stk_http_path(x).n > 0);
    if (s->mode & 1)
        stk_http_accept_body(x, 0);
    else
        stk_http_answer(x, 200, "text/plain", "", STK_STR("early"));
    if (s->mode & 2)
        stk_http_start(x, 200, NULL, "", UINT64_MAX);
}

static void on_body(stk_http_x *x, stk_str data, void *arg)
{
    seen *s = arg;
    s->body += data.n;
    check(s->body <= 300);
    stk_http_write(x, data);
}

static void on_end(stk_http_x *x, void *arg)
{
    stk_http_answer(x, 200, "text/plain", "", STK_STR("late"));
    stk_http_end(x);
}

static void on_done(stk_http_x *x, bool gone, void *arg)
{
    seen *s = arg;
    check(++s->dones == s->heads);
}

static void on_close(void *arg)
{
    ((seen *)arg)->closes++;
}

static void drain(int fd)
{
    char block[4096];
    while (recv(fd, block, sizeof block, MSG_DONTWAIT) > 0)
        ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const stk_http_ops ops = {
        .on_head = on_head, .on_body = on_body, .on_end = on_end, .on_done = on_done};
    static struct event_base *base;
    static stk_http_server *server;
    static seen s;
    const stk_http_limits limits = {.head = {.bytes = 600, .fields = 12}, .body = 300};
    int fds[2];
    if (size < 1 || size > 8192)
        return 0;
    s = (seen){.mode = data[0]};
    if (!base) {
        base = event_base_new();
        check(stk_http_server_new(base, &limits, &ops, &s, &server, NULL) == 0);
    }
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    check(stk_http_server_adopt(server, fds[1], on_close, &s, NULL) == 0);
    const uint8_t *bytes = data + 1;
    size_t n = size - 1, cut = data[0] * n / 256;
    check(send(fds[0], bytes, cut, MSG_NOSIGNAL) == (ssize_t)cut);
    event_base_loop(base, EVLOOP_NONBLOCK);
    if (send(fds[0], bytes + cut, n - cut, MSG_NOSIGNAL) > 0)
        event_base_loop(base, EVLOOP_NONBLOCK);
    shutdown(fds[0], SHUT_WR);
    for (int i = 0; i < 200 && !s.closes; i++) {
        drain(fds[0]);
        event_base_loop(base, EVLOOP_NONBLOCK);
    }
    check(s.closes == 1 && s.heads == s.dones);
    close(fds[0]);
    return 0;
}
