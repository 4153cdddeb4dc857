#include "tests/unit/message/unit.h"
#include "proto/message/request.h"

static const stk_wall now = {1767323045678000000};

static int from_api(const char *body, bool plan, stk_request *req, stk_run_secret *secret, stk_err *err)
{
    stk_json *doc STK_AUTO(stk_json_freep) = parse(body);
    *req = (stk_request){0};
    *secret = (stk_run_secret){0};
    *err = (stk_err){0};
    return stk_request_from_api(stk_json_root(doc), plan, now, req, secret, err);
}

typedef struct row {
    const char *body;
    stk_code code;
    const char *pointer;
    const char *says; /* part of the detail, or NULL */
} row;

#define RANGE     "0.001 to 86400"
#define CMD(c)    "{\"agent\":\"a\",\"command\":" c "}"
#define RUN(more) "{\"agent\":\"a\",\"command\":[\"x\"]," more "}"

static const row run_rows[] = {
    {"[]", STK_E_FIELD, "", "object"},
    {"null", STK_E_FIELD, "", "object"},
    {"{}", STK_E_MISSING_FIELD, "/agent", NULL},
    {"{\"agent\":\"a\"}", STK_E_MISSING_FIELD, "/command", NULL},
    {"{\"command\":[\"x\"]}", STK_E_MISSING_FIELD, "/agent", NULL},
    {"{\"agent\":1,\"command\":[\"x\"]}", STK_E_FIELD, "/agent", NULL},
    {"{\"agent\":\"\",\"command\":[\"x\"]}", STK_E_FIELD, "/agent", NULL},
    {"{\"agent\":\"a/b\",\"command\":[\"x\"]}", STK_E_FIELD, "/agent", NULL},
    {"{\"agent\":\"a\\u0000\",\"command\":[\"x\"]}", STK_E_FIELD, "/agent", NULL},
    /* command */
    {CMD("[]"), STK_E_FIELD, "/command", "empty"},
    {CMD("\"\""), STK_E_FIELD, "/command", "empty"},
    {CMD("\"  \""), STK_E_FIELD, "/command", "empty"},
    {CMD("[\"\"]"), STK_E_FIELD, "/command/0", "empty"},
    {CMD("\"''\""), STK_E_FIELD, "/command", "empty"},
    {CMD("null"), STK_E_FIELD, "/command", "null"},
    {CMD("5"), STK_E_FIELD, "/command", "number"},
    {CMD("true"), STK_E_FIELD, "/command", NULL},
    {CMD("{}"), STK_E_FIELD, "/command", "object"},
    {CMD("[1]"), STK_E_FIELD, "/command/0", "number"},
    {CMD("[\"x\",null]"), STK_E_FIELD, "/command/1", "null"},
    {CMD("[\"x\",[\"y\"]]"), STK_E_FIELD, "/command/1", "array"},
    {CMD("[\"x\",\"a\\u0000b\"]"), STK_E_FIELD, "/command/1", "NUL"},
    {CMD("\"x a\\u0000b\""), STK_E_FIELD, "/command", "NUL"},
    {CMD("\"it's\""), STK_E_FIELD, "/command", "No closing quotation"},
    {CMD("\"x \\\\\""), STK_E_FIELD, "/command", "No escaped character"},
    /* timeouts */
    {RUN("\"timeout_seconds\":0"), STK_E_FIELD, "/timeout_seconds", RANGE},
    {RUN("\"timeout_seconds\":-1"), STK_E_FIELD, "/timeout_seconds", RANGE},
    {RUN("\"timeout_seconds\":-0.0"), STK_E_FIELD, "/timeout_seconds", RANGE},
    {RUN("\"timeout_seconds\":1e-9"), STK_E_FIELD, "/timeout_seconds", RANGE},
    {RUN("\"timeout_seconds\":0.0009"), STK_E_FIELD, "/timeout_seconds", RANGE},
    {RUN("\"timeout_seconds\":86400.001"), STK_E_FIELD, "/timeout_seconds", RANGE},
    {RUN("\"timeout_seconds\":1e300"), STK_E_FIELD, "/timeout_seconds", RANGE},
    {RUN("\"timeout_seconds\":-1e300"), STK_E_FIELD, "/timeout_seconds", RANGE},
    {RUN("\"timeout_seconds\":\"5\""), STK_E_FIELD, "/timeout_seconds", RANGE},
    {RUN("\"timeout_seconds\":null"), STK_E_FIELD, "/timeout_seconds", RANGE},
    {RUN("\"timeout_seconds\":true"), STK_E_FIELD, "/timeout_seconds", RANGE},
    {RUN("\"timeout_seconds\":[]"), STK_E_FIELD, "/timeout_seconds", RANGE},
    {RUN("\"timeout_seconds\":{}"), STK_E_FIELD, "/timeout_seconds", RANGE},
    {RUN("\"deadline_seconds\":0"), STK_E_FIELD, "/deadline_seconds", "0.001 to 604800"},
    {RUN("\"deadline_seconds\":\"1\""), STK_E_FIELD, "/deadline_seconds", "0.001 to 604800"},
    {RUN("\"deadline_seconds\":604801"), STK_E_FIELD, "/deadline_seconds", "0.001 to 604800"},
    /* environment */
    {RUN("\"env\":[]"), STK_E_FIELD, "/env", NULL},
    {RUN("\"env\":{\"A\":1}"), STK_E_FIELD, "/env/A", NULL},
    {RUN("\"env\":{\"A\":null}"), STK_E_FIELD, "/env/A", NULL},
    {RUN("\"env\":{\"\":\"x\"}"), STK_E_FIELD, "/env/", "name"},
    {RUN("\"env\":{\"1A\":\"x\"}"), STK_E_FIELD, "/env/1A", "name"},
    {RUN("\"env\":{\"A=B\":\"x\"}"), STK_E_FIELD, "/env/A=B", "name"},
    {RUN("\"env\":{\"a/b~c\":\"x\"}"), STK_E_FIELD, "/env/a~1b~0c", "name"},
    {RUN("\"env\":{\"A\":\"x\\u0000\"}"), STK_E_FIELD, "/env/A", "NUL"},
    /* where and with what */
    {RUN("\"cwd\":\"\""), STK_E_FIELD, "/cwd", NULL},
    {RUN("\"cwd\":\"a\\u0000\""), STK_E_FIELD, "/cwd", "NUL"},
    {RUN("\"cwd\":1"), STK_E_FIELD, "/cwd", NULL},
    {RUN("\"files\":{}"), STK_E_FIELD, "/files", "array"},
    {RUN("\"files\":[1]"), STK_E_FIELD, "/files/0", NULL},
    {RUN("\"files\":[{}]"), STK_E_MISSING_FIELD, "/files/0/path", NULL},
    {RUN("\"files\":[{\"path\":\"a\"}]"), STK_E_MISSING_FIELD, "/files/0/content", NULL},
    {RUN("\"files\":[{\"path\":\"a\",\"content\":\"\",\"content_base64\":\"\"}]"), STK_E_FIELD,
     "/files/0/content_base64", "both"},
    {RUN("\"files\":[{\"path\":\"a\",\"content\":1}]"), STK_E_FIELD, "/files/0/content", NULL},
    {RUN("\"files\":[{\"path\":\"a\",\"content_base64\":\"a\"}]"), STK_E_FIELD, "/files/0/content_base64",
     "base64"},
    {RUN("\"files\":[{\"path\":\"a\",\"content_base64\":\"YQ\"}]"), STK_E_FIELD, "/files/0/content_base64",
     "base64"},
    {RUN("\"files\":[{\"path\":\"a\",\"content_base64\":\"YQ==\\n\"}]"), STK_E_FIELD,
     "/files/0/content_base64", "base64"},
    {RUN("\"files\":[{\"path\":\"\",\"content\":\"\"}]"), STK_E_FIELD, "/files/0/path", NULL},
    {RUN("\"files\":[{\"path\":\"/etc/x\",\"content\":\"\"}]"), STK_E_FIELD, "/files/0/path", "relative"},
    {RUN("\"files\":[{\"path\":\"../x\",\"content\":\"\"}]"), STK_E_FIELD, "/files/0/path", NULL},
    {RUN("\"files\":[{\"path\":\"a/../../x\",\"content\":\"\"}]"), STK_E_FIELD, "/files/0/path", NULL},
    {RUN("\"files\":[{\"path\":\"a/..\",\"content\":\"\"}]"), STK_E_FIELD, "/files/0/path", NULL},
    {RUN("\"files\":[{\"path\":\".\",\"content\":\"\"}]"), STK_E_FIELD, "/files/0/path", NULL},
    {RUN("\"files\":[{\"path\":\"a//b\",\"content\":\"\"}]"), STK_E_FIELD, "/files/0/path", NULL},
    {RUN("\"files\":[{\"path\":\"a/\",\"content\":\"\"}]"), STK_E_FIELD, "/files/0/path", NULL},
    {RUN("\"files\":[{\"path\":\"a\\u0000b\",\"content\":\"\"}]"), STK_E_FIELD, "/files/0/path", "NUL"},
    {RUN("\"files\":[{\"path\":\"a\",\"content\":\"\"},{\"path\":\"a\",\"content\":\"\"}]"), STK_E_FIELD,
     "/files/1/path", "twice"},
    {RUN("\"files\":[{\"path\":\"a\",\"content\":\"\",\"mode\":7}]"), STK_E_UNKNOWN_FIELD, "/files/0/mode",
     NULL},
    {RUN("\"files\":[{\"path\":\"a\",\"content\":\"\",\"executable\":1}]"), STK_E_FIELD,
     "/files/0/executable", NULL},
    {RUN("\"stdin\":1"), STK_E_FIELD, "/stdin", NULL},
    {RUN("\"stdin_base64\":\"?\""), STK_E_FIELD, "/stdin_base64", "base64"},
    {RUN("\"stdin\":\"\",\"stdin_base64\":\"\""), STK_E_FIELD, "/stdin_base64", "both"},
    {RUN("\"collect\":\"a\""), STK_E_FIELD, "/collect", NULL},
    {RUN("\"collect\":[\"a\",\"/etc/passwd\"]"), STK_E_FIELD, "/collect/1", "relative"},
    {RUN("\"collect\":[\"../x\"]"), STK_E_FIELD, "/collect/0", NULL},
    /* the rest */
    {RUN("\"priority\":10"), STK_E_FIELD, "/priority", "0 to 9"},
    {RUN("\"priority\":-1"), STK_E_FIELD, "/priority", "0 to 9"},
    {RUN("\"priority\":0.5"), STK_E_FIELD, "/priority", "0 to 9"},
    {RUN("\"priority\":\"1\""), STK_E_FIELD, "/priority", "0 to 9"},
    {RUN("\"priority\":9223372036854775808"), STK_E_FIELD, "/priority", "0 to 9"},
    {RUN("\"retry\":\"sometimes\""), STK_E_FIELD, "/retry", "never|always"},
    {RUN("\"retry\":\"\""), STK_E_FIELD, "/retry", NULL},
    {RUN("\"retry\":null"), STK_E_FIELD, "/retry", NULL},
    {RUN("\"labels\":{\"A\":\"x\"}"), STK_E_FIELD, "/labels/A", "key"},
    {RUN("\"labels\":{\"a\":2}"), STK_E_FIELD, "/labels/a", NULL},
    {RUN("\"labels\":{\"a\":\"\\n\"}"), STK_E_FIELD, "/labels/a", "value"},
    {RUN("\"backend\":\"kata\""), STK_E_FIELD, "/backend", "firecracker"},
    {RUN("\"image\":\"a b\""), STK_E_FIELD, "/image", NULL},
    {RUN("\"image\":\"../x\""), STK_E_FIELD, "/image", NULL},
    {RUN("\"image\":\"-v\""), STK_E_FIELD, "/image", NULL},
    {RUN("\"webhook\":\"http://x\""), STK_E_UNKNOWN_FIELD, "/webhook", NULL},
    {RUN("\"id\":\"x\""), STK_E_UNKNOWN_FIELD, "/id", NULL},
    {RUN("\"tenant\":\"x\""), STK_E_UNKNOWN_FIELD, "/tenant", NULL},
    {RUN("\"\":1"), STK_E_UNKNOWN_FIELD, "/", NULL},
};

