/* Tables of good and bad heads, and the parser's promise to decide the same however the bytes arrive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "proto/http/head.h"

typedef struct bad {
    const char *what;
    stk_str in;
    stk_head_fault fault;
} bad;

#define R(headers) STK_STR("GET / HTTP/1.1\r\nHost: h\r\n" headers "\r\n")
#define B(what, in, f)                                                                                       \
    {                                                                                                        \
        what, in, STK_HEAD_##f                                                                               \
    }

static const bad bad_requests[] = {
    B("empty line first", STK_STR("\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n"), REQUEST_LINE),
    B("HTTP/0.9", STK_STR("GET http://allowed.example/\r\n"), VERSION),
    B("HTTP/0.9 origin form", STK_STR("GET /\r\n"), VERSION),
    B("HTTP/2 preface", STK_STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), VERSION),
    B("HTTP/1.2", STK_STR("GET / HTTP/1.2\r\nHost: h\r\n\r\n"), VERSION),
    B("HTTP/3.0", STK_STR("GET / HTTP/3.0\r\nHost: h\r\n\r\n"), VERSION),
    B("HTTP/0.9 named", STK_STR("GET / HTTP/0.9\r\n\r\n"), VERSION),
    B("lower-case protocol", STK_STR("GET / http/1.1\r\nHost: h\r\n\r\n"), REQUEST_LINE),
    B("two digits of minor", STK_STR("GET / HTTP/1.10\r\nHost: h\r\n\r\n"), REQUEST_LINE),
    B("no minor", STK_STR("GET / HTTP/1\r\nHost: h\r\n\r\n"), REQUEST_LINE),
    B("only a word", STK_STR("GET\r\n\r\n"), REQUEST_LINE),
    B("TLS hello", STK_STR("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n"), REQUEST_LINE),
    B("two spaces before the target", STK_STR("GET  / HTTP/1.1\r\nHost: h\r\n\r\n"), REQUEST_LINE),
    B("two spaces after the target", STK_STR("GET /  HTTP/1.1\r\nHost: h\r\n\r\n"), REQUEST_LINE),
    B("blank at the end", STK_STR("GET / HTTP/1.1 \r\nHost: h\r\n\r\n"), REQUEST_LINE),
    B("blank at the start", STK_STR(" GET / HTTP/1.1\r\nHost: h\r\n\r\n"), REQUEST_LINE),
    B("tab between", STK_STR("GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n"), REQUEST_LINE),
    B("space inside the target", STK_STR("GET /a b HTTP/1.1\r\nHost: h\r\n\r\n"), REQUEST_LINE),
    B("method with a colon", STK_STR("GE:T / HTTP/1.1\r\nHost: h\r\n\r\n"), REQUEST_LINE),
    B("NUL in the method", STK_STR("GE\0T / HTTP/1.1\r\nHost: h\r\n\r\n"), REQUEST_LINE),
    B("NUL in the target", STK_STR("GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n"), REQUEST_LINE),
    B("raw UTF-8 in the target", STK_STR("GET /\xc3\xa9 HTTP/1.1\r\nHost: h\r\n\r\n"), REQUEST_LINE),
    B("fragment in the target", STK_STR("GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n"), TARGET),
    B("fragment before user-info",
      STK_STR("GET http://evil.example#@allowed.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n"), TARGET),
    B("backslash in the target",
      STK_STR("GET http://evil.example\\@allowed.example/ HTTP/1.1\r\nHost: a\r\n\r\n"), TARGET),
    B("relative target", STK_STR("GET a/b HTTP/1.1\r\nHost: h\r\n\r\n"), TARGET),
    B("authority for GET", STK_STR("GET allowed.example:80 HTTP/1.1\r\nHost: h\r\n\r\n"), TARGET),
    B("asterisk for GET", STK_STR("GET * HTTP/1.1\r\nHost: h\r\n\r\n"), TARGET),
    B("scheme without slashes", STK_STR("GET http:allowed.example/ HTTP/1.1\r\nHost: h\r\n\r\n"), SCHEME),
    B("scheme with one slash", STK_STR("GET http:/allowed.example/ HTTP/1.1\r\nHost: h\r\n\r\n"), SCHEME),
    B("escape in the target", STK_STR("GET http://e.example/\x1b[2J HTTP/1.1\r\nHost: h\r\n\r\n"),
      REQUEST_LINE),
    B("asterisk for an unknown method", STK_STR("PRI * HTTP/1.1\r\nHost: h\r\n\r\n"), TARGET),
    B("no scheme", STK_STR("GET ://x/ HTTP/1.1\r\nHost: h\r\n\r\n"), TARGET),
    B("CONNECT with a path", STK_STR("CONNECT /x HTTP/1.1\r\nHost: h\r\n\r\n"), TARGET),
    B("CONNECT with a scheme", STK_STR("CONNECT https://a.example:443 HTTP/1.1\r\nHost: h\r\n\r\n"), TARGET),
    B("CONNECT with user-info", STK_STR("CONNECT user:pw@allowed.example:443 HTTP/1.1\r\nHost: h\r\n\r\n"),
      TARGET),
    B("bare LF after the request line", STK_STR("GET / HTTP/1.1\nHost: h\n\n"), FRAMING),
    B("bare LF after a field", STK_STR("GET / HTTP/1.1\r\nHost: h\nX: a\r\n\r\n"), FRAMING),
    B("bare LF as the empty line", STK_STR("GET / HTTP/1.1\r\nHost: h\r\n\n"), FRAMING),
    B("bare CR in a value", R("X: a\rb\r\n"), FRAMING),
    B("bare CR in the target", STK_STR("GET /\r HTTP/1.1\r\nHost: h\r\n\r\n"), REQUEST_LINE),
    B("two CRs", STK_STR("GET / HTTP/1.1\r\r\nHost: h\r\n\r\n"), REQUEST_LINE),
    B("CR CR LF after a value", R("X: a\r\r\n"), FRAMING),
    B("NUL in a value", R("X: a\0b\r\n"), FRAMING),
    B("DEL in a value", R("X: a\x7f\r\n"), FRAMING),
    B("escape in a value", R("X: a\x1b[0m\r\n"), FRAMING),
    B("vertical tab before chunked",
      R("Transfer-Encoding: \x0b"
        "chunked\r\n"),
      FRAMING),
    B("folded by a tab", R("X: a\r\n\tTransfer-Encoding: chunked\r\n"), FRAMING),
    B("folded by a space", R("X: a\r\n b\r\n"), FRAMING),
    B("first field is folded", STK_STR("GET / HTTP/1.1\r\n Host: h\r\nHost: h\r\n\r\n"), FRAMING),
    B("space before a colon", R("Content-Length : 5\r\n"), FRAMING),
    B("tab before a colon", R("Transfer-Encoding\t: chunked\r\n"), FRAMING),
    B("no colon", R("Nonsense\r\n"), FIELD),
    B("no name", R(": x\r\n"), FIELD),
    B("blank in a name", R("A B: x\r\n"), FIELD),
    B("slash in a name", R("A/B: x\r\n"), FIELD),
    B("UTF-8 in a name", R("\xc3\xa9: x\r\n"), FIELD),
    B("NUL in a name", R("A\0: x\r\n"), FIELD),
    B("no Host", STK_STR("GET http://allowed.example/ HTTP/1.1\r\n\r\n"), FIELD),
    B("two Hosts", R("Host: h\r\n"), HOST),
    B("two Hosts, other case", R("hOsT: other\r\n"), HOST),
    B("empty Host", STK_STR("GET / HTTP/1.1\r\nHost:\r\n\r\n"), HOST),
    B("blank Host", STK_STR("GET / HTTP/1.1\r\nHost: \t \r\n\r\n"), HOST),
    B("empty then real Host", STK_STR("GET / HTTP/1.1\r\nHost: \r\nHost: h\r\n\r\n"), HOST),
    B("two names in a Host", STK_STR("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n"), HOST),
    B("user-info in Host", STK_STR("GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"), HOST),
    B("path in Host", STK_STR("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"), HOST),
    B("UTF-8 in Host",
      STK_STR("GET / HTTP/1.1\r\nHost: b\xc3\xbc"
              "cher.example\r\n\r\n"),
      HOST),
    B("length and coding", R("Content-Length: 6\r\nTransfer-Encoding: chunked\r\n"), FRAMING),
    B("coding and length, odd case", R("TRANSFER-encoding: ChUnKeD\r\ncontent-LENGTH: 4\r\n"), FRAMING),
    B("two lengths", R("Content-Length: 0\r\nContent-Length: 60\r\n"), FRAMING),
    B("two equal lengths", R("Content-Length: 5\r\nContent-Length: 5\r\n"), FRAMING),
    B("a list of lengths", R("Content-Length: 5, 6\r\n"), FRAMING),
    B("a list of equal lengths", R("Content-Length: 5, 5\r\n"), FRAMING),
    B("plus sign", R("Content-Length: +5\r\n"), FRAMING),
    B("minus sign", R("Content-Length: -5\r\n"), FRAMING),
    B("hexadecimal length", R("Content-Length: 0x5\r\n"), FRAMING),
    B("length with a blank", R("Content-Length: 5 0\r\n"), FRAMING),
    B("length with letters", R("Content-Length: 5a\r\n"), FRAMING),
    B("empty length", R("Content-Length:\r\n"), FRAMING),
    B("leading zero", R("Content-Length: 05\r\n"), FRAMING),
    B("length with a point", R("Content-Length: 5.0\r\n"), FRAMING),
    B("length over 64 bits", R("Content-Length: 18446744073709551621\r\n"), FRAMING),
    B("length over 63 bits", R("Content-Length: 9223372036854775808\r\n"), FRAMING),
    B("chunked not last", R("Transfer-Encoding: chunked, gzip\r\n"), FRAMING),
    B("unknown coding", R("Transfer-Encoding: xchunked\r\n"), FRAMING),
    B("identity", R("Transfer-Encoding: identity\r\n"), FRAMING),
    B("identity with a length", R("Transfer-Encoding: identity\r\nContent-Length: 5\r\n"), FRAMING),
    B("empty coding", R("Transfer-Encoding:\r\n"), FRAMING),
    B("two chunked", R("Transfer-Encoding: chunked, chunked\r\n"), FRAMING),
    B("chunked with a parameter", R("Transfer-Encoding: chunked;a=b\r\n"), FRAMING),
    B("chunked in quotes", R("Transfer-Encoding: \"chunked\"\r\n"), FRAMING),
    B("two lines of coding", R("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"), FRAMING),
    B("two lines of chunked", R("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"), FRAMING),
    B("gzip under chunked", R("Transfer-Encoding: gzip, chunked\r\n"), CODING),
    B("coding in HTTP/1.0", STK_STR("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), FRAMING),
};

static ptrdiff_t request(stk_str in, const stk_head_limits *limits, stk_head *head, stk_head_fault *fault)
{
    const char *why = NULL;
    size_t scan = 0;
    ptrdiff_t n = stk_head_request(in, limits, &scan, head, fault, &why);
    if (n < 0)
        assert_non_null(why);
    return n;
}

static void odd_requests_are_refused(void **state)
{
    for (size_t i = 0; i < STK_COUNT(bad_requests); i++) {
        const bad *row = &bad_requests[i];
        stk_head head;
        stk_head_fault fault = STK_HEAD_OK;
        ptrdiff_t n = request(row->in, NULL, &head, &fault);
        if (n != -1 || fault != row->fault)
            fail_msg("%s: %td, fault %d instead of %d", row->what, n, fault, row->fault);
    }
}

/* Fed byte by byte the same decision comes, with no more bytes than in one piece. */
static void odd_requests_are_refused_byte_by_byte(void **state)
{
    for (size_t i = 0; i < STK_COUNT(bad_requests); i++) {
        const bad *row = &bad_requests[i];
        stk_head head;
        stk_head_fault fault = STK_HEAD_OK;
        const char *why;
        size_t scan = 0;
        ptrdiff_t n = 0;
        for (size_t k = 0; k <= row->in.n && n == 0; k++)
            n = stk_head_request(stk_str_n(row->in.p, k), NULL, &scan, &head, &fault, &why);
        if (n != -1 || fault != row->fault)
            fail_msg("%s: %td, fault %d instead of %d", row->what, n, fault, row->fault);
    }
}

