#include "tests/unit/message/unit.h"
#include "proto/message/link.h"

static void a_hello_is_one_short_line(void **state)
{
    stk_hello hello = {.kind = "command"}, back;
    stk_buf line STK_AUTO(stk_buf_done) = STK_BUF(1024);
    memset(hello.id, 'i', STK_ID_SIZE - 1);
    memset(hello.nonce, 'n', STK_ID_SIZE - 1);
    assert_int_equal(stk_hello_encode(&hello, &line), 0);
    assert_true(line.n <= STK_HELLO_MAX);
    assert_ptr_equal(memchr(line.p, '\n', line.n), line.p + line.n - 1);
    assert_int_equal(stk_hello_decode(stk_str_n(line.p, line.n - 1), &back, NULL), 0);
    assert_memory_equal(&hello, &back, sizeof(hello));
}

static void a_bad_hello_is_refused(void **state)
{
    static const struct {
        const char *line;
        stk_code code;
        const char *pointer;
    } rows[] = {
        {"", STK_E_JSON, ""},
        {"GET / HTTP/1.1", STK_E_JSON, ""},
        {"[]", STK_E_FIELD, ""},
        {"{\"kind\":\"shell\",\"id\":\"a\",\"nonce\":\"b\"}", STK_E_FIELD, "/kind"},
        {"{\"kind\":\"control\",\"id\":\"\",\"nonce\":\"b\"}", STK_E_FIELD, "/id"},
        {"{\"kind\":\"control\",\"id\":\"a b\",\"nonce\":\"b\"}", STK_E_FIELD, "/id"},
        {"{\"kind\":\"control\",\"id\":\"../a\",\"nonce\":\"b\"}", STK_E_FIELD, "/id"},
        {"{\"kind\":\"control\",\"id\":\"a\",\"nonce\":\"\\n\"}", STK_E_FIELD, "/nonce"},
        {"{\"kind\":\"control\",\"id\":\"a\"}", STK_E_MISSING_FIELD, "/nonce"},
        {"{\"kind\":\"control\",\"id\":\"0123456789012345678901234567890123456789\",\"nonce\":\"b\"}",
         STK_E_FIELD, "/id"},
        {"{\"kind\":\"control\",\"id\":\"a\",\"nonce\":\"b\",\"x\":1}", STK_E_UNKNOWN_FIELD, "/x"},
        {"{\"kind\":\"control\",\"id\":\"a\",\"nonce\":\"b\"}{}", STK_E_JSON, ""},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_hello hello;
        stk_err err = {0};
        assert_error(stk_hello_decode(stk_str_of(rows[i].line), &hello, &err), &err, rows[i].code,
                     rows[i].pointer, rows[i].line);
    }
    char big[STK_HELLO_MAX];
    stk_hello hello;
    stk_err err = {0};
    memset(big, ' ', sizeof(big));
    assert_error(stk_hello_decode(stk_str_n(big, sizeof(big)), &hello, &err), &err, STK_E_LIMIT, "",
                 "256 bytes");
}

static void a_hello_that_would_be_refused_is_not_sent(void **state)
{
    stk_hello hello = {.kind = "control", .id = "a"};
    stk_buf line STK_AUTO(stk_buf_done) = STK_BUF(1024);
    assert_int_equal(stk_hello_encode(&hello, &line), -STK_E_FIELD);
    assert_int_equal(line.n, 0);
}

static void an_exit_line_is_bounded(void **state)
{
    static const struct {
        const char *was, *is, *pointer;
    } rows[] = {{"\"exit_code\":0", "\"exit_code\":256", "/exit_code"},
                {"\"exit_code\":0", "\"exit_code\":-65", "/exit_code"},
                {"\"exit_code\":0", "\"exit_code\":0.5", "/exit_code"},
                {"\"signal\":0", "\"signal\":65", "/signal"},
                {"\"signal\":0", "\"signal\":-1", "/signal"},
                {"\"duration_ms\":41", "\"duration_ms\":-41", "/duration_ms"},
                {"\"stdout_bytes\":12", "\"stdout_bytes\":1e300", "/stdout_bytes"},
                {"\"stderr_bytes\":0", "\"stderr_bytes\":0,\"detail\":\"\\u001b\"", "/detail"}};
    stk_str text = golden_text("exit");
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        const char *at = memmem(text.p, text.n, rows[i].was, strlen(rows[i].was));
        assert_non_null(at);
        stk_buf edited STK_AUTO(stk_buf_done) = STK_BUF(4096);
        stk_buf_add(&edited, text.p, (size_t)(at - text.p));
        stk_buf_text(&edited, rows[i].is);
        stk_buf_text(&edited, at + strlen(rows[i].was));
        stk_json *doc STK_AUTO(stk_json_freep) = parse(edited.p);
        stk_exec_end end;
        stk_err err = {0};
        assert_error(stk_exec_end_decode(stk_json_root(doc), &end, &err), &err, STK_E_FIELD, rows[i].pointer,
                     rows[i].is);
    }
    free((void *)text.p);
}

static void its_members_fit_into_a_larger_answer(void **state)
{
    stk_exec_end end = {.exit_code = 7, .detail = "no such file"};
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(4096);
    stk_jw w;
    stk_jw_init(&w, &out);
    stk_jw_object(&w);
    stk_jw_ktext(&w, "stdout", "x");
    stk_exec_end_write_members(&w, &end);
    stk_jw_close(&w, '}');
    assert_int_equal(stk_jw_end(&w, NULL), 0);
    assert_text(
        stk_buf_view(&out),
        STK_STR("{\"stdout\":\"x\",\"exit_code\":7,\"signal\":0,\"timed_out\":false,\"oom_killed\":false,"
                "\"truncated\":false,"
                "\"duration_ms\":0,\"stdout_bytes\":0,\"stderr_bytes\":0,\"detail\":\"no such file\"}"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hello_is_one_short_line),
        cmocka_unit_test(a_bad_hello_is_refused),
        cmocka_unit_test(a_hello_that_would_be_refused_is_not_sent),
        cmocka_unit_test(an_exit_line_is_bounded),
        cmocka_unit_test(its_members_fit_into_a_larger_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