static void check_row(const row *r, bool plan)
{
    stk_request req;
    stk_run_secret secret;
    stk_err err;
    int rc = from_api(r->body, plan, &req, &secret, &err);
    assert_error(rc, &err, r->code, r->pointer, r->body);
    if (r->says && !strstr(err.detail, r->says))
        fail_msg("%s: \"%s\" does not say \"%s\"", r->body, err.detail, r->says);
    assert_null(secret.command.v);
    /* The caller of an API must be able to act on it. */
    assert_true(stk_code_http(err.code) == 422 && err.detail[0]);
}

static void a_bad_run_body_is_refused_with_pointer_and_reason(void **state)
{
    for (size_t i = 0; i < STK_COUNT(run_rows); i++)
        check_row(&run_rows[i], false);
}

static void a_plan_knows_its_five_fields_only(void **state)
{
    static const char *const others[] = {"timeout_seconds",  "cwd",     "files",  "priority",
                                         "deadline_seconds", "retry",   "labels", "stdin",
                                         "stdin_base64",     "collect", "webhook"};
    stk_request req;
    stk_run_secret secret;
    stk_err err;
    for (size_t i = 0; i < STK_COUNT(others); i++) {
        char body[128], pointer[64];
        snprintf(body, sizeof(body), RUN("\"%s\":1"), others[i]);
        snprintf(pointer, sizeof(pointer), "/%s", others[i]);
        assert_error(from_api(body, true, &req, &secret, &err), &err, STK_E_UNKNOWN_FIELD, pointer, body);
    }
    assert_int_equal(
        from_api(RUN("\"env\":{\"A\":\"b\"},\"image\":\"i\",\"backend\":\"oci\""), true, &req, &secret, &err),
        0);
    assert_string_equal(req.kind, "plan");
    assert_string_equal(req.image, "i");
    assert_string_equal(req.backend, "oci");
    assert_int_equal(req.timeout.ns, 0);
    assert_int_equal(secret.env.n, 1);
    stk_request_done(&req);
    stk_run_secret_done(&secret);
}