typedef struct good {
    const char *what;
    stk_str in;
    stk_framing framing;
    uint64_t length;
    bool keep_alive;
} good;

static const good good_requests[] = {
    {"plain", R(""), STK_FRAMING_NONE, 0, true},
    {"HTTP/1.0", STK_STR("GET / HTTP/1.0\r\n\r\n"), STK_FRAMING_NONE, 0, false},
    {"HTTP/1.0 kept", STK_STR("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"), STK_FRAMING_NONE, 0, true},
    {"closing", R("Connection: close\r\n"), STK_FRAMING_NONE, 0, false},
    {"closing in a list", R("Connection: x, CLOSE\r\n"), STK_FRAMING_NONE, 0, false},
    {"closing wins", R("Connection: keep-alive\r\nConnection: close\r\n"), STK_FRAMING_NONE, 0, false},
    {"length", R("Content-Length: 5\r\n"), STK_FRAMING_LENGTH, 5, true},
    {"length in blanks", R("Content-Length: \t 5 \t\r\n"), STK_FRAMING_LENGTH, 5, true},
    {"no blank", R("Content-Length:5\r\n"), STK_FRAMING_LENGTH, 5, true},
    {"longest", R("Content-Length: 9223372036854775807\r\n"), STK_FRAMING_LENGTH, INT64_MAX, true},
    {"length nought", R("Content-Length: 0\r\n"), STK_FRAMING_NONE, 0, true},
    {"chunked", R("Transfer-Encoding: chunked\r\n"), STK_FRAMING_CHUNKED, 0, true},
    {"chunked, odd case", R("tRANSFER-eNCODING:   cHUNKED  \r\n"), STK_FRAMING_CHUNKED, 0, true},
    {"empty value", R("X:\r\n"), STK_FRAMING_NONE, 0, true},
    {"Latin-1 value", R("X: caf\xe9\r\n"), STK_FRAMING_NONE, 0, true},
    {"tab in a value", R("X: a\tb\r\n"), STK_FRAMING_NONE, 0, true},
    {"token characters", R("!#$%&'*+-.^_`|~1a: x\r\n"), STK_FRAMING_NONE, 0, true},
    {"CONNECT", STK_STR("CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n"), STK_FRAMING_NONE, 0,
     true},
    {"CONNECT a literal", STK_STR("CONNECT [::1%25x]:80 HTTP/1.1\r\nHost: [::1%25x]:80\r\n\r\n"),
     STK_FRAMING_NONE, 0, true},
    {"absolute", STK_STR("GET http://a.example/x?y HTTP/1.1\r\nHost: a.example\r\n\r\n"), STK_FRAMING_NONE, 0,
     true},
    {"OPTIONS *", STK_STR("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n"), STK_FRAMING_NONE, 0, true},
    {"unknown method", STK_STR("M-SEARCH /x HTTP/1.1\r\nHost: h\r\n\r\n"), STK_FRAMING_NONE, 0, true},
    {"pipelined", STK_STR("GET / HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\n"), STK_FRAMING_NONE, 0, true},
};

