#include "tests/unit/message/unit.h"
#include "proto/message/egress.h"

static stk_egress_record denied(void)
{
    return (stk_egress_record){.seq = 1,
                               .kind = "decision",
                               .time = {1767323045678000000},
                               .run = "run-01hf7yat00k3v5w6x7y8z9a1b2",
                               .host = "evil.example",
                               .port = 443,
                               .verdict = "deny",
                               .reason = "host_not_allowed",
                               .method = "CONNECT"};
}

static void a_record_has_every_documented_member(void **state)
{
    stk_egress_record rec = denied();
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(65536);
    assert_int_equal(stk_egress_encode(&rec, &out, NULL), 0);
    assert_text(stk_buf_view(&out), STK_STR("{\"seq\":1,\"kind\":\"decision\",\"time\":\"2026-01-02T03:04:05."
                                            "678Z\",\"run\":\"run-01hf7yat00k3v5w6x7y8z9a1b2\","
                                            "\"host\":\"evil.example\",\"port\":443,\"verdict\":\"deny\","
                                            "\"reason\":\"host_not_allowed\",\"rule\":\"\","
                                            "\"policy_version\":0,\"address\":\"\",\"method\":\"CONNECT\","
                                            "\"bytes_in\":0,\"bytes_out\":0,\"duration_ms\":0}"));
}

static void a_malformed_request_is_a_record_too(void **state)
{
    stk_egress_record rec = denied(), back;
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(65536);
    memset(rec.host, 0, sizeof(rec.host));
    memset(rec.method, 0, sizeof(rec.method));
    memset(rec.run, 0, sizeof(rec.run));
    rec.port = 0;
    assert_int_equal(stk_egress_encode(&rec, &out, NULL), 0);
    assert_int_equal(stk_egress_decode(stk_buf_view(&out), &back, NULL), 0);
    assert_memory_equal(&rec, &back, sizeof(rec));
}

static void set(char *field, size_t size, const char *text)
{
    memset(field, 0, size);
    stk_str_copy(stk_str_of(text), field, size);
}
#define SET(m, text) set(rec.m, sizeof(rec.m), text)

static void a_record_that_lies_is_neither_written_nor_read(void **state)
{
    static const struct {
        const char *what, *pointer;
        stk_code code;
    } rows[] = {{"kind", "/kind", STK_E_FIELD},      {"verdict", "/verdict", STK_E_FIELD},
                {"reason", "/reason", STK_E_FIELD},  {"no reason", "/reason", STK_E_FIELD},
                {"run", "/run", STK_E_FIELD},        {"host", "/host", STK_E_FIELD},
                {"rule", "/rule", STK_E_FIELD},      {"address", "/address", STK_E_FIELD},
                {"method", "/method", STK_E_FIELD},  {"close", "/open_seq", STK_E_MISSING_FIELD},
                {"later", "/open_seq", STK_E_FIELD}, {"summary", "/count", STK_E_MISSING_FIELD}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_egress_record rec = denied();
        const char *what = rows[i].what;
        if (strcmp(what, "kind") == 0)
            SET(kind, "open");
        else if (strcmp(what, "verdict") == 0)
            SET(verdict, "maybe");
        else if (strcmp(what, "reason") == 0)
            SET(reason, "Host not");
        else if (strcmp(what, "no reason") == 0)
            SET(reason, "");
        else if (strcmp(what, "run") == 0)
            SET(run, "asg-01hf7yat00k3v5w6x7y8z9a1b2");
        else if (strcmp(what, "host") == 0)
            SET(host, "a\nb");
        else if (strcmp(what, "rule") == 0)
            SET(rule, "a\x7f");
        else if (strcmp(what, "address") == 0)
            SET(address, "a\x1b[0m");
        else if (strcmp(what, "method") == 0)
            SET(method, "G\xff");
        else if (strcmp(what, "close") == 0 || strcmp(what, "later") == 0)
            SET(kind, "close");
        else
            SET(kind, "summary");
        if (strcmp(what, "later") == 0)
            rec.open_seq = 1;
        stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(65536);
        stk_err err = {0};
        assert_error(stk_egress_encode(&rec, &out, &err), &err, rows[i].code, rows[i].pointer, what);
        stk_jw w;
        stk_jw_init(&w, &out);
        stk_egress_write(&w, &rec);
        stk_egress_record back;
        if (strcmp(what, "method") != 0) /* the writer repaired what was not UTF-8 */
            assert_error(stk_egress_decode(stk_buf_view(&out), &back, &err), &err, rows[i].code,
                         rows[i].pointer, what);
    }
}

static void numbers_are_bounded(void **state)
{
    static const struct {
        const char *was, *is, *pointer;
    } rows[] = {{"\"seq\":2", "\"seq\":0", "/seq"},
                {"\"port\":443", "\"port\":65536", "/port"},
                {"\"port\":443", "\"port\":-1", "/port"},
                {"\"bytes_in\":0", "\"bytes_in\":-1", "/bytes_in"},
                {"\"bytes_out\":0", "\"bytes_out\":9223372036854775808", "/bytes_out"},
                {"\"duration_ms\":0", "\"duration_ms\":-1", "/duration_ms"},
                {"\"duration_ms\":0", "\"duration_ms\":9223372036855", "/duration_ms"},
                {"\"duration_ms\":0", "\"duration_ms\":0.5", "/duration_ms"},
                {"\"policy_version\":7", "\"policy_version\":-7", "/policy_version"}};
    stk_str text = golden_text("egress-record-deny");
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        const char *at = memmem(text.p, text.n, rows[i].was, strlen(rows[i].was));
        assert_non_null(at);
        stk_buf edited STK_AUTO(stk_buf_done) = STK_BUF(65536);
        stk_buf_add(&edited, text.p, (size_t)(at - text.p));
        stk_buf_text(&edited, rows[i].is);
        stk_buf_text(&edited, at + strlen(rows[i].was));
        stk_egress_record rec;
        stk_err err = {0};
        assert_error(stk_egress_decode(stk_buf_view(&edited), &rec, &err), &err, STK_E_FIELD, rows[i].pointer,
                     rows[i].is);
    }
    free((void *)text.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_has_every_documented_member),
        cmocka_unit_test(a_malformed_request_is_a_record_too),
        cmocka_unit_test(a_record_that_lies_is_neither_written_nor_read),
        cmocka_unit_test(numbers_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
