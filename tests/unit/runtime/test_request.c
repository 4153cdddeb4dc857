#include "workers/runtime/exec_request.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static stk_exec_defaults defaults = {.root_path = "/workspace", .max_output = 4096};

static int decode(const char *body, stk_exec_request *req, stk_err *err)
{
    return stk_exec_request_decode(stk_str_of(body), &defaults, req, err);
}

static void wrong_bodies_name_the_field(void **state)
{
    static const struct {
        const char *body;
        stk_code code;
        const char *pointer;
    } rows[] = {
        {"", STK_E_JSON, ""},
        {"[]", STK_E_FIELD, ""},
        {"{}", STK_E_MISSING_FIELD, "/command"},
        {"{\"command\":null}", STK_E_FIELD, "/command"},
        {"{\"command\":5}", STK_E_FIELD, "/command"},
        {"{\"command\":\"\"}", STK_E_FIELD, "/command"},
        {"{\"command\":\"  \"}", STK_E_FIELD, "/command"},
        {"{\"command\":[]}", STK_E_FIELD, "/command"},
        {"{\"command\":[\"\"]}", STK_E_FIELD, "/command/0"},
        {"{\"command\":[\"a\",1]}", STK_E_FIELD, "/command/1"},
        {"{\"command\":[\"a\",\"b\\u0000\"]}", STK_E_FIELD, "/command/1"},
        {"{\"command\":\"a 'b\"}", STK_E_FIELD, "/command"},
        {"{\"command\":[\"a\"],\"env\":[]}", STK_E_FIELD, "/env"},
        {"{\"command\":[\"a\"],\"env\":{\"A\":1}}", STK_E_FIELD, "/env"},
        {"{\"command\":[\"a\"],\"timeout_seconds\":0}", STK_E_FIELD, "/timeout_seconds"},
        {"{\"command\":[\"a\"],\"timeout_seconds\":-0.0}", STK_E_FIELD, "/timeout_seconds"},
        {"{\"command\":[\"a\"],\"timeout_seconds\":1e-9}", STK_E_FIELD, "/timeout_seconds"},
        {"{\"command\":[\"a\"],\"timeout_seconds\":1e18}", STK_E_FIELD, "/timeout_seconds"},
        {"{\"command\":[\"a\"],\"timeout_seconds\":\"5\"}", STK_E_FIELD, "/timeout_seconds"},
        {"{\"command\":[\"a\"],\"timeout_seconds\":true}", STK_E_FIELD, "/timeout_seconds"},
        {"{\"command\":[\"a\"],\"timeout_seconds\":NaN}", STK_E_JSON, ""},
        {"{\"command\":[\"a\"],\"cwd\":5}", STK_E_FIELD, "/cwd"},
        {"{\"command\":[\"a\"],\"cwd\":\"nope\"}", STK_E_FIELD, "/cwd"},
        {"{\"command\":[\"a\"],\"cwd\":\"..\"}", STK_E_FIELD, "/cwd"},
        {"{\"command\":[\"a\"],\"stdin\":\"a\",\"stdin_base64\":\"YQ==\"}", STK_E_FIELD, "/stdin_base64"},
        {"{\"command\":[\"a\"],\"stdin_base64\":\"Y\"}", STK_E_FIELD, "/stdin_base64"},
        {"{\"command\":[\"a\"],\"max_output_bytes\":4097}", STK_E_FIELD, "/max_output_bytes"},
        {"{\"command\":[\"a\"],\"base64\":1}", STK_E_FIELD, "/base64"},
        {"{\"command\":[\"a\"],\"other\":1}", STK_E_UNKNOWN_FIELD, "/other"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_exec_request req;
        stk_err err = {0};
        int rc = decode(rows[i].body, &req, &err);
        if (rc != -(int)rows[i].code || (*rows[i].pointer && strcmp(err.pointer, rows[i].pointer) != 0))
            fail_msg("%s: %d at '%s': %s", rows[i].body, rc, err.pointer, err.detail);
        stk_exec_request_done(&req);
    }
}

static void null_means_absent_but_for_the_command(void **state)
{
    stk_exec_request req;
    stk_err err;
    assert_int_equal(
        decode("{\"command\":\"a 'b c'\",\"env\":null,\"cwd\":null,\"timeout_seconds\":null,\"stdin\":null}",
               &req, &err),
        0);
    assert_string_equal(req.argv[1], "b c");
    assert_null(req.argv[2]);
    assert_int_equal(req.timeout.ns, STK_TIMEOUT_DEF_NS);
    assert_false(req.has_input);
    stk_exec_request_done(&req);
}

static void environment_is_built_and_the_request_may_replace_it(void **state)
{
    stk_exec_request req;
    stk_err err;
    setenv("SECRET_X", "1", 1);
    defaults.proxy = "http://127.0.0.1:3128";
    assert_int_equal(
        decode("{\"command\":[\"a\"],\"env\":{\"TZ\":\"Asia/Tokyo\",\"V\":\"a\\nb=c\\n\",\"E\":\"\"}}", &req,
               &err),
        0);
    assert_string_equal(stk_environ_get(req.envp, "TZ"), "Asia/Tokyo");
    assert_string_equal(stk_environ_get(req.envp, "V"), "a\nb=c\n");
    assert_string_equal(stk_environ_get(req.envp, "E"), "");
    assert_string_equal(stk_environ_get(req.envp, "HOME"), "/workspace");
    assert_string_equal(stk_environ_get(req.envp, "https_proxy"), "http://127.0.0.1:3128");
    assert_string_equal(stk_environ_get(req.envp, "NO_PROXY"), "");
    assert_null(stk_environ_get(req.envp, "SECRET_X"));
    size_t n = 0, tz = 0;
    for (; req.envp[n]; n++)
        tz += strncmp(req.envp[n], "TZ=", 3) == 0;
    assert_int_equal(n, 16);
    assert_int_equal(tz, 1);
    stk_exec_request_done(&req);
    defaults.proxy = NULL;
    assert_int_equal(decode("{\"command\":[\"a\"]}", &req, &err), 0);
    assert_null(stk_environ_get(req.envp, "https_proxy"));
    stk_exec_request_done(&req);
}

static void an_argument_over_the_limit_points_at_upload(void **state)
{
    stk_buf body = STK_BUF(1 << 20);
    stk_buf_text(&body, "{\"command\":[\"a\",\"");
    for (int i = 0; i < 131072; i++)
        stk_buf_byte(&body, 'x');
    stk_buf_text(&body, "\"]}");
    stk_exec_request req;
    stk_err err;
    assert_int_equal(decode(body.p, &req, &err), -STK_E_TOO_LARGE);
    assert_non_null(strstr(err.detail, "131071"));
    assert_non_null(strstr(err.detail, "/upload"));
    stk_exec_request_done(&req);
    stk_buf_done(&body);
}

static int open_root(void **state)
{
    defaults.root = open("/usr", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return defaults.root < 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_bodies_name_the_field),
        cmocka_unit_test(null_means_absent_but_for_the_command),
        cmocka_unit_test(environment_is_built_and_the_request_may_replace_it),
        cmocka_unit_test(an_argument_over_the_limit_points_at_upload),
    };
    return cmocka_run_group_tests(tests, open_root, NULL);
}