static void right_requests_are_read_however_they_arrive(void **state)
{
    for (size_t i = 0; i < STK_COUNT(good_requests); i++) {
        const good *row = &good_requests[i];
        stk_head head;
        stk_head_fault fault;
        const char *why = "", *end = memmem(row->in.p, row->in.n, "\r\n\r\n", 4);
        size_t whole = (size_t)(end - row->in.p) + 4;
        for (size_t cut = 0; cut <= whole; cut++) {
            size_t scan = 0;
            ptrdiff_t n = stk_head_request(stk_str_n(row->in.p, cut), NULL, &scan, &head, &fault, &why);
            assert_int_equal(n, cut < whole ? 0 : whole);
            n = stk_head_request(row->in, NULL, &scan, &head, &fault, &why);
            if (n != (ptrdiff_t)whole)
                fail_msg("%s cut at %zu: %td %s", row->what, cut, n, why);
            assert_int_equal(head.framing, row->framing);
            assert_int_equal(head.length, row->length);
            assert_int_equal(head.keep_alive, row->keep_alive);
        }
    }
}

static void slices_name_the_parts(void **state)
{
    stk_head head;
    stk_head_fault fault;
    stk_str in = STK_STR("POST /a%20b?c=d HTTP/1.1\r\nHost: h:80\r\nX-One:  two words \r\nx-one: b\r\n"
                         "Connection: Upgrade, x\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\nabc");
    assert_int_equal(request(in, NULL, &head, &fault), in.n - 3);
    assert_true(stk_str_eq(head.method, STK_STR("POST")));
    assert_true(stk_str_eq(head.target, STK_STR("/a%20b?c=d")));
    assert_true(stk_str_eq(head.host, STK_STR("h:80")));
    assert_int_equal(head.minor, 1);
    assert_int_equal(head.nfields, 6);
    assert_true(stk_str_eq(stk_head_get(&head, "X-ONE")->value, STK_STR("two words")));
    assert_null(stk_head_get(&head, "X-On"));
    assert_true(stk_head_has_token(&head, "connection", "X"));
    assert_false(stk_head_has_token(&head, "connection", "grade"));
    assert_true(head.upgrade && head.expect_continue && !head.expect_other);
}

