#include "workers/runtime/names.h"
#include "proto/http/head.h"
#include "workers/runtime/range.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void names_that_are_text_stay_and_others_can_be_undone(void **state)
{
    static const struct {
        const char *name, *text;
        bool escaped;
    } rows[] = {
        {"plain.txt", "plain.txt", false},
        {"100%", "100%", false},
        {"a%FF", "a%FF", false},
        {"\xc3\xa9 \xf0\x9f\x98\x80", "\xc3\xa9 \xf0\x9f\x98\x80", false},
        {"\xff", "%FF", true},
        {"100% \xe9", "100%25%20%E9", true},
        {"\xed\xa0\x80", "%ED%A0%80", true}, /* a surrogate is no UTF-8 */
        {"\xc3\xa9\xff", "%C3%A9%FF", true},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(256);
        stk_buf back STK_AUTO(stk_buf_done) = STK_BUF(256);
        assert_int_equal(stk_name_escape(stk_str_of(rows[i].name), &text), rows[i].escaped);
        assert_string_equal(text.p, rows[i].text);
        if (rows[i].escaped) {
            assert_int_equal(stk_percent_decode(stk_buf_view(&text), &back, NULL), 0);
            assert_string_equal(back.p, rows[i].name);
        }
    }
}

static void a_disposition_has_a_form_for_everybody(void **state)
{
    static const struct {
        const char *name, *value;
    } rows[] = {
        {"a.txt", "attachment; filename=\"a.txt\""},
        {"two words", "attachment; filename=\"two words\""},
        {"q\"\\\r\n", "attachment; filename=\"q____\"; filename*=UTF-8''q%22%5C%0D%0A"},
        {"100%25", "attachment; filename=\"100_25\"; filename*=UTF-8''100%2525"},
        {"\xc3\xa9.csv", "attachment; filename=\"_.csv\"; filename*=UTF-8''%C3%A9.csv"},
        {"\xe9.csv", "attachment; filename=\"_.csv\""},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(256);
        stk_name_disposition(stk_str_of(rows[i].name), &text);
        assert_string_equal(text.p, rows[i].value);
    }
}

static void one_range_is_read(void **state)
{
    static const struct {
        const char *value;
        uint64_t size;
        stk_range kind;
        uint64_t at, n;
    } rows[] = {
        {"bytes=0-0", 10, STK_RANGE_PART, 0, 1},
        {"BYTES=3-", 10, STK_RANGE_PART, 3, 7},
        {"bytes=-4", 10, STK_RANGE_PART, 6, 4},
        {"bytes=-40", 10, STK_RANGE_PART, 0, 10},
        {"bytes=5-40", 10, STK_RANGE_PART, 5, 5},
        {"bytes=0-18446744073709551616", 10, STK_RANGE_PART, 0, 10},
        {"bytes=0-99999999999999999999999999", UINT64_C(1) << 62, STK_RANGE_PART, 0, UINT64_C(1) << 62},
        {"bytes=10-", 10, STK_RANGE_OUTSIDE, 0, 0},
        {"bytes=18446744073709551616-", 10, STK_RANGE_OUTSIDE, 0, 0},
        {"bytes=-0", 10, STK_RANGE_OUTSIDE, 0, 0},
        {"bytes=0-", 0, STK_RANGE_WHOLE, 0, 0},
        {"bytes=-", 10, STK_RANGE_WHOLE, 0, 0},
        {"bytes=", 10, STK_RANGE_WHOLE, 0, 0},
        {"bytes=3", 10, STK_RANGE_WHOLE, 0, 0},
        {"bytes=5-4", 10, STK_RANGE_WHOLE, 0, 0},
        {"bytes=0-1,3-4", 10, STK_RANGE_WHOLE, 0, 0},
        {"bytes=+1-2", 10, STK_RANGE_WHOLE, 0, 0},
        {"bytes= 1-2", 10, STK_RANGE_WHOLE, 0, 0},
        {"items=1-2", 10, STK_RANGE_WHOLE, 0, 0},
        {"", 10, STK_RANGE_WHOLE, 0, 0},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        uint64_t at = 0, n = 0;
        assert_int_equal(stk_range_parse(stk_str_of(rows[i].value), rows[i].size, &at, &n), rows[i].kind);
        if (rows[i].kind != STK_RANGE_PART)
            continue;
        assert_int_equal(at, rows[i].at);
        assert_int_equal(n, rows[i].n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_that_are_text_stay_and_others_can_be_undone),
        cmocka_unit_test(a_disposition_has_a_form_for_everybody),
        cmocka_unit_test(one_range_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
