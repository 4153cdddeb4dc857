/* What a client meets: framing, refusals, limits, answers of every shape. */
#include "fixture.h"

static void a_request_is_answered_and_the_connection_kept(void **state)
{
    WITH(f, NULL);
    TEXT(in);
    int fd = fx_dial(&f);
    fx_send(&f, fd, GET);
    fx_expect(&f, fd, &in, "\r\n\r\nok\n");
    assert_int_equal(strncmp(in.p, "HTTP/1.1 200 OK\r\nDate: ", 23), 0);
    assert_int_equal(fx_count(&in, "Content-Length: 3\r\n"), 1);
    assert_int_equal(fx_count(&in, "Connection:"), 0);
    stk_buf_reset(&in);
    fx_send(&f, fd, GET);
    fx_expect(&f, fd, &in, "ok\n");
    assert_int_equal(f.dones, 2);
    assert_int_equal(stk_http_server_connections(f.server), 1);
    close(fd);
    fx_until(&f, stk_http_server_connections(f.server) == 0);
    assert_int_equal(f.gones, 0);
}

static void a_request_split_anywhere_reads_the_same(void **state)
{
    static const stk_str requests[] = {
        STK_STR("POST /collect HTTP/1.1\r\nHost: h\r\nContent-Length: 11\r\n\r\nhello world"),
        STK_STR("POST /collect HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n "
                "world\r\n0\r\n\r\n"),
    };
    WITH(f, NULL);
    int tcp = fx_dial(&f), pair = fx_pair(&f);
    for (size_t i = 0; i < STK_COUNT(requests); i++)
        for (size_t cut = 0; cut <= requests[i].n; cut++) {
            int fd = cut % 2 ? tcp : pair;
            TEXT(in);
            fx_send(&f, fd, stk_str_n(requests[i].p, cut));
            fx_turn(&f);
            fx_send(&f, fd, stk_str_n(requests[i].p + cut, requests[i].n - cut));
            fx_expect(&f, fd, &in, "\r\n\r\nhello world");
            assert_int_equal(fx_count(&in, "HTTP/1.1 200 OK"), 1);
        }
    for (size_t i = 0; i < STK_COUNT(requests); i++) {
        TEXT(in);
        for (size_t k = 0; k < requests[i].n; k++) {
            fx_send(&f, tcp, stk_str_n(requests[i].p + k, 1));
            fx_turn(&f);
        }
        fx_expect(&f, tcp, &in, "\r\n\r\nhello world");
    }
    close(tcp);
    close(pair);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
    WITH(f, NULL);
    TEXT(in);
    TEXT(out);
    int fd = fx_dial(&f);
    for (int i = 0; i < 50; i++) {
        stk_buf_fmt(&out, "POST /collect HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n%04d", i);
        stk_buf_str(&out, GET);
    }
    stk_buf_str(&out, STK_STR("GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
    fx_send(&f, fd, stk_buf_view(&out));
    fx_expect_end(&f, fd, &in);
    assert_int_equal(fx_count(&in, "HTTP/1.1 200 OK"), 101);
    assert_true(strstr(in.p, "\r\n\r\n0007") < strstr(in.p, "\r\n\r\n0041"));
    assert_int_equal(fx_count(&in, "Connection: close"), 1);
    assert_int_equal(f.heads, 101);
    close(fd);
}

static void a_waiting_pipelined_request_does_not_run_early(void **state)
{
    WITH(f, NULL);
    TEXT(in);
    int fd = fx_dial(&f);
    fx_send(&f, fd, STK_STR("GET /hold HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"));
    fx_until(&f, f.held);
    fx_for(&f, stk_ms(20));
    assert_int_equal(f.heads, 1);
    stk_http_answer(f.held, 200, "text/plain", "", STK_STR("first"));
    fx_expect(&f, fd, &in, "ok\n");
    assert_true(strstr(in.p, "first") < strstr(in.p, "ok\n"));
    close(fd);
}

static void continue_is_sent_exactly_once(void **state)
{
    WITH(f, NULL);
    TEXT(in);
    int fd = fx_dial(&f);
    fx_send(
        &f, fd,
        STK_STR("POST /collect HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 6\r\n\r\n"));
    fx_expect(&f, fd, &in, "HTTP/1.1 100 Continue\r\n\r\n");
    assert_int_equal(in.n, 25);
    for (int i = 0; i < 6; i++) {
        fx_send(&f, fd, stk_str_n("abcdef" + i, 1));
        fx_turn(&f);
    }
    fx_expect(&f, fd, &in, "abcdef");
    assert_int_equal(fx_count(&in, "100 Continue"), 1);
    close(fd);
}

static void a_refused_upload_gets_its_answer_and_no_continue(void **state)
{
    WITH(f, NULL);
    TEXT(in);
    int fd = fx_dial(&f);
    fx_send(
        &f, fd,
        STK_STR(
            "POST /refuse HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n"));
    fx_expect_end(&f, fd, &in);
    assert_int_equal(strncmp(in.p, "HTTP/1.1 403", 12), 0);
    assert_int_equal(fx_count(&in, "Connection: close\r\n"), 1);
    assert_int_equal(fx_count(&in, "refused"), 1);
    assert_int_equal(fx_count(&in, "100 Continue"), 0);
    close(fd);
}

static void an_unknown_expectation_is_417(void **state)
{
    WITH(f, NULL);
    TEXT(in);
    int fd = fx_dial(&f);
    fx_send(&f, fd, STK_STR("GET / HTTP/1.1\r\nHost: h\r\nExpect: a-pony\r\n\r\n"));
    fx_expect_end(&f, fd, &in);
    assert_int_equal(strncmp(in.p, "HTTP/1.1 417", 12), 0);
    assert_int_equal(f.heads, 0);
    close(fd);
}

/* The client goes on sending: the answer must not be overtaken by a reset, nor the follow-up be run. */

static void an_oversized_upload_reads_413_and_its_follow_up_never_runs(void **state)
{
    WITH(f, NULL);
    TEXT(in);
    TEXT(out);
    int fd = fx_dial(&f);
    stk_buf_text(&out, "POST /collect HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n");
    memset(stk_buf_room(&out, 500000), 'x', 500000);
    out.n += 500000;
    stk_buf_str(&out, GET);
    fx_send(&f, fd, stk_buf_view(&out));
    fx_expect_end(&f, fd, &in);
    assert_int_equal(strncmp(in.p, "HTTP/1.1 413", 12), 0);
    assert_int_equal(fx_count(&in, "\r\nDate: "), 1);
    assert_int_equal(fx_count(&in, "\"code\":\"too_large\""), 1);
    assert_int_equal(f.heads, 1);
    assert_int_equal(f.ends, 0);
    assert_int_equal(f.dones, 1);
    close(fd);
    fx_until(&f, stk_http_server_connections(f.server) == 0);
}

static void a_chunked_body_over_the_limit_reads_413(void **state)
{
    stk_http_limits limits = {.body = 1000};
    WITH(f, &limits);
    TEXT(in);
    int fd = fx_dial(&f);
    fx_send(&f, fd,
            STK_STR("POST /collect HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n"));
    for (int i = 0; i < 100; i++)
        fx_send(&f, fd, STK_STR("0123456789"));
    fx_send(&f, fd, STK_STR("\r\n1\r\n!\r\n0\r\n\r\n"));
    fx_expect_end(&f, fd, &in);
    assert_int_equal(strncmp(in.p, "HTTP/1.1 413", 12), 0);
    assert_int_equal(f.body_bytes, 1000);
    close(fd);
}

static const struct {
    const char *what;
    stk_str in;
    const char *status, *code;
} refusals[] = {
    {"no Host", STK_STR("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 400", "bad_request"},
    {"HTTP/0.9", STK_STR("GET /\r\n"), "HTTP/1.1 505", "bad_request"},
    {"HTTP/2 preface", STK_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "HTTP/1.1 505", "bad_request"},
    {"both lengths",
     STK_STR("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\nTransfer-Encoding: "
             "chunked\r\n\r\n0\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"),
     "HTTP/1.1 400", "bad_framing"},
    {"unknown coding", STK_STR("POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
     "HTTP/1.1 501", "bad_framing"},
    {"chunk size -1",
     STK_STR("POST /collect HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n"), "HTTP/1.1 400",
     "bad_framing"},
    {"chunk extension",
     STK_STR("POST /collect HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
             "chunked\r\n\r\n5;ext\r\nhello\r\n0\r\n\r\n"),
     "HTTP/1.1 400", "bad_framing"},
    {"chunk without its CRLF",
     STK_STR("POST /collect HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello0\r\n\r\nGET "
             "/ HTTP/1.1\r\nHost: h\r\n\r\n"),
     "HTTP/1.1 400", "bad_framing"},
};

static void malformed_requests_are_answered_and_the_connection_closed(void **state)
{
    for (size_t i = 0; i < STK_COUNT(refusals); i++) {
        WITH(f, NULL);
        TEXT(in);
        int fd = fx_dial(&f);
        fx_send(&f, fd, refusals[i].in);
        fx_expect_end(&f, fd, &in);
        if (strncmp(in.p, refusals[i].status, 12) != 0 || !strstr(in.p, refusals[i].code))
            fail_msg("%s: %s", refusals[i].what, in.p);
        assert_int_equal(fx_count(&in, "\r\nDate: "), 1);
        assert_int_equal(f.ends, 0);
        close(fd);
    }
}

static void an_endless_head_is_431(void **state)
{
    WITH(f, NULL);
    TEXT(in);
    int fd = fx_dial(&f);
    fx_send(&f, fd, STK_STR("GET / HTTP/1.1\r\nHost: h\r\n"));
    for (int i = 0; i < 10000; i++)
        fx_send(&f, fd, STK_STR("a: b\r\n"));
    fx_expect_end(&f, fd, &in);
    assert_int_equal(strncmp(in.p, "HTTP/1.1 431", 12), 0);
    close(fd);
}

/* tcpi_data_segs_in of linux/tcp.h, which does not go together with netinet/tcp.h. */

static uint32_t data_segments_in(int fd)
{
    unsigned char info[256] = {0};
    socklen_t n = sizeof info;
    uint32_t count;
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &n), 0);
    assert_true(n >= 156);
    memcpy(&count, info + 152, 4);
    return count;
}

static void small_writes_leave_together(void **state)
{
    WITH(f, NULL);
    TEXT(in);
    int fd = fx_dial(&f);
    fx_send(&f, fd, STK_STR("GET /pieces HTTP/1.1\r\nHost: h\r\n\r\n"));
    fx_expect(&f, fd, &in, "2\r\nab\r\n2\r\nab\r\n2\r\nab\r\n2\r\nab\r\n2\r\nab\r\n0\r\n\r\n");
    assert_int_equal(data_segments_in(fd), 1);
    fx_send(&f, fd, GET);
    fx_until(&f, f.dones == 2);
    assert_int_equal(data_segments_in(fd), 2);
    close(fd);
}

static void head_and_204_send_no_body_and_old_clients_read_to_the_end(void **state)
{
    WITH(f, NULL);
    TEXT(in);
    TEXT(old);
    int fd = fx_dial(&f);
    fx_send(&f, fd,
            STK_STR("HEAD / HTTP/1.1\r\nHost: h\r\n\r\nHEAD /pieces HTTP/1.1\r\nHost: h\r\n\r\nGET /204 "
                    "HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
    fx_expect_end(&f, fd, &in);
    assert_int_equal(fx_count(&in, "Content-Length: 3\r\n"), 1);
    assert_int_equal(fx_count(&in, "Content-Length"), 1);
    assert_int_equal(fx_count(&in, "ok\n") + fx_count(&in, "ignored") + fx_count(&in, "ab\r\n"), 0);
    close(fd);
    fd = fx_dial(&f);
    fx_send(&f, fd, STK_STR("GET /pieces HTTP/1.0\r\n\r\n"));
    fx_expect_end(&f, fd, &old);
    assert_int_equal(fx_count(&old, "\r\n\r\nababababab"), 1);
    assert_int_equal(fx_count(&old, "chunked"), 0);
    close(fd);
}

static void an_answer_shorter_than_promised_is_cut_not_padded(void **state)
{
    WITH(f, NULL);
    TEXT(in);
    int fd = fx_dial(&f);
    fx_send(&f, fd, STK_STR("GET /short HTTP/1.1\r\nHost: h\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"));
    fx_until(&f, !fx_recv(fd, &in, NULL));
    assert_int_equal(fx_count(&in, "ok\n"), 0);
    assert_int_equal(f.gones, 1);
    close(fd);
}

static void headers_that_would_inject_become_500(void **state)
{
    WITH(f, NULL);
    TEXT(in);
    int fd = fx_dial(&f);
    fx_send(&f, fd, STK_STR("GET /inject HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
    fx_expect_end(&f, fd, &in);
    assert_int_equal(strncmp(in.p, "HTTP/1.1 500", 12), 0);
    assert_int_equal(fx_count(&in, "evil"), 0);
    close(fd);
}

static int temp_file(size_t n)
{
    char name[] = "/tmp/stk-http-XXXXXX";
    int fd = mkstemp(name);
    unlink(name);
    char *bytes = malloc(n);
    memset(bytes, 'f', n);
    assert_int_equal(write(fd, bytes, n), n);
    free(bytes);
    return fd;
}

static void a_file_goes_between_what_was_written_around_it(void **state)
{
    WITH(f, NULL);
    TEXT(in);
    f.file = temp_file(200000);
    int fd = fx_dial(&f);
    fx_send(&f, fd, STK_STR("GET /file HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"));
    fx_expect_end(&f, fd, &in);
    const char *body = strstr(in.p, "\r\n\r\n<<<f");
    assert_non_null(body);
    assert_int_equal(in.p + in.n - body - 4, 100006);
    assert_memory_equal(in.p + in.n - 6, "fff>>>", 6);
    assert_int_equal(fcntl(f.file, F_GETFD), -1);
    close(fd);
}

static void a_file_that_shrank_cuts_the_connection(void **state)
{
    WITH(f, NULL);
    TEXT(in);
    f.file = temp_file(1000);
    int fd = fx_dial(&f);
    fx_send(&f, fd, STK_STR("GET /file HTTP/1.1\r\nHost: h\r\n\r\n"));
    fx_until(&f, !fx_recv(fd, &in, NULL));
    assert_int_equal(f.gones, 1);
    assert_true(in.n < 2000);
    close(fd);
}

static void the_peer_is_named(void **state)
{
    WITH(f, NULL);
    int tcp = fx_dial(&f), pair = fx_pair(&f);
    fx_send(&f, tcp, STK_STR("GET /hold HTTP/1.1\r\nHost: h\r\n\r\n"));
    fx_until(&f, f.held);
    assert_int_equal(strncmp(stk_http_peer(f.held), "127.0.0.1:", 10), 0);
    assert_int_equal(stk_http_peer_addr(f.held)->sa_family, AF_INET);
    close(tcp);
    fx_send(&f, pair, STK_STR("GET http://other/hold?a=b HTTP/1.1\r\nHost: h\r\n\r\n"));
    fx_until(&f, f.heads == 2);
    assert_string_equal(stk_http_peer(f.held), "unix");
    assert_null(stk_http_peer_addr(f.held));
    assert_true(stk_str_eq(stk_http_query(f.held), STK_STR("a=b")));
    close(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_answered_and_the_connection_kept),
        cmocka_unit_test(a_request_split_anywhere_reads_the_same),
        cmocka_unit_test(pipelined_requests_are_answered_in_order),
        cmocka_unit_test(a_waiting_pipelined_request_does_not_run_early),
        cmocka_unit_test(continue_is_sent_exactly_once),
        cmocka_unit_test(a_refused_upload_gets_its_answer_and_no_continue),
        cmocka_unit_test(an_unknown_expectation_is_417),
        cmocka_unit_test(an_oversized_upload_reads_413_and_its_follow_up_never_runs),
        cmocka_unit_test(a_chunked_body_over_the_limit_reads_413),
        cmocka_unit_test(malformed_requests_are_answered_and_the_connection_closed),
        cmocka_unit_test(an_endless_head_is_431),
        cmocka_unit_test(small_writes_leave_together),
        cmocka_unit_test(head_and_204_send_no_body_and_old_clients_read_to_the_end),
        cmocka_unit_test(an_answer_shorter_than_promised_is_cut_not_padded),
        cmocka_unit_test(headers_that_would_inject_become_500),
        cmocka_unit_test(a_file_goes_between_what_was_written_around_it),
        cmocka_unit_test(a_file_that_shrank_cuts_the_connection),
        cmocka_unit_test(the_peer_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
