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
    assert_string_equal(back.host, "");
    assert_string_equal(back.method, "");
    assert_string_equal(back.run, "");
    assert_string_equal(back.reason, rec.reason);
    assert_int_equal(back.port, 0);
}

static void a_record_that_lies_is_neither_written_nor_read(void **state)
{
    static const struct {
        const char *what, *pointer;
        stk_code code;
        size_t offset;
        const char *text;
    } rows[] = {
        {"another kind", "/kind", STK_E_FIELD, offsetof(stk_egress_record, kind), "open"},
        {"another verdict", "/verdict", STK_E_FIELD, offsetof(stk_egress_record, verdict), "maybe"},
        {"a reason in words", "/reason", STK_E_FIELD, offsetof(stk_egress_record, reason), "Host not"},
        {"no reason", "/reason", STK_E_FIELD, offsetof(stk_egress_record, reason), ""},
        {"no run id", "/run", STK_E_FIELD, offsetof(stk_egress_record, run),
         "asg-01hf7yat00k3v5w6x7y8z9a1b2"},
        {"a close of nothing", "/open_seq", STK_E_MISSING_FIELD, offsetof(stk_egress_record, kind), "close"},
        {"a summary of nothing", "/count", STK_E_MISSING_FIELD, offsetof(stk_egress_record, kind), "summary"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_egress_record rec = denied(), back;
        stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(65536);
        stk_err err = {0};
        stk_jw w;
        memcpy((char *)&rec + rows[i].offset, rows[i].text, strlen(rows[i].text) + 1);
        assert_error(stk_egress_encode(&rec, &out, &err), &err, rows[i].code, rows[i].pointer, rows[i].what);
        stk_jw_init(&w, &out);
        stk_egress_write(&w, &rec);
        assert_error(stk_egress_decode(stk_buf_view(&out), &back, &err), &err, rows[i].code, rows[i].pointer,
                     rows[i].what);
    }
}

static void a_close_comes_after_its_decision(void **state)
{
    stk_egress_record rec = denied();
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(65536);
    stk_err err = {0};
    memcpy(rec.kind, "close", 6);
    rec.open_seq = rec.seq;
    assert_error(stk_egress_encode(&rec, &out, &err), &err, STK_E_FIELD, "/open_seq", "closes itself");
}

static void what_a_sandbox_sent_never_costs_a_record(void **state)
{
    static const struct {
        const char *raw, *clean;
    } rows[] = {{"a\nb", "a?b"},
                {"\x1b[2Jx\x7f", "?[2Jx?"},
                {"G\xff", "G?"},
                {"\xc3", "?"},
                {"\xc3(", "?("},
                {"\xe2\x82", "??"},
                {"caf\xc3\xa9 \xf0\x9f\x98\x80", "caf\xc3\xa9 \xf0\x9f\x98\x80"},
                {"\xed\xa0\x80", "???"}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_egress_record rec = denied(), back;
        stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(65536);
        stk_err err = {0};
        memcpy(rec.host, rows[i].raw, strlen(rows[i].raw) + 1);
        if (stk_egress_encode(&rec, &out, &err) < 0 || stk_egress_decode(stk_buf_view(&out), &back, &err) < 0)
            fail_msg("%s: %s", rows[i].clean, err.detail);
        assert_string_equal(back.host, rows[i].clean);
        assert_string_equal(rec.host, rows[i].raw);
    }
    stk_egress_record back;
    stk_err err = {0};
    stk_str text = golden_text("egress-record-deny");
    char *at = memmem(text.p, text.n, "evil.example", 12);
    memcpy(at, "ev\\u001b.exa", 12);
    assert_error(stk_egress_decode(text, &back, &err), &err, STK_E_FIELD, "/host",
                 "an escape in a record of others");
    free((void *)text.p);
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
        cmocka_unit_test(a_close_comes_after_its_decision),
        cmocka_unit_test(what_a_sandbox_sent_never_costs_a_record),
        cmocka_unit_test(numbers_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
