/* The owner's side of a client connection: requests, streams, pauses, calls. */
#include "peer.h"

static void only_one_request_at_a_time_and_only_well_formed(void **state)
{
    WITH(p, NULL);
    stk_err err;
    stk_str none = {0};
    assert_int_equal(stk_http_conn_send(p.conn, "GE T", "/", "h", "", none, NULL, &err), -STK_E_HTTP);
    assert_int_equal(stk_http_conn_send(p.conn, "GET", "/a b", "h", "", none, NULL, &err), -STK_E_HTTP);
    assert_int_equal(stk_http_conn_send(p.conn, "GET", "/\r\nX: y", "h", "", none, NULL, &err), -STK_E_HTTP);
    assert_int_equal(stk_http_conn_send(p.conn, "GET", "/", "h\r\n", "", none, NULL, &err), -STK_E_HTTP);
    assert_int_equal(stk_http_conn_send(p.conn, "GET", "/", "h", "X: y", none, NULL, &err), -STK_E_HTTP);
    assert_int_equal(stk_http_conn_send(p.conn, "GET", "/", "h", "X: y\r\n\r\n", none, NULL, &err),
                     -STK_E_HTTP);
    peer_get(&p);
    assert_int_equal(stk_http_conn_send(p.conn, "GET", "/", "h", "", none, NULL, &err), -STK_E_CONFLICT);
}

static void the_owner_may_send_again_or_free_inside_a_callback(void **state)
{
    WITH(p, NULL);
    p.again = true;
    peer_get(&p);
    fx_send(&p.f, p.fd, STK_STR(H "Content-Length: 0\r\n\r\n"));
    UNTIL(p, p.ends == 1 && fx_recv(p.fd, &p.got, NULL) && fx_count(&p.got, "GET /again"));
    p.free_in_callback = true;
    fx_send(&p.f, p.fd, STK_STR(H "Content-Length: 0\r\n\r\n"));
    UNTIL(p, p.ends == 2);
    assert_null(p.conn);
}

static void a_streamed_request_is_framed_and_held_back(void **state)
{
    WITH(p, NULL);
    stk_err err;
    static char block[65536];
    assert_int_equal(stk_http_conn_start(p.conn, "PUT", "/", "h", "", UINT64_MAX, NULL, &err), 0);
    size_t sent = 0;
    while (stk_http_conn_write(p.conn, stk_str_n(block, sizeof block)) && sent < 8u << 20)
        sent += sizeof block;
    assert_true(sent < 1u << 20);
    sent += sizeof block;
    UNTIL(p, fx_recv(p.fd, &p.got, NULL) && p.writables == 1);
    assert_true(stk_http_conn_write(p.conn, STK_STR("end")));
    stk_http_conn_finish(p.conn);
    UNTIL(p, fx_recv(p.fd, &p.got, NULL) && p.got.n > sent &&
                 memcmp(p.got.p + p.got.n - 13, "3\r\nend\r\n0\r\n\r\n", 13) == 0);
    fx_send(&p.f, p.fd, STK_STR(H "Content-Length: 0\r\n\r\n"));
    UNTIL(p, p.ends == 1);
    assert_true(p.reusable);
}

static void a_request_shorter_or_longer_than_promised_fails(void **state)
{
    for (int longer = 0; longer < 2; longer++) {
        WITH(p, NULL);
        stk_err err;
        assert_int_equal(stk_http_conn_start(p.conn, "PUT", "/", "h", "", 4, NULL, &err), 0);
        stk_http_conn_write(p.conn, longer ? STK_STR("abcde") : STK_STR("abc"));
        stk_http_conn_finish(p.conn);
        UNTIL(p, p.fails == 1);
        assert_int_equal(p.err.code, STK_E_INTERNAL);
    }
}

static void a_paused_answer_waits(void **state)
{
    stk_http_conn_limits limits = {.stall = stk_ms(50)};
    WITH(p, &limits);
    peer_get(&p);
    fx_send(&p.f, p.fd, STK_STR(H "Content-Length: 3\r\n\r\n"));
    UNTIL(p, p.heads == 1);
    stk_http_conn_pause(p.conn);
    fx_send(&p.f, p.fd, STK_STR("abc"));
    fx_for(&p.f, stk_ms(120));
    assert_int_equal(p.body.n + (size_t)p.fails + (size_t)p.ends, 0);
    stk_http_conn_resume(p.conn);
    UNTIL(p, p.ends == 1);
}

static void on_called(const stk_err *err, bool sent, const stk_head *head, stk_str body, void *arg)
{
    peer *p = arg;
    p->dones++;
    p->sent = sent;
    if (err) {
        p->err = *err;
        assert_null(head);
        return;
    }
    p->status = head->status;
    assert_non_null(stk_head_get(head, "content-length"));
    stk_buf_reset(&p->body);
    stk_buf_str(&p->body, body);
}

static int call(peer *p, const char *target, uint64_t most, stk_span limit)
{
    stk_err err;
    return stk_http_call(p->conn, "POST", target, "h", "", STK_STR("hello"), most, limit, on_called, p, &err);
}

static void a_call_collects_its_answer_and_the_server_speaks_the_same(void **state)
{
    WITH(p, NULL);
    stk_err err;
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    assert_int_equal(stk_http_server_adopt(p.f.server, fds[1], NULL, NULL, &err), 0);
    stk_http_conn_free(p.conn);
    assert_int_equal(stk_http_conn_new(p.f.base, fds[0], NULL, NULL, NULL, &p.conn, &err), 0);
    for (int i = 1; i <= 3; i++) {
        assert_int_equal(call(&p, "/collect", 100, stk_sec(5)), 0);
        UNTIL(p, p.dones == i);
        assert_int_equal(p.status, 200);
        assert_string_equal(p.body.p, "hello");
    }
}

static void a_call_is_bounded_in_size_and_time(void **state)
{
    {
        WITH(p, NULL);
        assert_int_equal(call(&p, "/", 3, stk_sec(5)), 0);
        fx_send(&p.f, p.fd, STK_STR(H "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n"));
        UNTIL(p, p.dones == 1);
        assert_int_equal(p.err.code, STK_E_LIMIT);
        assert_true(p.sent);
        assert_int_equal(p.fails, 0);
        assert_int_equal(call(&p, "/", 3, stk_sec(5)), -STK_E_CLOSED);
    }
    {
        WITH(p, NULL);
        stk_mono start = stk_mono_now();
        assert_int_equal(call(&p, "/", 1000, stk_ms(80)), 0);
        fx_send(&p.f, p.fd, STK_STR(H "Content-Length: 900\r\n\r\n"));
        UNTIL(p, (fx_send(&p.f, p.fd, STK_STR("x")), fx_for(&p.f, stk_ms(2)), p.dones == 1));
        assert_int_equal(p.err.code, STK_E_TIMEOUT);
        assert_in_range(stk_span_ms(stk_mono_sub(stk_mono_now(), start)), 70, 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_one_request_at_a_time_and_only_well_formed),
        cmocka_unit_test(the_owner_may_send_again_or_free_inside_a_callback),
        cmocka_unit_test(a_streamed_request_is_framed_and_held_back),
        cmocka_unit_test(a_request_shorter_or_longer_than_promised_fails),
        cmocka_unit_test(a_paused_answer_waits),
        cmocka_unit_test(a_call_collects_its_answer_and_the_server_speaks_the_same),
        cmocka_unit_test(a_call_is_bounded_in_size_and_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
