#include "tests/unit/gateway/unit.h"
#include "api-gateway/routes.h"
#include "api-gateway/texts.h"
#include "proto/base/json.h"
#include <ctype.h>

static void a_path_finds_its_handler(void **state)
{
    static const struct {
        const char *method, *path;
        void (*handle)(stk_gw_exchange *ex);
        const char *param;
    } rows[] = {
        {"GET", "/", stk_gw_console, ""},
        {"GET", "/v1/runs", stk_gw_runs_list, ""},
        {"POST", "/v1/runs", stk_gw_runs_post, ""},
        {"GET", "/v1/runs/run-1", stk_gw_run_get, "run-1"},
        {"HEAD", "/v1/runs/run-1", stk_gw_run_get, "run-1"},
        {"GET", "/v1/runs/a%2Fb", stk_gw_run_get, "a/b"},
        {"POST", "/v1/runs/run-1/cancel", stk_gw_run_cancel, "run-1"},
        {"GET", "/v1/runs/run-1/events", stk_gw_run_events, "run-1"},
        {"PUT", "/v1/pools/p", stk_gw_pool_put, "p"},
        {"PUT", "/api/admin/platform/agent-sandbox", stk_gw_sandbox_put, ""},
        {"POST", "/api/admin/platform/agent-sandbox/run", stk_gw_run, ""},
        {"DELETE", "/v1/tokens/tok-1", stk_gw_token_delete, "tok-1"},
    };
    char param[STK_AGENT_MAX], allow[64];
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_err err;
        const stk_gw_route *route =
            stk_gw_route_find(stk_str_of(rows[i].method), stk_str_of(rows[i].path), param, allow, &err);
        if (!route || route->handle != rows[i].handle)
            fail_msg("%s %s", rows[i].method, rows[i].path);
        assert_string_equal(param, rows[i].param);
    }
}

static void what_is_no_path_is_not_found(void **state)
{
    static const char *const rows[] = {"//",
                                       "/v1",
                                       "/v1/runs/",
                                       "/v1//runs",
                                       "/v1/runs//cancel",
                                       "/v1/runs/%zz",
                                       "/v1/runs/%00",
                                       "/V1/runs",
                                       "/v1/runs/a/b/c",
                                       "/healthz/",
                                       "/api/admin/platform",
                                       "/v1/runs/..",
                                       "*"};
    char param[STK_AGENT_MAX], allow[64];
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_err err;
        const stk_gw_route *route =
            stk_gw_route_find(STK_STR("GET"), stk_str_of(rows[i]), param, allow, &err);
        if (route && strcmp(rows[i], "/v1/runs/..") != 0)
            fail_msg("found: %s", rows[i]);
        if (!route)
            assert_int_equal(err.code, STK_E_NOT_FOUND);
    }
}

static void a_wrong_method_names_the_right_ones(void **state)
{
    static const struct {
        const char *method, *path, *allow;
    } rows[] = {
        {"DELETE", "/v1/runs", "POST, GET, HEAD"},
        {"POST", "/api/admin/platform/agent-sandbox", "GET, HEAD, PUT"},
        {"GET", "/v1/runs/x/cancel", "POST"},
        {"get", "/healthz", "GET, HEAD"},
        {"HEAD", "/api/admin/platform/agent-sandbox/run", "POST"},
    };
    char param[STK_AGENT_MAX], allow[64];
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_err err;
        assert_null(
            stk_gw_route_find(stk_str_of(rows[i].method), stk_str_of(rows[i].path), param, allow, &err));
        assert_int_equal(err.code, STK_E_METHOD);
        assert_string_equal(allow, rows[i].allow);
    }
}

static stk_json *openapi(void)
{
    stk_json *doc = NULL;
    stk_err err;
    if (stk_json_parse(stk_gw_text_openapi(), NULL, &doc, &err) < 0)
        fail_msg("%s", err.detail);
    return doc;
}

static void lower(const char *text, char out[16])
{
    size_t i = 0;
    for (; text[i] && i < 15; i++)
        out[i] = (char)tolower(text[i]);
    out[i] = '\0';
}

static bool has_query(stk_jv op, stk_str name)
{
    stk_jv list = stk_jv_get(op, "parameters");
    for (stk_jv one = stk_jv_first(list); !stk_jv_is(one, STK_J_NONE); one = stk_jv_next(one))
        if (stk_str_eq(stk_jv_str(stk_jv_get(one, "name")), name) &&
            stk_str_eq(stk_jv_str(stk_jv_get(one, "in")), STK_STR("query")))
            return true;
    return false;
}

static size_t count_queries(stk_jv op)
{
    size_t n = 0;
    stk_jv list = stk_jv_get(op, "parameters");
    for (stk_jv one = stk_jv_first(list); !stk_jv_is(one, STK_J_NONE); one = stk_jv_next(one))
        n += stk_str_eq(stk_jv_str(stk_jv_get(one, "in")), STK_STR("query"));
    return n;
}

static void every_route_is_described_with_its_scope_and_parameters(void **state)
{
    stk_json *doc STK_AUTO(stk_json_freep) = openapi();
    for (size_t i = 0; i < stk_gw_nroutes; i++) {
        const stk_gw_route *route = &stk_gw_routes[i];
        char method[16];
        lower(route->method, method);
        stk_jv op = stk_jv_get(stk_jv_get(stk_jv_get(stk_json_root(doc), "paths"), route->path), method);
        if (!stk_jv_is(op, STK_J_OBJECT))
            fail_msg("not described: %s %s", route->method, route->path);
        stk_str scope = stk_jv_str(stk_jv_get(op, "x-scope"));
        if (!stk_str_eq(scope, stk_str_of(stk_scope_text(route->scope))))
            fail_msg("%s %s: another scope", route->method, route->path);
        size_t n = 0;
        for (const char *q = route->query; *q; n++) {
            size_t len = strcspn(q, "|");
            if (!has_query(op, stk_str_n(q, len)))
                fail_msg("%s %s: %.*s is not described", route->method, route->path, (int)len, q);
            q += len + (q[len] == '|');
        }
        assert_int_equal(n, count_queries(op));
        assert_int_equal(stk_jv_is(stk_jv_get(op, "requestBody"), STK_J_OBJECT), route->body == STK_GW_JSON);
    }
}

static void everything_described_is_a_route(void **state)
{
    stk_json *doc STK_AUTO(stk_json_freep) = openapi();
    size_t n = 0;
    stk_jv paths = stk_jv_get(stk_json_root(doc), "paths");
    for (stk_jv path = stk_jv_first(paths); !stk_jv_is(path, STK_J_NONE); path = stk_jv_next(path))
        n += stk_jv_count(path);
    assert_int_equal(n, stk_gw_nroutes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_finds_its_handler),
        cmocka_unit_test(what_is_no_path_is_not_found),
        cmocka_unit_test(a_wrong_method_names_the_right_ones),
        cmocka_unit_test(every_route_is_described_with_its_scope_and_parameters),
        cmocka_unit_test(everything_described_is_a_route),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