static void an_expectation_without_a_body_is_none(void **state)
{
    stk_head head;
    stk_head_fault fault;
    assert_true(request(R("Expect: 100-continue\r\n"), NULL, &head, &fault) > 0);
    assert_false(head.expect_continue);
    assert_true(request(R("Expect: a-pony\r\n"), NULL, &head, &fault) > 0);
    assert_true(head.expect_other);
}

static void limits_of_bytes_and_lines_hold(void **state)
{
    char *big = malloc(100000);
    stk_head head;
    stk_head_fault fault = STK_HEAD_OK;
    int n = snprintf(big, 100000, "GET / HTTP/1.1\r\nHost: h\r\nX: ");
    memset(big + n, 'a', (size_t)(100000 - n));
    assert_int_equal(request(stk_str_n(big, 16383), NULL, &head, &fault), 0);
    assert_int_equal(request(stk_str_n(big, 16384), NULL, &head, &fault), -1);
    assert_int_equal(fault, STK_HEAD_TOO_LARGE);
    memcpy(big + 16380, "\r\n\r\n", 4);
    assert_int_equal(request(stk_str_n(big, 100000), NULL, &head, &fault), 16384);
    memcpy(big + 16380, "a\r\n\r\n", 5);
    assert_int_equal(request(stk_str_n(big, 100000), NULL, &head, &fault), -1);
    assert_int_equal(fault, STK_HEAD_TOO_LARGE);

    stk_head_limits few = {.bytes = 4096, .fields = 3};
    assert_true(request(R("a: b\r\na: b\r\n"), &few, &head, &fault) > 0);
    assert_int_equal(request(R("a: b\r\na: b\r\na: b\r\n"), &few, &head, &fault), -1);
    assert_int_equal(fault, STK_HEAD_TOO_LARGE);
    assert_int_equal(stk_head_fault_status(fault), 431);
    assert_string_equal(stk_head_fault_text(fault), "head_too_large");

    n = snprintf(big, 100000, "GET / HTTP/1.1\r\nHost: h\r\n");
    for (int i = 0; i < 99; i++)
        n += snprintf(big + n, (size_t)(100000 - n), "a: b\r\n");
    assert_true(request(stk_str_n(strcat(big, "\r\n"), (size_t)n + 2), NULL, &head, &fault) > 0);
    assert_int_equal(head.nfields, STK_HEAD_MAX_FIELDS);
    snprintf(big + n, 100, "a: b\r\n\r\n");
    assert_int_equal(request(stk_str_n(big, (size_t)n + 8), NULL, &head, &fault), -1);
    free(big);
}

