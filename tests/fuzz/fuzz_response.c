/* A client connection whose peer answers with these bytes and closes: exactly one end or failure is told, a
 * failed one is never called reusable, and limits hold. First byte: where the bytes are cut in two. */
#include "proto/http/client.h"
#include <sys/socket.h>

typedef struct seen {
    int ends, fails;
    uint64_t body;
} seen;

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void on_head(stk_http_conn *conn, const stk_head *head, void *arg)
{
    check(head->status >= 200 && head->status <= 599);
}

static void on_body(stk_http_conn *conn, stk_str data, void *arg)
{
    seen *s = arg;
    s->body += data.n;
    check(s->body <= 500 && s->ends + s->fails == 0);
}

static void on_end(stk_http_conn *conn, bool reusable, void *arg)
{
    seen *s = arg;
    check(++s->ends == 1 && s->fails == 0);
}

static void on_fail(stk_http_conn *conn, const stk_err *err, bool sent, void *arg)
{
    seen *s = arg;
    check(++s->fails == 1 && err->code != STK_OK);
    check(sent == (s->ends == 0)); /* after the answer it is an idle connection that fails */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const stk_http_conn_ops ops = {
        .on_head = on_head, .on_body = on_body, .on_end = on_end, .on_fail = on_fail};
    static struct event_base *base;
    const stk_http_conn_limits limits = {.head = {.bytes = 600, .fields = 12}, .body = 500};
    stk_http_conn *conn;
    seen s = {0};
    int fds[2];
    if (size < 1 || size > 8192)
        return 0;
    if (!base)
        base = event_base_new();
    check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    check(stk_http_conn_new(base, fds[0], &limits, &ops, &s, &conn, NULL) == 0);
    check(stk_http_conn_send(conn, data[0] & 1 ? "HEAD" : "GET", "/", "h", "", (stk_str){0}, NULL, NULL) ==
          0);
    const uint8_t *bytes = data + 1;
    size_t n = size - 1, cut = data[0] * n / 256;
    check(send(fds[1], bytes, cut, MSG_NOSIGNAL) == (ssize_t)cut);
    event_base_loop(base, EVLOOP_NONBLOCK);
    check(send(fds[1], bytes + cut, n - cut, MSG_NOSIGNAL) == (ssize_t)(n - cut));
    shutdown(fds[1], SHUT_WR);
    for (int i = 0; i < 40; i++)
        event_base_loop(base, EVLOOP_NONBLOCK);
    check(s.ends + s.fails >= 1);
    stk_http_conn_free(conn);
    close(fds[1]);
    return 0;
}
