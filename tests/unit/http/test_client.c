/* The client against peers that answer well, badly, too much or not at all. */
#include "peer.h"

static void a_request_goes_out_whole_and_its_answer_comes_back(void **state)
{
    WITH(p, NULL);
    stk_err err;
    assert_int_equal(
        stk_http_conn_send(p.conn, "POST", "/a?b", "h:1", "X-A: b\r\n", STK_STR("body"), NULL, &err), 0);
    UNTIL(p, fx_recv(p.fd, &p.got, NULL) && p.got.n > 0);
    assert_string_equal(p.got.p,
                        "POST /a?b HTTP/1.1\r\nHost: h:1\r\nX-A: b\r\nContent-Length: 4\r\n\r\nbody");
    fx_send(&p.f, p.fd,
            STK_STR("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nLink: x\r\n\r\n"
                    "HTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello"));
    UNTIL(p, p.ends == 1);
    assert_true(p.reusable);
    assert_int_equal(p.status, 201);
    assert_int_equal(p.heads, 1);
    assert_string_equal(p.body.p, "hello");
    peer_get(&p);
    fx_send(&p.f, p.fd, STK_STR("HTTP/1.1 204 No Content\r\n\r\n"));
    UNTIL(p, p.ends == 2);
    assert_true(p.reusable);
}