static void the_documented_body_is_taken(void **state)
{
    stk_request req;
    stk_run_secret secret;
    stk_err err;
    assert_int_equal(from_api("{\"agent\": \"helper\", \"command\": [\"python\", \"job.py\"]}", false, &req,
                              &secret, &err),
                     0);
    assert_int_equal(req.v, STK_MESSAGE_VERSION);
    assert_string_equal(req.kind, "run");
    assert_string_equal(req.agent, "helper");
    assert_string_equal(req.retry, "never");
    assert_string_equal(req.backend, "");
    assert_int_equal(req.priority, 5);
    assert_int_equal(req.timeout.ns, STK_TIMEOUT_DEF_NS);
    assert_int_equal(req.deadline.ns, 0);
    assert_false(secret.stdin_data.set);
    assert_int_equal(secret.command.n, 2);
    stk_request_done(&req);
    stk_run_secret_done(&secret);
}

static void everything_that_may_be_given_arrives(void **state)
{
    stk_request req;
    stk_run_secret secret;
    stk_err err;
    const char *body =
        "{\"agent\":\"a\",\"command\":\"sh -c 'echo $A | wc' \\\"x "
        "y\\\"\",\"env\":{\"A\":\"\",\"_b\":\"\\u00e9\"},\"timeout_seconds\":0.25,"
        "\"cwd\":\"/tmp\",\"files\":[{\"path\":\"a/"
        "b\",\"content\":\"t\\u0000\"},{\"path\":\"c\",\"content_base64\":\"/w==\",\"executable\":true}],"
        "\"priority\":0,\"deadline_seconds\":1.5,\"retry\":\"always\",\"labels\":{\"a/"
        "b.c_d-1\":\"\"},\"stdin_base64\":\"AAE=\","
        "\"collect\":[\"out.json\"],\"backend\":\"auto\",\"image\":\"python:3.11\"}";
    if (from_api(body, false, &req, &secret, &err) < 0)
        fail_msg("%s %s", err.pointer, err.detail);
    assert_int_equal(req.timeout.ns, 250000000);
    assert_int_equal(req.deadline.ns, now.ns + 1500000000);
    assert_int_equal(req.priority, 0);
    assert_string_equal(req.retry, "always");
    assert_int_equal(secret.command.n, 4);
    assert_string_equal(secret.command.v[2].p, "echo $A | wc");
    assert_int_equal(secret.files.n, 2);
    assert_memory_equal(secret.files.v[0].content.p, "t\0", 2);
    assert_int_equal(secret.files.v[0].content.n, 2);
    assert_true(secret.files.v[1].executable && (unsigned char)secret.files.v[1].content.p[0] == 0xff);
    assert_int_equal(secret.stdin_data.n, 2);
    assert_string_equal(secret.cwd, "/tmp");
    assert_int_equal(secret.collect.n, 1);
    stk_request_done(&req);
    stk_run_secret_done(&secret);
}

