/* What is refused, and how it is said. */
#include "tests/unit/gateway/suite.h"

#define HELPER(members) "{\"agent\":\"helper\",\"command\":[\"true\"]," members "}"

static void text_that_is_no_json_is_a_400(void **state)
{
    static const char *const rows[] = {
        "",
        "{",
        "{}{}",
        "\xef\xbb\xbf{}",
        "{\"agent\":\"a\",\"agent\":\"b\"}",
        "{\"agent\":\"\\ud800\"}",
        "{\"x\":1e999}",
        "{\"x\":01}",
        "{\"x\":NaN}",
        "{'a':1}",
        "{\"a\":\"\t\"}",
        "{\"a\":\"\xff\"}",
        "[1,]",
        "nul",
    };
    fx *f = *state;
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        reply *r = fx_expect(f, 400, "POST", RUN, "", rows[i]);
        assert_string_equal(reply_text(r, "code"), "invalid_json");
    }
}

static void endless_nesting_and_size_are_stopped(void **state)
{
    fx *f = *state;
    size_t n = 100000;
    char *deep STK_AUTO(stk_freep) = stk_xcalloc(1, 2 * n + 1);
    memset(deep, '[', n);
    memset(deep + n, ']', n);
    fx_expect(f, 400, "POST", RUN, "", deep);
    size_t most = (1 << 20) + 1;
    char *large STK_AUTO(stk_freep) = stk_xcalloc(1, most + 1);
    memset(large, ' ', most);
    reply *r = fx_expect(f, 413, "POST", RUN, "", large);
    assert_string_equal(reply_text(r, "code"), "too_large");
    large[most - 1] = '\0';
    fx_expect(f, 400, "POST", RUN, "", large);
}

static void a_wrong_field_is_a_422_that_points_to_it(void **state)
{
    static const struct {
        const char *body, *pointer, *code;
    } rows[] = {
        {"[]", "", "invalid_field"},
        {"{}", "/agent", "missing_field"},
        {"{\"agent\":\"helper\"}", "/command", "missing_field"},
        {"{\"agent\":5,\"command\":[\"x\"]}", "/agent", "invalid_field"},
        {"{\"agent\":\"../x\",\"command\":[\"x\"]}", "/agent", "invalid_field"},
        {"{\"agent\":\"helper\",\"command\":[]}", "/command", "invalid_field"},
        {"{\"agent\":\"helper\",\"command\":\"\"}", "/command", "invalid_field"},
        {"{\"agent\":\"helper\",\"command\":\"a 'b\"}", "/command", "invalid_field"},
        {"{\"agent\":\"helper\",\"command\":7}", "/command", "invalid_field"},
        {"{\"agent\":\"helper\",\"command\":[\"a\\u0000b\"]}", "/command/0", "invalid_field"},
        {"{\"agent\":\"helper\",\"command\":[1]}", "/command/0", "invalid_field"},
        {HELPER("\"webhook\":\"http://x\""), "/webhook", "unknown_field"},
        {HELPER("\"nosuch\":1"), "/nosuch", "unknown_field"},
        {HELPER("\"timeout_seconds\":0"), "/timeout_seconds", "invalid_field"},
        {HELPER("\"timeout_seconds\":-1"), "/timeout_seconds", "invalid_field"},
        {HELPER("\"timeout_seconds\":1e300"), "/timeout_seconds", "invalid_field"},
        {HELPER("\"timeout_seconds\":\"5\""), "/timeout_seconds", "invalid_field"},
        {HELPER("\"timeout_seconds\":null"), "/timeout_seconds", "invalid_field"},
        {HELPER("\"priority\":10"), "/priority", "invalid_field"},
        {HELPER("\"priority\":9223372036854775808"), "/priority", "invalid_field"},
        {HELPER("\"env\":{\"1X\":\"v\"}"), "/env/1X", "invalid_field"},
        {HELPER("\"backend\":\"chroot\""), "/backend", "invalid_field"},
        {HELPER("\"files\":[{\"path\":\"../x\",\"content\":\"\"}]"), "/files/0/path", "invalid_field"},
    };
    fx *f = *state;
    fx_enable(f);
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        reply *r = fx_expect(f, 422, "POST", RUN, "", rows[i].body);
        if (strcmp(reply_text(r, "pointer"), rows[i].pointer) != 0 ||
            strcmp(reply_text(r, "code"), rows[i].code) != 0)
            fail_msg("%s: %.*s", rows[i].body, (int)r->body.n, r->body.p);
    }
    assert_int_equal(f->fleet.requests, 0);
}

static void an_argument_too_long_for_the_kernel_is_answered_at_submit(void **state)
{
    fx *f = *state;
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(1 << 20);
    fx_enable(f);
    stk_buf_text(&body, "{\"agent\":\"helper\",\"command\":[\"echo\",\"");
    for (int i = 0; i < 200000; i++)
        stk_buf_byte(&body, 'x');
    stk_buf_text(&body, "\"]}");
    reply *r = fx_expect(f, 413, "POST", RUN, "", body.p);
    assert_string_equal(reply_text(r, "pointer"), "/command/1");
}