static void a_get_has_no_length_and_an_empty_post_has(void **state)
{
    WITH(p, NULL);
    peer_get(&p);
    UNTIL(p, fx_recv(p.fd, &p.got, NULL) && p.got.n > 0);
    assert_string_equal(p.got.p, "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    fx_send(&p.f, p.fd, STK_STR("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    UNTIL(p, p.ends == 1);
    stk_buf_reset(&p.got);
    assert_int_equal(stk_http_conn_send(p.conn, "POST", "/x", "h", "", (stk_str){0}, NULL, NULL), 0);
    UNTIL(p, fx_recv(p.fd, &p.got, NULL) && p.got.n > 0);
    assert_string_equal(p.got.p, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n");
}

typedef struct row {
    const char *what;
    stk_str answer;
    bool then_close;
    stk_code code; /* 0: an answer */
    const char *body;
    bool reusable;
} row;

static const row rows[] = {
    {"length", STK_STR(H "Content-Length: 3\r\n\r\nabc"), false, 0, "abc", true},
    {"length, closing", STK_STR(H "Connection: close\r\nContent-Length: 3\r\n\r\nabc"), false, 0, "abc",
     false},
    {"chunked", STK_STR(H "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\nX: y\r\n\r\n"), false,
     0, "abc", true},
    {"until close", STK_STR(H "\r\nabc"), true, 0, "abc", false},
    {"until close, empty", STK_STR(H "\r\n"), true, 0, "", false},
    {"HTTP/1.0", STK_STR("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc"), false, 0, "abc", false},
    {"an error is an answer", STK_STR("HTTP/1.1 503 No\r\nContent-Length: 3\r\n\r\nabc"), false, 0, "abc",
     true},
    {"closed after", STK_STR(H "Content-Length: 3\r\n\r\nabc"), true, 0, "abc", true},
    {"bytes after the answer", STK_STR(H "Content-Length: 3\r\n\r\nabcd"), false, 0, "abc", false},
    {"nothing", STK_STR(""), true, STK_E_CLOSED, "", false},
    {"half a head", STK_STR("HTTP/1.1 200 O"), true, STK_E_CLOSED, "", false},
    {"half a body", STK_STR(H "Content-Length: 3\r\n\r\nab"), true, STK_E_CLOSED, "ab", false},
    {"half a chunk", STK_STR(H "Transfer-Encoding: chunked\r\n\r\n3\r\nab"), true, STK_E_CLOSED, "ab", false},
    {"no last chunk", STK_STR(H "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n"), true, STK_E_CLOSED, "ab",
     false},
    {"only an interim answer", STK_STR("HTTP/1.1 100 Continue\r\n\r\n"), true, STK_E_CLOSED, "", false},
    {"garbage", STK_STR("lorem ipsum dolor\r\n"), false, STK_E_PROTOCOL, "", false},
    {"SSH", STK_STR("SSH-2.0-OpenSSH_9.2\r\n"), false, STK_E_PROTOCOL, "", false},
    {"HTTP/2", STK_STR("HTTP/2.0 200 OK\r\n\r\n"), false, STK_E_PROTOCOL, "", false},
    {"bare LF", STK_STR("HTTP/1.1 200 OK\n\n"), false, STK_E_PROTOCOL, "", false},
    {"both framings", STK_STR(H "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"), false,
     STK_E_PROTOCOL, "", false},
    {"two lengths", STK_STR(H "Content-Length: 3\r\nContent-Length: 4\r\n\r\n"), false, STK_E_PROTOCOL, "",
     false},
    {"gzip coding", STK_STR(H "Transfer-Encoding: gzip, chunked\r\n\r\n"), false, STK_E_PROTOCOL, "", false},
    {"bad chunk", STK_STR(H "Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n"), false, STK_E_PROTOCOL, "",
     false},
    {"101 unasked", STK_STR("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"), false, STK_E_PROTOCOL,
     "", false},
    {"too long by its length", STK_STR(H "Content-Length: 1001\r\n\r\n"), false, STK_E_LIMIT, "", false},
};

static void answers_of_every_kind_are_told_apart(void **state)
{
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        const row *r = &rows[i];
        stk_http_conn_limits limits = {.body = 1000};
        for (int by_byte = 0; by_byte < 2; by_byte++) {
            WITH(p, &limits);
            peer_get(&p);
            for (size_t k = 0; by_byte && k < r->answer.n; k++) {
                fx_send(&p.f, p.fd, stk_str_n(r->answer.p + k, 1));
                event_base_loop(p.f.base, EVLOOP_NONBLOCK);
            }
            if (!by_byte)
                fx_send(&p.f, p.fd, r->answer);
            if (r->then_close)
                shutdown(p.fd, SHUT_WR);
            UNTIL(p, p.ends + p.fails > 0);
            if ((int)r->code != (p.ends ? 0 : (int)p.err.code))
                fail_msg("%s: %s", r->what, p.fails ? p.err.detail : "answered");
            if (p.fails && p.ends == 0)
                assert_true(p.sent);
            if (!by_byte && !r->code && !r->then_close)
                assert_int_equal(p.reusable, r->reusable);
            assert_string_equal(p.body.p ? p.body.p : "", r->body);
        }
    }
}

static void a_flood_of_interim_answers_is_refused(void **state)
{
    WITH(p, NULL);
    peer_get(&p);
    for (int i = 0; i < 9; i++)
        fx_send(&p.f, p.fd, STK_STR("HTTP/1.1 100 Continue\r\n\r\n"));
    UNTIL(p, p.fails == 1);
    assert_int_equal(p.err.code, STK_E_PROTOCOL);
}

static void an_endless_head_is_refused(void **state)
{
    WITH(p, NULL);
    peer_get(&p);
    fx_send(&p.f, p.fd, STK_STR("HTTP/1.1 200 OK\r\n"));
    for (int i = 0; i < 10000 && !p.fails; i++)
        fx_send(&p.f, p.fd, STK_STR("a: b\r\n"));
    UNTIL(p, p.fails == 1);
    assert_int_equal(p.err.code, STK_E_LIMIT);
}

static void an_endless_body_is_refused(void **state)
{
    static const stk_str heads[] = {STK_STR(H "\r\n"),
                                    STK_STR(H "Transfer-Encoding: chunked\r\n\r\nfffffff\r\n")};
    stk_http_conn_limits limits = {.body = 100000};
    for (size_t i = 0; i < STK_COUNT(heads); i++) {
        WITH(p, &limits);
        peer_get(&p);
        fx_send(&p.f, p.fd, heads[i]);
        for (int k = 0; k < 20000 && !p.fails; k++)
            fx_send(&p.f, p.fd, STK_STR("0123456789"));
        UNTIL(p, p.fails == 1);
        assert_int_equal(p.err.code, STK_E_LIMIT);
        assert_true(p.body.n <= 100000);
    }
}

static void silence_and_stalls_time_out_and_a_drip_of_head_does_not_help(void **state)
{
    stk_http_conn_limits limits = {.first = stk_ms(60), .stall = stk_ms(60)};
    {
        WITH(p, &limits);
        peer_get(&p);
        UNTIL(p, p.fails == 1);
        assert_int_equal(p.err.code, STK_E_TIMEOUT);
        assert_true(p.sent);
    }
    {
        WITH(p, &limits);
        peer_get(&p);
        fx_send(&p.f, p.fd, STK_STR(H "X: "));
        UNTIL(p, (fx_send(&p.f, p.fd, STK_STR("x")), fx_for(&p.f, stk_ms(2)), p.fails == 1));
        assert_int_equal(p.err.code, STK_E_TIMEOUT);
    }
    {
        WITH(p, &limits);
        peer_get(&p);
        fx_send(&p.f, p.fd, STK_STR(H "Content-Length: 5\r\n\r\nab"));
        UNTIL(p, p.fails == 1);
        assert_int_equal(p.err.code, STK_E_TIMEOUT);
        assert_string_equal(p.body.p, "ab");
    }
}

static void a_stream_may_be_silent_for_long(void **state)
{
    stk_http_conn_limits limits = {.first = stk_ms(60), .stall = STK_SPAN_NEVER};
    WITH(p, &limits);
    peer_get(&p);
    fx_send(&p.f, p.fd, STK_STR(H "Transfer-Encoding: chunked\r\n\r\n"));
    UNTIL(p, p.heads == 1);
    fx_for(&p.f, stk_ms(150));
    assert_int_equal(p.fails, 0);
}

static void an_idle_connection_that_closes_or_talks_fails_unsent(void **state)
{
    {
        WITH(p, NULL);
        shutdown(p.fd, SHUT_WR);
        UNTIL(p, p.fails == 1);
        assert_int_equal(p.err.code, STK_E_CLOSED);
        assert_false(p.sent);
        stk_err err;
        assert_int_equal(stk_http_conn_send(p.conn, "GET", "/", "h", "", (stk_str){0}, NULL, &err),
                         -STK_E_CLOSED);
    }
    {
        WITH(p, NULL);
        fx_send(&p.f, p.fd, STK_STR(H "Content-Length: 0\r\n\r\n"));
        UNTIL(p, p.fails == 1);
        assert_int_equal(p.err.code, STK_E_PROTOCOL);
        assert_false(p.sent);
    }
}

static void a_refused_connection_fails_unsent(void **state)
{
    WITH(p, NULL);
    stk_err err;
    char addr[128];
    int fd;
    assert_int_equal(stk_listen("127.0.0.1:0", 1, &fd, &err), 0);
    stk_listen_text(fd, addr);
    close(fd);
    if (stk_dial(addr, &fd, &err) < 0)
        return; /* told at once: nothing to see here */
    stk_http_conn_free(p.conn);
    assert_int_equal(stk_http_conn_new(p.f.base, fd, NULL, &peer_ops, &p, &p.conn, &err), 0);
    peer_get(&p);
    UNTIL(p, p.fails == 1);
    assert_int_equal(p.err.code, STK_E_CLOSED);
    assert_false(p.sent);
}

static void an_answer_before_the_request_was_read_is_still_read(void **state)
{
    WITH(p, NULL);
    static char big[4 << 20];
    stk_err err;
    assert_int_equal(stk_http_conn_send(p.conn, "POST", "/", "h", "", stk_str_n(big, sizeof big), NULL, &err),
                     0);
    fx_send(&p.f, p.fd, STK_STR("HTTP/1.1 413 No\r\nContent-Length: 2\r\n\r\nno"));
    shutdown(p.fd, SHUT_RDWR);
    UNTIL(p, p.ends + p.fails > 0);
    assert_int_equal(p.ends, 1);
    assert_int_equal(p.status, 413);
    assert_string_equal(p.body.p, "no");
    assert_false(p.reusable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_goes_out_whole_and_its_answer_comes_back),
        cmocka_unit_test(a_get_has_no_length_and_an_empty_post_has),
        cmocka_unit_test(answers_of_every_kind_are_told_apart),
        cmocka_unit_test(a_flood_of_interim_answers_is_refused),
        cmocka_unit_test(an_endless_head_is_refused),
        cmocka_unit_test(an_endless_body_is_refused),
        cmocka_unit_test(silence_and_stalls_time_out_and_a_drip_of_head_does_not_help),
        cmocka_unit_test(a_stream_may_be_silent_for_long),
        cmocka_unit_test(an_idle_connection_that_closes_or_talks_fails_unsent),
        cmocka_unit_test(a_refused_connection_fails_unsent),
        cmocka_unit_test(an_answer_before_the_request_was_read_is_still_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
