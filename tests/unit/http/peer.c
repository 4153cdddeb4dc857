#include "peer.h"

static void on_head(stk_http_conn *conn, const stk_head *head, void *arg)
{
    peer *p = arg;
    p->heads++;
    p->status = head->status;
}

static void on_body(stk_http_conn *conn, stk_str data, void *arg)
{
    peer *p = arg;
    stk_buf_str(&p->body, data);
}

static void on_end(stk_http_conn *conn, bool reusable, void *arg)
{
    peer *p = arg;
    p->ends++;
    p->reusable = reusable;
    if (p->again) {
        p->again = false;
        assert_int_equal(stk_http_conn_send(conn, "GET", "/again", "h", "", (stk_str){0}, NULL, NULL), 0);
    }
    if (p->free_in_callback)
        stk_http_conn_free(STK_TAKE(p->conn));
}

static void on_fail(stk_http_conn *conn, const stk_err *err, bool sent, void *arg)
{
    peer *p = arg;
    p->fails++;
    p->err = *err;
    p->sent = sent;
    if (p->free_in_callback)
        stk_http_conn_free(STK_TAKE(p->conn));
}

static void on_writable(stk_http_conn *conn, void *arg)
{
    ((peer *)arg)->writables++;
}

const stk_http_conn_ops peer_ops = {on_head, on_body, on_end, on_fail, on_writable};

void peer_done(peer *p)
{
    stk_http_conn_free(p->conn);
    stk_closep(&p->fd);
    stk_buf_done(&p->got);
    stk_buf_done(&p->body);
    fx_done(&p->f);
}

void peer_init(peer *p, const stk_http_conn_limits *limits)
{
    int fds[2];
    stk_err err;
    *p = (peer){.got = STK_BUF(64u << 20), .body = STK_BUF(64u << 20)};
    fx_init(&p->f, NULL);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    p->fd = fds[1];
    assert_int_equal(stk_http_conn_new(p->f.base, fds[0], limits, &peer_ops, p, &p->conn, &err), 0);
}

void peer_get(peer *p)
{
    stk_err err;
    assert_int_equal(stk_http_conn_send(p->conn, "GET", "/x", "h", "", (stk_str){0}, NULL, &err), 0);
}