static void unknown_and_malformed_parameters_are_named(void **state)
{
    static const struct {
        const char *method, *target;
        int status;
        const char *word;
    } rows[] = {
        {"GET", "/v1/runs?agnet=x", 400, "\"agnet\""},
        {"GET", "/v1/runs?agent=x&agent=y", 400, "twice"},
        {"GET", "/v1/runs?agent=%zz", 400, "agent"},
        {"GET", "/healthz?x", 400, "takes none"},
        {"GET", "/v1/runs?limit=0", 422, "limit"},
        {"GET", "/v1/runs?limit=1001", 422, "limit"},
        {"GET", "/v1/runs?limit=x", 422, "limit"},
        {"GET", "/v1/runs?state=done", 422, "state"},
        {"GET", "/v1/runs?agent=..", 422, "agent"},
        {"GET", "/v1/runs?label=x", 422, "label"},
        {"GET", "/v1/runs?cursor=x", 422, "cursor"},
        {"GET", "/v1/runs?tenant=A", 422, "tenant"},
        {"GET", "/v1/audit?since=yesterday", 422, "since"},
        {"GET", "/v1/audit?order=up", 422, "order"},
        {"GET", "/v1/audit?run=x", 422, "run"},
        {"GET", "/v1/audit?action=a%20b", 422, "action"},
        {"GET", "/v1/audit?cursor=x", 422, "cursor"},
    };
    fx *f = *state;
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        reply *r = fx_expect(f, rows[i].status, rows[i].method, rows[i].target, "", NULL);
        if (!strstr(reply_text(r, "detail"), rows[i].word))
            fail_msg("%s: %s", rows[i].target, reply_text(r, "detail"));
    }
    fx_expect(f, 422, "POST", RUN "?wait=soon", "", BODY);
    fx_expect(f, 422, "POST", RUN "?wait=601", "", BODY);
    fx_expect(f, 422, "POST", RUN "?wait=-1", "", BODY);
}

static void paths_and_methods_that_are_not_there(void **state)
{
    fx *f = *state;
    fx_expect(f, 404, "GET", "/v1/nothing", "", NULL);
    fx_expect(f, 404, "GET", "/v1/runs/run-0", "", NULL);
    fx_expect(f, 404, "GET", "/v1/runs/run-00000000000000000000000000", "", NULL);
    fx_expect(f, 404, "GET", "/v1/runs/run-00000000000000000000000000/events", "", NULL);
    fx_expect(f, 404, "POST", "/v1/runs/run-00000000000000000000000000/cancel", "", NULL);
    fx_expect(f, 404, "GET", "/v1/pools/none", "", NULL);
    fx_expect(f, 404, "DELETE", "/v1/tokens/tok-none", "", NULL);
    reply *r = fx_expect(f, 405, "DELETE", "/v1/runs", "", NULL);
    assert_true(reply_has_header(r, "Allow: POST, GET, HEAD\r\n"));
    assert_string_equal(reply_text(r, "code"), "method_not_allowed");
    fx_expect(f, 400, "GET", "/v1/runs", "", "{}");
    fx_expect(f, 422, "POST", "/v1/runs/run-00000000000000000000000000/cancel", "", "{\"why\":1}");
}

static void malformed_http_is_answered_in_the_same_shape(void **state)
{
    fx *f = *state;
    stk_buf in STK_AUTO(stk_buf_done) = STK_BUF(65536);
    int fd STK_AUTO(stk_closep) = fx_dial(f);
    fx_send(f, fd, STK_STR("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"));
    fx_until(f, !fx_recv(fd, &in));
    assert_non_null(strstr(in.p, "HTTP/1.1 400 "));
    assert_non_null(strstr(in.p, "application/problem+json"));
    assert_non_null(strstr(in.p, "\"code\":\"bad_host\""));
}

static void a_web_page_is_refused_without_tokens(void **state)
{
    fx *f = *state;
    fx_expect(f, 403, "GET", "/v1/runs", "Origin: http://localhost\r\n", NULL);
    fx_expect(f, 403, "GET", "/", "Host: rebound.example\r\n", NULL);
    fx_expect(f, 403, "POST", RUN, "Sec-Fetch-Site: cross-site\r\n", BODY);
    fx_expect(f, 200, "GET", "/", "Sec-Fetch-Site: none\r\n", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(text_that_is_no_json_is_a_400),
        T(endless_nesting_and_size_are_stopped),
        T(a_wrong_field_is_a_422_that_points_to_it),
        T(an_argument_too_long_for_the_kernel_is_answered_at_submit),
        T(unknown_and_malformed_parameters_are_named),
        T(paths_and_methods_that_are_not_there),
        T(malformed_http_is_answered_in_the_same_shape),
        T(a_web_page_is_refused_without_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