static void an_empty_stdin_is_not_an_absent_one(void **state)
{
    stk_request req;
    stk_run_secret secret;
    stk_err err;
    assert_int_equal(from_api(RUN("\"stdin\":\"\""), false, &req, &secret, &err), 0);
    assert_true(secret.stdin_data.set && secret.stdin_data.n == 0);
    stk_request_done(&req);
    stk_run_secret_done(&secret);
}

/* {"agent":"a","command":["x", <n bytes>, …]} */
static int with_arguments(const size_t *sizes, size_t n, size_t env, stk_err *err)
{
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(8 * 1048576);
    char *fill STK_AUTO(stk_freep) = stk_xcalloc(1, 2 * 1048576);
    memset(fill, 'y', 2 * 1048576);
    stk_request req;
    stk_run_secret secret;
    stk_buf_text(&body, "{\"agent\":\"a\",\"command\":[\"x\"");
    for (size_t i = 0; i < n; i++) {
        stk_buf_text(&body, ",\"");
        stk_buf_add(&body, fill, sizes[i]);
        stk_buf_text(&body, "\"");
    }
    stk_buf_text(&body, "],\"env\":{\"A\":\"");
    stk_buf_add(&body, fill, env);
    stk_buf_text(&body, "\"}}");
    int rc = from_api(body.p, false, &req, &secret, err);
    if (rc == 0) {
        stk_request_done(&req);
        stk_run_secret_done(&secret);
    }
    return rc;
}