typedef struct answer {
    stk_str in;
    bool to_head, to_connect;
    int status;
    stk_framing framing;
    stk_head_fault fault;
} answer;

#define A(line, headers) STK_STR(line "\r\n" headers "\r\n")
static const answer answers[] = {
    {A("HTTP/1.1 200 OK", "Content-Length: 4\r\n"), false, false, 200, STK_FRAMING_LENGTH, 0},
    {A("HTTP/1.1 200 OK", "Content-Length: 0\r\n"), false, false, 200, STK_FRAMING_NONE, 0},
    {A("HTTP/1.1 200 OK", "Transfer-Encoding: chunked\r\n"), false, false, 200, STK_FRAMING_CHUNKED, 0},
    {A("HTTP/1.1 200 OK", ""), false, false, 200, STK_FRAMING_CLOSE, 0},
    {A("HTTP/1.0 200 OK", ""), false, false, 200, STK_FRAMING_CLOSE, 0},
    {A("HTTP/1.1 200", ""), false, false, 200, STK_FRAMING_CLOSE, 0},
    {A("HTTP/1.1 200 ", ""), false, false, 200, STK_FRAMING_CLOSE, 0},
    {A("HTTP/1.1 200 OK", "Content-Length: 4\r\n"), true, false, 200, STK_FRAMING_NONE, 0},
    {A("HTTP/1.1 200 OK", ""), false, true, 200, STK_FRAMING_NONE, 0},
    {A("HTTP/1.1 407 No", "Content-Length: 4\r\n"), false, true, 407, STK_FRAMING_LENGTH, 0},
    {A("HTTP/1.1 204 No Content", "Content-Length: 4\r\n"), false, false, 204, STK_FRAMING_NONE, 0},
    {A("HTTP/1.1 304 Not Modified", "Content-Length: 4\r\n"), false, false, 304, STK_FRAMING_NONE, 0},
    {A("HTTP/1.1 100 Continue", ""), false, false, 100, STK_FRAMING_NONE, 0},
    {A("HTTP/1.1 101 Switching", ""), false, false, 101, STK_FRAMING_NONE, 0},
    {A("HTTP/2 200 OK", ""), false, false, 0, 0, STK_HEAD_STATUS_LINE},
    {A("HTTP/2.0 200 OK", ""), false, false, 0, 0, STK_HEAD_VERSION},
    {A("ICY 200 OK", ""), false, false, 0, 0, STK_HEAD_STATUS_LINE},
    {A("HTTP/1.1 20 OK", ""), false, false, 0, 0, STK_HEAD_STATUS_LINE},
    {A("HTTP/1.1 2000 OK", ""), false, false, 0, 0, STK_HEAD_STATUS_LINE},
    {A("HTTP/1.1 -20 OK", ""), false, false, 0, 0, STK_HEAD_STATUS_LINE},
    {A("HTTP/1.1 099 OK", ""), false, false, 0, 0, STK_HEAD_STATUS_LINE},
    {A("HTTP/1.1 600 OK", ""), false, false, 0, 0, STK_HEAD_STATUS_LINE},
    {A("HTTP/1.1  200 OK", ""), false, false, 0, 0, STK_HEAD_STATUS_LINE},
    {A("HTTP/1.1 200 O\0K", ""), false, false, 0, 0, STK_HEAD_STATUS_LINE},
    {A("HTTP/1.1 200 OK", "Content-Length: 4\r\nContent-Length: 4\r\n"), false, false, 0, 0,
     STK_HEAD_FRAMING},
    {A("HTTP/1.1 200 OK", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n"), false, false, 0, 0,
     STK_HEAD_FRAMING},
    {A("HTTP/1.0 200 OK", "Transfer-Encoding: chunked\r\n"), false, false, 0, 0, STK_HEAD_FRAMING},
    {A("HTTP/1.1 200 OK", "Content-Length: -1\r\n"), true, false, 0, 0, STK_HEAD_FRAMING},
    {A("HTTP/1.1 200 OK", "X: a\r\n b\r\n"), false, false, 0, 0, STK_HEAD_FRAMING},
    {STK_STR("HTTP/1.1 200 OK\nA: b\n\n"), false, false, 0, 0, STK_HEAD_FRAMING},
    {STK_STR("SSH-2.0-OpenSSH_9.2\r\n"), false, false, 0, 0, STK_HEAD_STATUS_LINE},
};

static void answers_are_judged(void **state)
{
    for (size_t i = 0; i < STK_COUNT(answers); i++) {
        const answer *row = &answers[i];
        stk_head head;
        stk_head_fault fault = STK_HEAD_OK;
        const char *why = "";
        size_t scan = 0;
        ptrdiff_t n =
            stk_head_response(row->in, NULL, &scan, row->to_head, row->to_connect, &head, &fault, &why);
        if (fault != row->fault || n != (row->fault ? -1 : (ptrdiff_t)row->in.n))
            fail_msg("%.*s: %td, fault %d (%s)", (int)row->in.n, row->in.p, n, fault, why);
        if (row->fault)
            continue;
        assert_int_equal(head.status, row->status);
        assert_int_equal(head.framing, row->framing);
        if (head.framing == STK_FRAMING_CLOSE)
            assert_false(head.keep_alive);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(odd_requests_are_refused),
        cmocka_unit_test(odd_requests_are_refused_byte_by_byte),
        cmocka_unit_test(right_requests_are_read_however_they_arrive),
        cmocka_unit_test(slices_name_the_parts),
        cmocka_unit_test(an_expectation_without_a_body_is_none),
        cmocka_unit_test(limits_of_bytes_and_lines_hold),
        cmocka_unit_test(answers_are_judged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
