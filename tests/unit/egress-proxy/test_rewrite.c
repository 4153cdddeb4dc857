#include "egress-proxy/rewrite.h"
#include "tests/unit/egress-proxy/unit.h"

static stk_head head;

static void parse_request(const char *text)
{
    stk_head_fault fault;
    const char *why = "";
    size_t scan = 0;
    if (stk_head_request(stk_str_of(text), NULL, &scan, &head, &fault, &why) <= 0)
        fail_msg("%s: %s", text, why);
}

static void parse_response(const char *text, bool to_head)
{
    stk_head_fault fault;
    const char *why = "";
    size_t scan = 0;
    if (stk_head_response(stk_str_of(text), NULL, &scan, to_head, false, &head, &fault, &why) <= 0)
        fail_msg("%s: %s", text, why);
}

static void a_request_goes_on_with_one_judged_host_and_no_hop_by_hop_field(void **state)
{
    static const struct {
        const char *in, *out;
    } rows[] = {
        {"GET http://a.example/x?y HTTP/1.1\r\nHost: evil.example\r\nAccept: */*\r\n\r\n",
         "GET /x?y HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\nVia: 1.1 stockade\r\nConnection: "
         "close\r\n\r\n"},
        {"GET http://a.example HTTP/1.0\r\n\r\n",
         "GET / HTTP/1.1\r\nHost: a.example\r\nVia: 1.1 stockade\r\nConnection: close\r\n\r\n"},
        {"OPTIONS http://a.example HTTP/1.1\r\nHost: x\r\n\r\n",
         "OPTIONS * HTTP/1.1\r\nHost: a.example\r\nContent-Length: 0\r\nVia: 1.1 stockade\r\nConnection: "
         "close\r\n\r\n"},
        {"GET http://a.example:8080?q HTTP/1.1\r\nHost: x\r\n\r\n",
         "GET /?q HTTP/1.1\r\nHost: a.example:8080\r\nVia: 1.1 stockade\r\nConnection: close\r\n\r\n"},
        {"POST http://a.example/ HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\n",
         "POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\nExpect: 100-continue\r\nVia: 1.1 "
         "stockade\r\n"
         "Connection: close\r\n\r\n"},
        {"PUT http://a.example/ HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\nTrailer: X\r\nTE: "
         "trailers\r\n\r\n",
         "PUT / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\nVia: 1.1 "
         "stockade\r\nConnection: close\r\n\r\n"},
        {"GET http://a.example/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, Cookie , HTTP2-Settings, "
         "Host\r\nUpgrade: h2c\r\n"
         "HTTP2-Settings: AA\r\nCookie: a=b\r\nCookies: c\r\nProxy-Authorization: s\r\nProxy-Connection: "
         "keep-alive\r\n"
         "Keep-Alive: 5\r\nX-Smokescreen-Role: r\r\nX-Upstream-Https-Proxy: p\r\n\r\n",
         "GET / HTTP/1.1\r\nHost: a.example\r\nCookies: c\r\nVia: 1.1 stockade\r\nConnection: close\r\n\r\n"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_target target;
        stk_err why;
        stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(4096);
        parse_request(rows[i].in);
        assert_int_equal(stk_target_read(&head, &target, &why), STK_R_ALLOWED);
        stk_request_rewrite(&head, &target, &out);
        assert_string_equal(out.p, rows[i].out);
    }
}

static void a_response_is_framed_by_us(void **state)
{
    static const struct {
        const char *in;
        stk_response_how how;
        stk_framing framing;
        const char *out;
    } rows[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close, X-Hop\r\nX-Hop: 1\r\nX: y\r\n\r\n",
         {.keep_alive = true},
         STK_FRAMING_LENGTH,
         "HTTP/1.1 200 OK\r\nX: y\r\nContent-Length: 5\r\nVia: 1.1 stockade\r\n\r\n"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
         {.keep_alive = true},
         STK_FRAMING_CHUNKED,
         "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nVia: 1.1 stockade\r\n\r\n"},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
         {.to_1_0 = true},
         STK_FRAMING_CLOSE,
         "HTTP/1.1 200 OK\r\nVia: 1.1 stockade\r\nConnection: close\r\n\r\n"},
        {"HTTP/1.0 200 Fine\r\n\r\n",
         {.keep_alive = true},
         STK_FRAMING_CHUNKED,
         "HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\nVia: 1.1 stockade\r\n\r\n"},
        {"HTTP/1.1 204 No Content\r\n\r\n",
         {.keep_alive = true},
         STK_FRAMING_NONE,
         "HTTP/1.1 204 No Content\r\nVia: 1.1 stockade\r\n\r\n"},
        {"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nETag: e\r\n\r\n",
         {.keep_alive = true},
         STK_FRAMING_NONE,
         "HTTP/1.1 304 Not Modified\r\nETag: e\r\nContent-Length: 9\r\nVia: 1.1 stockade\r\n\r\n"},
        {"HTTP/1.1 200 OK\r\nContent-Length: 77\r\n\r\n",
         {.to_head = true, .keep_alive = true},
         STK_FRAMING_NONE,
         "HTTP/1.1 200 OK\r\nContent-Length: 77\r\nVia: 1.1 stockade\r\n\r\n"},
        {"HTTP/1.1 404 \r\nContent-Length: 0\r\nProxy-Authenticate: Basic\r\nUpgrade: h2c\r\n\r\n",
         {.keep_alive = false},
         STK_FRAMING_NONE,
         "HTTP/1.1 404 \r\nContent-Length: 0\r\nVia: 1.1 stockade\r\nConnection: close\r\n\r\n"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(4096);
        parse_response(rows[i].in, rows[i].how.to_head);
        assert_int_equal(stk_response_rewrite(&head, &rows[i].how, &out), rows[i].framing);
        assert_string_equal(out.p, rows[i].out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_goes_on_with_one_judged_host_and_no_hop_by_hop_field),
        cmocka_unit_test(a_response_is_framed_by_us),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
