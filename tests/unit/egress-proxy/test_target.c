#include "tests/unit/egress-proxy/unit.h"

static stk_reason target_of(const char *text, stk_target *target, stk_err *why)
{
    static stk_head head;
    stk_head_fault fault;
    const char *detail;
    size_t scan = 0;
    ptrdiff_t used = stk_head_request(stk_str_of(text), NULL, &scan, &head, &fault, &detail);
    if (used < 0)
        return stk_target_fault(fault);
    assert_int_equal(used, strlen(text));
    return stk_target_read(&head, target, why);
}

static void a_target_becomes_one_canonical_host_and_port(void **state)
{
    static const struct {
        const char *line, *host;
        int port;
        const char *path;
        bool literal;
    } rows[] = {
        {"CONNECT a.example:443", "a.example", 443, "", false},
        {"CONNECT A.Example.:8443", "a.example", 8443, "", false},
        {"CONNECT xn--bcher-kva.example:443", "xn--bcher-kva.example", 443, "", false},
        {"CONNECT _dmarc.a_b.example:1", "_dmarc.a_b.example", 1, "", false},
        {"CONNECT 127.1:80", "127.1", 80, "", true},
        {"CONNECT 0x7f.0.0.1:65535", "0x7f.0.0.1", 65535, "", true},
        {"CONNECT [::ffff:127.0.0.1]:80", "[::ffff:127.0.0.1]", 80, "", true},
        {"GET http://a.example", "a.example", 80, "", false},
        {"GET http://a.example?q=1", "a.example", 80, "?q=1", false},
        {"GET http://a.example:8080/x/../y?q=http://b/", "a.example", 8080, "/x/../y?q=http://b/", false},
        {"GET HTTP://a.example/", "a.example", 80, "/", false},
        {"OPTIONS http://a.example", "a.example", 80, "", false},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        char text[512];
        stk_target target;
        stk_err why;
        snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: x\r\n\r\n", rows[i].line);
        if (target_of(text, &target, &why) != STK_R_ALLOWED)
            fail_msg("%s: %s", rows[i].line, why.detail);
        assert_string_equal(target.host, rows[i].host);
        assert_int_equal(target.port, rows[i].port);
        assert_int_equal(target.literal, rows[i].literal);
        assert_int_equal(target.path.n, strlen(rows[i].path));
        assert_memory_equal(target.path.p ? target.path.p : "", rows[i].path, target.path.n);
    }
}

static void whatever_else_has_a_reason_of_its_own(void **state)
{
    static const struct {
        const char *line;
        stk_reason reason;
    } rows[] = {
        {"CONNECT a.example", STK_R_BAD_PORT},
        {"CONNECT a.example:", STK_R_BAD_PORT},
        {"CONNECT a.example:0", STK_R_BAD_PORT},
        {"CONNECT a.example:65536", STK_R_BAD_PORT},
        {"CONNECT a.example:00443", STK_R_BAD_PORT},
        {"CONNECT a.example:+443", STK_R_BAD_PORT},
        {"CONNECT a.example:443:b.example", STK_R_BAD_PORT},
        {"CONNECT :443", STK_R_BAD_HOST},
        {"CONNECT ::1:80", STK_R_BAD_HOST},
        {"CONNECT [::1:80", STK_R_BAD_HOST},
        {"CONNECT [::1]x:80", STK_R_BAD_HOST},
        {"CONNECT [::1%25a]:80", STK_R_BAD_HOST},
        {"CONNECT [a.example]:80", STK_R_BAD_HOST},
        {"CONNECT a..example:80", STK_R_BAD_HOST},
        {"CONNECT a%2eexample:80", STK_R_BAD_HOST},
        {"CONNECT u@a.example:80", STK_R_BAD_TARGET},
        {"GET http://u:p@a.example/", STK_R_BAD_TARGET},
        {"GET http://a.example:/", STK_R_BAD_PORT},
        {"GET http:///x", STK_R_BAD_HOST},
        {"GET http://a.example#b/", STK_R_BAD_TARGET},
        {"GET https://a.example/", STK_R_BAD_SCHEME},
        {"GET ws://a.example/", STK_R_BAD_SCHEME},
        {"GET /", STK_R_BAD_TARGET},
        {"OPTIONS *", STK_R_BAD_TARGET},
        {"CONNECT b\xc3\xbc"
         "cher.example:443",
         STK_R_BAD_REQUEST_LINE},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        char text[512];
        stk_target target;
        stk_err why;
        snprintf(text, sizeof(text), "%s HTTP/1.1\r\nHost: x\r\n\r\n", rows[i].line);
        stk_reason got = target_of(text, &target, &why);
        if (got != rows[i].reason)
            fail_msg("%s: %s, not %s", rows[i].line, stk_reason_code(got), stk_reason_code(rows[i].reason));
    }
}

static void a_connect_with_a_body_is_refused(void **state)
{
    stk_target target;
    stk_err why;
    assert_int_equal(
        target_of("CONNECT a.example:443 HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n", &target, &why),
        STK_R_BAD_FRAMING);
    assert_int_equal(
        target_of("CONNECT a.example:443 HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", &target, &why),
        STK_R_ALLOWED);
}

static void every_fault_of_a_head_has_a_reason_that_refuses(void **state)
{
#define X(sym, text, status)                                                                                 \
    assert_int_equal(stk_reason_kind_of(stk_target_fault(STK_HEAD_##sym)) == STK_REASON_DENY ||              \
                         STK_HEAD_##sym == STK_HEAD_STATUS_LINE,                                             \
                     1);
    STK_HEAD_FAULTS(X)
#undef X
}

static void reasons_are_unique_and_named_as_records_want_them(void **state)
{
    for (int i = 0; i < STK_REASON_COUNT; i++) {
        const char *code = stk_reason_code((stk_reason)i);
        assert_int_equal(stk_reason_of(code), i);
        assert_true(strlen(code) < 32 && strspn(code, "abcdefghijklmnopqrstuvwxyz_") == strlen(code));
        bool answered = stk_reason_kind_of((stk_reason)i) != STK_REASON_END;
        assert_int_equal(answered, stk_reason_status((stk_reason)i) >= 200);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_target_becomes_one_canonical_host_and_port),
        cmocka_unit_test(whatever_else_has_a_reason_of_its_own),
        cmocka_unit_test(a_connect_with_a_body_is_refused),
        cmocka_unit_test(every_fault_of_a_head_has_a_reason_that_refuses),
        cmocka_unit_test(reasons_are_unique_and_named_as_records_want_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
