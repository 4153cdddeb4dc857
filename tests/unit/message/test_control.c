#include "tests/unit/message/unit.h"
#include "proto/message/egress.h"

static const char *const kinds[] = {"policy",    "ack",        "drain",  "stop",   "ready",
                                    "policy_ok", "policy_bad", "record", "drained"};
static const char *const members[] = {"\"version\":7", "\"run\":\"run-01hf7yat00k3v5w6x7y8z9a1b2\"",
                                      "\"seq\":3", "\"detail\":\"d\"", "\"body\":{}"};
static const char *const pointers[] = {"/version", "/run", "/seq", "/detail", "/body"};
/* Which kind needs (n), may have (m) or may not have (-) which member. */
static const char *const table[] = {"nm--n", "--n--", "-----", "-----", "---m-",
                                    "n----", "m--n-", "----n", "-----"};

static int decode(const char *kind, unsigned set, stk_control *ctl, stk_err *err)
{
    stk_buf line STK_AUTO(stk_buf_done) = STK_BUF(4096);
    *err = (stk_err){0};
    stk_buf_fmt(&line, "{\"kind\":\"%s\"", kind);
    for (unsigned i = 0; i < STK_COUNT(members); i++)
        if (set & (1u << i))
            stk_buf_fmt(&line, ",%s", members[i]);
    stk_buf_byte(&line, '}');
    return stk_control_decode(stk_buf_view(&line), ctl, err);
}

static void each_kind_has_exactly_its_members(void **state)
{
    for (size_t k = 0; k < STK_COUNT(kinds); k++)
        for (unsigned set = 0; set < 32; set++) {
            stk_control ctl;
            stk_err err;
            stk_code want = STK_OK;
            const char *pointer = "";
            for (unsigned i = 0; i < 5 && want == STK_OK; i++) {
                bool has = set & (1u << i);
                want = !has && table[k][i] == 'n'  ? STK_E_MISSING_FIELD
                       : has && table[k][i] == '-' ? STK_E_UNKNOWN_FIELD
                                                   : STK_OK;
                pointer = want == STK_OK ? "" : pointers[i];
            }
            int rc = decode(kinds[k], set, &ctl, &err);
            if (want != STK_OK)
                assert_error(rc, &err, want, pointer, kinds[k]);
            else if (rc < 0)
                fail_msg("%s %u: %s %s", kinds[k], set, err.pointer, err.detail);
            else
                assert_int_equal(stk_control_kind_of(&ctl), k);
            stk_control_done(&ctl);
        }
}

static void another_kind_is_refused(void **state)
{
    static const char *const others[] = {"",           "Policy",      "policy ",
                                         "ack\\u0000", "policy_okay", "a-kind-that-is-too-long"};
    for (size_t i = 0; i < STK_COUNT(others); i++) {
        stk_control ctl;
        stk_err err;
        assert_error(decode(others[i], 0, &ctl, &err), &err, STK_E_FIELD, "/kind", others[i]);
    }
}

static void a_line_is_one_line(void **state)
{
    stk_control ctl = {.kind = "policy", .version = 1}, back;
    stk_buf line STK_AUTO(stk_buf_done) = STK_BUF(65536);
    stk_bytes_set(&ctl.body, STK_STR("{\r\n  \"allow\": [\n \"a\\nb\"\n]\n}"));
    stk_buf_text(&line, "before\n");
    assert_int_equal(stk_control_encode(&ctl, &line, NULL), 0);
    assert_memory_equal(line.p, "before\n", 7);
    assert_ptr_equal(memchr(line.p + 7, '\n', line.n - 7), line.p + line.n - 1);
    assert_null(memchr(line.p, '\r', line.n));
    assert_int_equal(stk_control_decode(stk_str_n(line.p + 7, line.n - 8), &back, NULL), 0);
    assert_non_null(memmem(back.body.p, back.body.n, "a\\nb", 4));
    stk_control_done(&back);
    stk_control_done(&ctl);
}

static void a_line_over_the_limit_is_neither_written_nor_read(void **state)
{
    stk_control ctl = {.kind = "policy", .version = 1};
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(2 * STK_CONTROL_LINE_MAX),
                 line STK_AUTO(stk_buf_done) = STK_BUF(4 * STK_CONTROL_LINE_MAX);
    stk_err err = {0};
    stk_buf_text(&body, "{\"a\":\"");
    const size_t around = strlen("{\"kind\":\"policy\",\"version\":1,\"body\":{\"a\":\"\"}}\n");
    while (body.n < 6 + STK_CONTROL_LINE_MAX - around)
        stk_buf_byte(&body, 'x');
    stk_buf_text(&body, "\"}");
    stk_bytes_set(&ctl.body, stk_buf_view(&body));
    assert_int_equal(stk_control_encode(&ctl, &line, &err), 0);
    assert_int_equal(line.n, STK_CONTROL_LINE_MAX);
    body.n -= 2;
    stk_buf_text(&body, "x\"}");
    stk_bytes_set(&ctl.body, stk_buf_view(&body));
    assert_error(stk_control_encode(&ctl, &line, &err), &err, STK_E_LIMIT, "", "one byte more");
    stk_control back;
    assert_error(stk_control_decode(stk_str_n(line.p, STK_CONTROL_LINE_MAX + 1), &back, &err), &err,
                 STK_E_LIMIT, "", "a long line");
    stk_control_done(&ctl);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_has_exactly_its_members),
        cmocka_unit_test(another_kind_is_refused),
        cmocka_unit_test(a_line_is_one_line),
        cmocka_unit_test(a_line_over_the_limit_is_neither_written_nor_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
