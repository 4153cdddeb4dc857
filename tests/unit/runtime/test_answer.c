#include "proto/base/json.h"
#include "workers/runtime/answer.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const stk_kept nothing = {{NULL, 0}, {NULL, 0}, 0, 0};

static stk_json *answer_of(stk_kept out, stk_kept errout, bool base64)
{
    stk_kept kept[2] = {out, errout};
    stk_exec_end end = {.exit_code = 3};
    stk_answer answer;
    stk_buf text = STK_BUF(1 << 22);
    stk_json *doc = NULL;
    stk_err err;
    stk_answer_init(&answer, kept, &end, base64);
    stk_answer_whole(&answer, &text);
    if (stk_json_parse(stk_buf_view(&text), NULL, &doc, &err) < 0)
        fail_msg("%s in %.300s", err.detail, text.p);
    stk_answer_done(&answer);
    stk_buf_done(&text);
    return doc;
}

static stk_kept whole(const char *p, size_t n)
{
    return (stk_kept){.head = {p, n}, .total = n};
}

static void bytes_that_are_not_utf8_are_repaired_and_neighbours_stay(void **state)
{
    stk_json *doc = answer_of(whole("a\xff\xc3(b\0c", 7), nothing, false);
    stk_jv root = stk_json_root(doc);
    assert_true(
        stk_str_eq(stk_jv_str(stk_jv_get(root, "stdout")), STK_STR("a\xef\xbf\xbd\xef\xbf\xbd(b\0c")));
    int64_t code;
    assert_true(stk_jv_int(stk_jv_get(root, "exit_code"), &code));
    assert_int_equal(code, 3);
    assert_false(stk_jv_bool(stk_jv_get(root, "truncated")));
    stk_json_free(doc);
}

static void long_text_is_cut_into_pieces_between_characters(void **state)
{
    stk_buf text = STK_BUF(1 << 20);
    stk_buf_byte(&text, 'x');
    while (text.n < 200000)
        stk_buf_text(&text, "☹😀é");
    stk_json *doc = answer_of(nothing, whole(text.p, text.n), false);
    assert_true(stk_str_eq(stk_jv_str(stk_jv_get(stk_json_root(doc), "stderr")), stk_buf_view(&text)));
    stk_json_free(doc);
    stk_buf_done(&text);
}

static void a_gap_is_told_to_people_and_to_programs(void **state)
{
    stk_kept cut = {.head = STK_STR("head"), .tail = STK_STR("tail"), .gap = 100, .total = 108};
    stk_json *doc = answer_of(cut, nothing, true);
    stk_jv root = stk_json_root(doc);
    assert_true(stk_jv_bool(stk_jv_get(root, "truncated")));
    assert_true(stk_str_eq(stk_jv_str(stk_jv_get(root, "stdout")),
                           STK_STR("head\n[... 100 bytes left out ...]\ntail")));
    stk_buf bytes = STK_BUF(100);
    assert_int_equal(stk_base64_decode(&bytes, stk_jv_str(stk_jv_get(root, "stdout_base64"))), 0);
    assert_true(stk_str_eq(stk_buf_view(&bytes), STK_STR("heatail")));
    int64_t at, n;
    assert_true(stk_jv_int(stk_jv_get(stk_jv_get(root, "stdout_gap"), "at"), &at));
    assert_true(stk_jv_int(stk_jv_get(stk_jv_get(root, "stdout_gap"), "bytes"), &n));
    assert_int_equal(at, 3);
    assert_int_equal(n, 101);
    assert_false(stk_jv_is(stk_jv_get(root, "stderr_gap"), STK_J_OBJECT));
    stk_buf_done(&bytes);
    stk_json_free(doc);
}

static void base64_holds_the_very_bytes(void **state)
{
    char all[50000];
    for (size_t i = 0; i < sizeof(all); i++)
        all[i] = (char)(i * 7);
    stk_json *doc = answer_of(whole(all, sizeof(all)), whole("\xff", 1), true);
    stk_buf bytes = STK_BUF(1 << 20);
    assert_int_equal(stk_base64_decode(&bytes, stk_jv_str(stk_jv_get(stk_json_root(doc), "stdout_base64"))),
                     0);
    assert_true(stk_str_eq(stk_buf_view(&bytes), stk_str_n(all, sizeof(all))));
    assert_true(stk_str_eq(stk_jv_str(stk_jv_get(stk_json_root(doc), "stderr_base64")), STK_STR("/w==")));
    stk_buf_done(&bytes);
    stk_json_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_that_are_not_utf8_are_repaired_and_neighbours_stay),
        cmocka_unit_test(long_text_is_cut_into_pieces_between_characters),
        cmocka_unit_test(a_gap_is_told_to_people_and_to_programs),
        cmocka_unit_test(base64_holds_the_very_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
