#include "proto/base/err.h"
#include "tests/unit/base/test.h"
#include <errno.h>

static void every_code_has_a_text_of_its_own_and_a_sane_status(void **state)
{
    for (int a = STK_OK; a < STK_CODE_COUNT; a++) {
        const char *text = stk_code_text((stk_code)a);
        assert_true(strlen(text) > 1 && strspn(text, "abcdefghijklmnopqrstuvwxyz_") == strlen(text));
        assert_true(strlen(stk_code_title((stk_code)a)) > 3);
        assert_true(stk_code_http((stk_code)a) >= 200 && stk_code_http((stk_code)a) < 600);
        assert_true(stk_code_exit((stk_code)a) >= 0 && stk_code_exit((stk_code)a) < 128);
        assert_int_equal(stk_code_exit((stk_code)a) == 0, a == STK_OK);
        for (int b = a + 1; b < STK_CODE_COUNT; b++)
            assert_string_not_equal(text, stk_code_text((stk_code)b));
    }
}

static void a_code_out_of_range_reads_as_internal(void **state)
{
    assert_string_equal(stk_code_text((stk_code)9999), "internal");
    assert_string_equal(stk_code_text((stk_code)-1), "internal");
    assert_int_equal(stk_code_http(STK_CODE_COUNT), 500);
}

static void only_codes_worth_another_try_are_retryable(void **state)
{
    assert_true(stk_code_retryable(STK_E_UNAVAILABLE));
    assert_true(stk_code_retryable(STK_E_TIMEOUT));
    assert_true(stk_code_retryable(STK_E_SANDBOX));
    assert_false(stk_code_retryable(STK_E_FIELD));
    assert_false(stk_code_retryable(STK_E_CORRUPT));
    assert_false(stk_code_retryable(STK_OK));
}

static void set_returns_the_negative_code_and_overwrites(void **state)
{
    stk_err err;
    assert_int_equal(stk_err_field(&err, STK_E_FIELD, "/a/0", "bad %d", 1), -STK_E_FIELD);
    assert_string_equal(err.pointer, "/a/0");
    assert_int_equal(stk_err_set(&err, STK_E_LIMIT, "more than %d", 3), -STK_E_LIMIT);
    assert_int_equal(err.code, STK_E_LIMIT);
    assert_int_equal(err.sys, 0);
    assert_string_equal(err.pointer, "");
    assert_string_equal(err.detail, "more than 3");
}

static void errno_picks_the_code_and_names_the_reason(void **state)
{
    static const struct {
        int errnum;
        stk_code code;
    } rows[] = {
        {ENOENT, STK_E_SYSTEM}, {ENOSPC, STK_E_NO_SPACE}, {EDQUOT, STK_E_NO_SPACE}, {99999, STK_E_SYSTEM}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_err err;
        assert_int_equal(stk_err_errno(&err, rows[i].errnum, "open %s", "x"), -(int)rows[i].code);
        assert_int_equal(err.sys, rows[i].errnum);
        assert_true(strncmp(err.detail, "open x: ", 8) == 0 && strlen(err.detail) > 8);
    }
}

static void context_and_pointers_grow_from_the_front(void **state)
{
    stk_err err;
    stk_err_field(&err, STK_E_FIELD, "/allow/0", "not a host");
    assert_int_equal(stk_err_wrap(&err, "agent %s", "x"), -STK_E_FIELD);
    assert_int_equal(stk_err_wrap(&err, "config"), -STK_E_FIELD);
    assert_int_equal(stk_err_prefix(&err, "/agents/x"), -STK_E_FIELD);
    assert_string_equal(err.detail, "config: agent x: not a host");
    assert_string_equal(err.pointer, "/agents/x/allow/0");
}

static void control_bytes_never_reach_a_detail(void **state)
{
    stk_err err;
    stk_err_set(&err, STK_E_FIELD, "a%sb", "\n\x1b\x7f\r");
    assert_string_equal(err.detail, "a????b");
    stk_err_wrap(&err, "x\ny");
    assert_string_equal(err.detail, "x?y: a????b");
}

static void long_texts_are_cut_and_stay_terminated(void **state)
{
    static char big[2000];
    memset(big, 'y', sizeof(big) - 1);
    stk_err err;
    stk_err_field(&err, STK_E_FIELD, big, "%s", big);
    assert_int_equal(strlen(err.detail), sizeof(err.detail) - 1);
    assert_int_equal(strlen(err.pointer), sizeof(err.pointer) - 1);
    for (int i = 0; i < 10; i++) {
        stk_err_wrap(&err, "%s", big);
        stk_err_prefix(&err, big);
    }
    assert_int_equal(strlen(err.detail), sizeof(err.detail) - 1);
    stk_err_errno(&err, ENOENT, "%s", big);
    assert_int_equal(strlen(err.detail), sizeof(err.detail) - 1);
}

static void no_err_is_fine_everywhere(void **state)
{
    assert_int_equal(stk_err_set(NULL, STK_E_LIMIT, "x"), -STK_E_LIMIT);
    assert_int_equal(stk_err_field(NULL, STK_E_FIELD, "/", "x"), -STK_E_FIELD);
    assert_int_equal(stk_err_errno(NULL, ENOSPC, "x"), -STK_E_NO_SPACE);
    assert_true(stk_err_wrap(NULL, "x") < 0);
    assert_true(stk_err_prefix(NULL, "/x") < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_text_of_its_own_and_a_sane_status),
        cmocka_unit_test(a_code_out_of_range_reads_as_internal),
        cmocka_unit_test(only_codes_worth_another_try_are_retryable),
        cmocka_unit_test(set_returns_the_negative_code_and_overwrites),
        cmocka_unit_test(errno_picks_the_code_and_names_the_reason),
        cmocka_unit_test(context_and_pointers_grow_from_the_front),
        cmocka_unit_test(control_bytes_never_reach_a_detail),
        cmocka_unit_test(long_texts_are_cut_and_stay_terminated),
        cmocka_unit_test(no_err_is_fine_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
