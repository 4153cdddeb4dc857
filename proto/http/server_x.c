/* What a program asks of one exchange: its request, its body, its end. */
#include "proto/http/server_impl.h"
#include <arpa/inet.h>

static bool is_inet(const stk_http_x *x)
{
    return x->addr.any.sa_family == AF_INET || x->addr.any.sa_family == AF_INET6;
}

static const char *error_body(stk_http_x *x, int status, const char *code, const char *detail, stk_buf *out)
{
    const stk_http_ops *ops = x->server->ops;
    if (ops->error_body)
        return ops->error_body(status, code, detail, out, x->server->arg);
    stk_buf_fmt(out, "{\"status\":%d,\"title\":\"%s\",\"code\":\"%s\",\"detail\":\"%s\"}\n", status,
                stk_http_status_name(status), code, detail);
    return "application/problem+json";
}

void stk__conn_refuse(stk_http_x *x, int status, const char *code, const char *detail)
{
    if (x->out != STK__OUT_NONE) {
        x->cut = true;
        return;
    }
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(8192);
    const char *type = error_body(x, status, code, detail, &body);
    x->in = STK__IN_DROP;
    x->close = true;
    x->client_closes = false;
    stk_http_answer(x, status, type, "", stk_buf_view(&body));
}

const stk_head *stk_http_head(const stk_http_x *x)
{
    return &x->head;
}

stk_str stk_http_path(const stk_http_x *x)
{
    return x->path;
}

stk_str stk_http_query(const stk_http_x *x)
{
    return x->query;
}

void stk_http_set_data(stk_http_x *x, void *data)
{
    x->data = data;
}

void *stk_http_data(const stk_http_x *x)
{
    return x->data;
}

const struct sockaddr *stk_http_peer_addr(const stk_http_x *x)
{
    return is_inet(x) ? &x->addr.any : NULL;
}

const char *stk_http_peer(const stk_http_x *x)
{
    stk_http_x *cache = (stk_http_x *)(uintptr_t)x;
    char text[INET6_ADDRSTRLEN];
    if (!is_inet(x))
        return "unix";
    if (x->peer[0])
        return x->peer;
    bool v4 = x->addr.any.sa_family == AF_INET;
    const void *bytes = v4 ? (const void *)&x->addr.v4.sin_addr : (const void *)&x->addr.v6.sin6_addr;
    uint16_t port = ntohs(v4 ? x->addr.v4.sin_port : x->addr.v6.sin6_port);
    inet_ntop(x->addr.any.sa_family, bytes, text, sizeof text);
    snprintf(cache->peer, sizeof cache->peer, v4 ? "%s:%u" : "[%s]:%u", text, port);
    return x->peer;
}

void stk_http_accept_body(stk_http_x *x, uint64_t most)
{
    if (x->in != STK__IN_HELD)
        return;
    x->body_most = most ? most : x->server->limits.body;
    if (x->head.framing == STK_FRAMING_LENGTH && x->head.length > x->body_most) {
        stk__conn_refuse(x, 413, "too_large", "the body is larger than the limit");
        stk__conn_kick(x);
        return;
    }
    stk_chunked_init(&x->chunked);
    x->in = STK__IN_BODY;
    x->io.read_at = stk_mono_now();
    if (x->head.expect_continue && x->out == STK__OUT_NONE) {
        struct iovec part = {"HTTP/1.1 100 Continue\r\n\r\n", 25};
        stk__io_send(&x->io, &part, 1);
    }
    stk__conn_kick(x);
}

void stk_http_pause(stk_http_x *x)
{
    x->paused = true;
}

void stk_http_resume(stk_http_x *x)
{
    if (!x->paused)
        return;
    x->paused = false;
    x->io.read_at = stk_mono_now();
    stk__conn_kick(x);
}

void stk_http_abort(stk_http_x *x)
{
    x->cut = true;
    stk__conn_kick(x);
}
