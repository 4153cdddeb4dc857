#include "tests/unit/gateway/unit.h"
#include "api-gateway/problem.h"

static void every_error_has_the_one_shape(void **state)
{
    for (int code = 1; code < STK_CODE_COUNT; code++) {
        stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(4096);
        stk_json *doc STK_AUTO(stk_json_freep) = NULL;
        stk_err err;
        int64_t status;
        stk_err_field(&err, (stk_code)code, "/a~1b/0", "what \"went\" wrong");
        stk_gw_problem_write(&out, &err, "req-1", NULL);
        assert_int_equal(stk_json_parse(stk_buf_view(&out), NULL, &doc, NULL), 0);
        stk_jv root = stk_json_root(doc);
        assert_true(
            stk_str_eq(stk_jv_str(stk_jv_get(root, "code")), stk_str_of(stk_code_text((stk_code)code))));
        assert_true(stk_str_eq(stk_jv_str(stk_jv_get(root, "detail")), STK_STR("what \"went\" wrong")));
        assert_true(stk_str_eq(stk_jv_str(stk_jv_get(root, "pointer")), STK_STR("/a~1b/0")));
        assert_true(stk_str_eq(stk_jv_str(stk_jv_get(root, "request_id")), STK_STR("req-1")));
        assert_true(stk_jv_is(stk_jv_get(root, "retryable"), STK_J_BOOL));
        assert_true(stk_jv_int(stk_jv_get(root, "status"), &status));
        assert_int_equal(status, stk_gw_problem_status(&err));
    }
}

static void a_full_disk_is_a_reason_to_come_back(void **state)
{
    stk_err err;
    stk_err_set(&err, STK_E_NO_SPACE, "full");
    assert_int_equal(stk_gw_problem_status(&err), 503);
    assert_true(stk_gw_retry_after(&err) > 0);
    stk_err_set(&err, STK_E_BUSY, "many");
    assert_int_equal(stk_gw_problem_status(&err), 429);
    assert_true(stk_gw_retry_after(&err) > 0);
    stk_err_set(&err, STK_E_FIELD, "no");
    assert_int_equal(stk_gw_retry_after(&err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_the_one_shape),
        cmocka_unit_test(a_full_disk_is_a_reason_to_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