static void what_exec_could_not_take_is_too_large(void **state)
{
    const size_t most = STK_ARG_MAX_ONE - 1; /* the kernel counts the terminating NUL */
    size_t sizes[9];
    stk_err err;
    sizes[0] = most;
    assert_int_equal(with_arguments(sizes, 1, 0, &err), 0);
    sizes[0] = most + 1;
    assert_error(with_arguments(sizes, 1, 0, &err), &err, STK_E_TOO_LARGE, "/command/1", "128 KiB");
    assert_non_null(strstr(err.detail, "131071"));
    assert_non_null(strstr(err.detail, "128 KiB"));
    sizes[0] = 200000;
    assert_error(with_arguments(sizes, 1, 0, &err), &err, STK_E_TOO_LARGE, "/command/1", "200 kB");
    assert_int_equal(stk_code_http(err.code), 413);
    assert_int_equal(with_arguments(sizes, 0, most - 2, &err), 0);
    assert_error(with_arguments(sizes, 0, most - 1, &err), &err, STK_E_TOO_LARGE, "/env/A", "A=…");
    for (size_t i = 0; i < 9; i++)
        sizes[i] = most;
    assert_int_equal(with_arguments(sizes, 7, most - 64, &err), 0);
    assert_error(with_arguments(sizes, 8, 0, &err), &err, STK_E_TOO_LARGE, "/command", "1 MiB");
    assert_non_null(strstr(err.detail, "1048576"));
}

/* Repeats `unit` (with %d) n times between head and tail. */
static int counted(const char *head, const char *unit, int n, const char *tail, stk_err *err)
{
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(1048576);
    stk_request req;
    stk_run_secret secret;
    stk_buf_text(&body, head);
    for (int i = 0; i < n; i++) {
        char text[64];
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(text, sizeof(text), unit, i);
        stk_buf_fmt(&body, "%s%s", i ? "," : "", text);
    }
    stk_buf_text(&body, tail);
    int rc = from_api(body.p, false, &req, &secret, err);
    if (rc == 0) {
        stk_request_done(&req);
        stk_run_secret_done(&secret);
    }
    return rc;
}

static void counts_are_bounded(void **state)
{
    static const struct {
        const char *head, *unit, *tail;
        int most;
        stk_code code;
        const char *pointer;
    } rows[] = {
        {"{\"agent\":\"a\",\"command\":[", "\"x%d\"", "]}", STK_ARGS_MAX, STK_E_TOO_LARGE, "/command"},
        {"{\"agent\":\"a\",\"command\":\"x\",\"env\":{", "\"A%d\":\"x\"", "}}", STK_ENV_MAX, STK_E_FIELD,
         "/env"},
        {"{\"agent\":\"a\",\"command\":\"x\",\"labels\":{", "\"a%d\":\"x\"", "}}", STK_LABELS_MAX,
         STK_E_FIELD, "/labels"},
        {"{\"agent\":\"a\",\"command\":\"x\",\"files\":[", "{\"path\":\"f%d\",\"content\":\"\"}", "]}",
         STK_FILES_MAX, STK_E_FIELD, "/files"},
        {"{\"agent\":\"a\",\"command\":\"x\",\"collect\":[", "\"f%d\"", "]}", STK_FILES_MAX, STK_E_FIELD,
         "/collect"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_err err;
        if (counted(rows[i].head, rows[i].unit, rows[i].most, rows[i].tail, &err) < 0)
            fail_msg("%s %s %s", rows[i].pointer, err.pointer, err.detail);
        int rc = counted(rows[i].head, rows[i].unit, rows[i].most + 1, rows[i].tail, &err);
        assert_error(rc, &err, rows[i].code, rows[i].pointer, "one too many");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_run_body_is_refused_with_pointer_and_reason),
        cmocka_unit_test(a_plan_knows_its_five_fields_only),
        cmocka_unit_test(the_documented_body_is_taken),
        cmocka_unit_test(everything_that_may_be_given_arrives),
        cmocka_unit_test(an_empty_stdin_is_not_an_absent_one),
        cmocka_unit_test(what_exec_could_not_take_is_too_large),
        cmocka_unit_test(counts_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
