/* Tokens, scopes, tenants. */
#define SUITE_TOKENS
#include "tests/unit/gateway/suite.h"

static const char *bearer(const char *token)
{
    static char text[160];
    snprintf(text, sizeof(text), "Authorization: Bearer %s\r\n", token);
    return text;
}

/* Makes a token through the API; its text stays until the eighth next one. */
static const char *mint(fx *f, const char *query, const char *body)
{
    static char texts[8][STK_TOKEN_TEXT];
    static unsigned at;
    char target[64];
    snprintf(target, sizeof(target), "/v1/tokens%s", query);
    reply *r = fx_expect(f, 201, "POST", target, "", body);
    char *out = texts[at++ % 8];
    snprintf(out, STK_TOKEN_TEXT, "%s", reply_text(r, "token"));
    return out;
}

static void nobody_gets_in_without_a_valid_token(void **state)
{
    static const char *const rows[] = {
        "Authorization: \r\n",
        "Authorization: Bearer\r\n",
        "Authorization: Bearer \r\n",
        "Authorization: Basic dTpw\r\n",
        "Authorization: Bearer stk_0\r\n",
        "Authorization: Bearer stk_0000000000000000000000000000000000000000000000000000000000000000\r\n",
    };
    fx *f = *state;
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        reply *r = fx_expect(f, 401, "GET", "/v1/runs", rows[i], NULL);
        assert_string_equal(reply_text(r, "code"), "unauthenticated");
        assert_true(reply_has_header(r, "WWW-Authenticate: Bearer\r\n"));
    }
    fx_expect(f, 200, "GET", "/v1/runs", "", NULL);
    fx_expect(f, 200, "GET", "/v1/runs", "Origin: http://console.example\r\n", NULL);
    fx_expect(f, 200, "GET", "/healthz", "Authorization: \r\n", NULL);
}

static void each_path_asks_for_its_scope(void **state)
{
    static const struct {
        const char *method, *target, *scope, *body;
    } rows[] = {
        {"POST", PLAN, "plan", BODY},
        {"POST", RUN, "runs.write", BODY},
        {"POST", "/v1/runs", "runs.write", BODY},
        {"GET", "/v1/runs", "runs.read", NULL},
        {"GET", "/v1/runs/run-00000000000000000000000000", "runs.read", NULL},
        {"GET", "/v1/runs/run-00000000000000000000000000/events", "runs.read", NULL},
        {"POST", "/v1/runs/run-00000000000000000000000000/cancel", "runs.write", NULL},
        {"GET", CFG, "config.read", NULL},
        {"PUT", CFG, "config.write", "{\"enabled\":true}"},
        {"GET", ORG, "config.read", NULL},
        {"PUT", ORG, "config.write", "{}"},
        {"GET", "/v1/pools", "config.read", NULL},
        {"PUT", "/v1/pools/p", "pools.write", "{\"agent\":\"a\"}"},
        {"GET", "/v1/audit", "audit.read", NULL},
        {"GET", "/v1/workers", "config.read", NULL},
        {"GET", "/v1/tokens", "admin", NULL},
        {"POST", "/v1/tokens", "admin", "{\"scopes\":[]}"},
        {"DELETE", "/v1/tokens/tok-0", "admin", NULL},
    };
    fx *f = *state;
    char none[STK_TOKEN_TEXT];
    snprintf(none, sizeof(none), "%s", mint(f, "", "{\"scopes\":[],\"label\":\"none\"}"));
    f->fleet.plan = "{}";
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        char body[96];
        reply *r = fx_expect(f, 403, rows[i].method, rows[i].target, bearer(none), rows[i].body);
        assert_string_equal(reply_text(r, "code"), "forbidden");
        assert_non_null(strstr(reply_text(r, "detail"), rows[i].scope));
        snprintf(body, sizeof(body), "{\"scopes\":[\"%s\"]}", rows[i].scope);
        r = fx_call(f, rows[i].method, rows[i].target, bearer(mint(f, "", body)), rows[i].body);
        if (r->status == 401 || r->status == 403 || !r->status)
            fail_msg("%s %s: %d with %s", rows[i].method, rows[i].target, r->status, rows[i].scope);
    }
}

static void a_loosening_without_the_scope_is_refused_named_and_recorded(void **state)
{
    fx *f = *state;
    const char *token = mint(f, "", "{\"scopes\":[\"config.write\"]}");
    fx_expect(f, 200, "PUT", CFG, bearer(token), "{\"enabled\":true,\"agents\":{\"helper\":{}}}");
    reply *r =
        fx_expect(f, 403, "PUT", CFG, bearer(token),
                  "{\"enabled\":true,\"agents\":{\"helper\":{\"allow\":[\"x.org\"]}},\"reason\":\"r\"}");
    assert_non_null(strstr(reply_text(r, "detail"), "governance.weaken"));
    assert_string_equal(reply_text(r, "weakening/0/pointer"), "/agents/helper/allow/0");
    assert_true(reply_has_header(fx_expect(f, 200, "GET", CFG, "", NULL), "ETag: \"1\"\r\n"));
    assert_int_equal(fx_audit_count(f, STK_AUDIT_REFUSAL), 1);
    fx_expect(f, 200, "PUT", CFG,
              bearer(mint(f, "", "{\"scopes\":[\"config.write\",\"governance.weaken\"]}")),
              "{\"enabled\":true,\"agents\":{\"helper\":{\"allow\":[\"x.org\"]}},\"reason\":\"r\"}");
}

static void tenants_do_not_see_each_other(void **state)
{
    fx *f = *state;
    char path[96];
    const char *token = mint(f, "?tenant=acme",
                             "{\"scopes\":[\"runs.write\",\"runs.read\",\"config.write\",\"config.read\","
                             "\"audit.read\"],\"label\":\"ci\"}");
    fx_expect(f, 200, "PUT", CFG, bearer(token), "{\"enabled\":true,\"agents\":{\"helper\":{}}}");
    assert_true(reply_has_header(fx_expect(f, 200, "GET", CFG, "", NULL), "ETag: \"0\"\r\n"));
    fx_expect(f, 409, "POST", RUN, "", BODY);
    reply *r = fx_expect(f, 200, "POST", RUN, bearer(token), BODY);
    assert_string_equal(f->fleet.last.tenant, "acme");
    assert_string_equal(f->fleet.last.actor, "token/ci");
    snprintf(path, sizeof(path), "/v1/runs/%s", reply_text(r, "run_id"));
    fx_expect(f, 404, "GET", path, "", NULL);
    fx_expect(f, 200, "GET", path, bearer(token), NULL);
    assert_int_equal(stk_jv_count(reply_at(fx_expect(f, 200, "GET", "/v1/runs", "", NULL), "runs")), 0);
    assert_int_equal(
        stk_jv_count(reply_at(fx_expect(f, 200, "GET", "/v1/runs?tenant=acme", "", NULL), "runs")), 1);
    fx_expect(f, 403, "GET", "/v1/runs?tenant=default", bearer(token), NULL);
}

static void one_key_in_two_tenants_is_two_runs(void **state)
{
    fx *f = *state;
    char headers[256];
    const char *token = mint(f, "?tenant=acme", "{\"scopes\":[\"runs.write\",\"config.write\"]}");
    fx_enable(f);
    fx_expect(f, 200, "PUT", CFG, bearer(token), "{\"enabled\":true,\"agents\":{\"helper\":{}}}");
    reply *a = fx_expect(f, 202, "POST", "/v1/runs", "Idempotency-Key: k\r\n", BODY);
    snprintf(headers, sizeof(headers), "Idempotency-Key: k\r\n%s", bearer(token));
    reply *b = fx_expect(f, 202, "POST", "/v1/runs", headers, BODY);
    assert_string_not_equal(reply_text(a, "id"), reply_text(b, "id"));
}

static void a_token_ends_when_it_expires_or_is_deleted(void **state)
{
    fx *f = *state;
    char path[96];
    reply *r = fx_expect(f, 201, "POST", "/v1/tokens", "", "{\"scopes\":[\"runs.read\"],\"label\":\"x\"}");
    const char *header = bearer(reply_text(r, "token"));
    snprintf(path, sizeof(path), "/v1/tokens/%s", reply_text(r, "details/id"));
    assert_null(memmem(r->body.p, r->body.n, "hash", 4));
    fx_expect(f, 200, "GET", "/v1/runs", header, NULL);
    r = fx_expect(f, 200, "GET", "/v1/tokens", "", NULL);
    assert_int_equal(stk_jv_count(reply_at(r, "tokens")), 1);
    assert_null(memmem(r->body.p, r->body.n, "hash", 4));
    fx_expect(f, 204, "DELETE", path, "", NULL);
    fx_expect(f, 401, "GET", "/v1/runs", header, NULL);
    fx_expect(f, 404, "DELETE", path, "", NULL);
    header = bearer(mint(f, "", "{\"scopes\":[\"runs.read\"],\"expires_seconds\":1}"));
    fx_expect(f, 200, "GET", "/v1/runs", header, NULL);
    fx_until(f, fx_call(f, "GET", "/v1/runs", header, NULL)->status == 401);
    assert_int_equal(fx_audit_count(f, STK_AUDIT_TOKEN_CREATE), 2);
    fx_expect(f, 422, "POST", "/v1/tokens", "", "{\"scopes\":[\"root\"]}");
    fx_expect(f, 422, "POST", "/v1/tokens", "", "{\"scopes\":[],\"expires_seconds\":0}");
}

static void tokens_outlive_the_gateway(void **state)
{
    fx *f = *state;
    const char *header = bearer(mint(f, "", "{\"scopes\":[\"runs.read\"]}"));
    fx_stop(f);
    free((char *)(uintptr_t)f->spec.tokens_file);
    f->spec.tokens_file = NULL;
    fx_start(f);
    fx_expect(f, 200, "GET", "/v1/runs", header, NULL);
    fx_expect(f, 401, "GET", "/v1/runs", "", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(nobody_gets_in_without_a_valid_token),
        T(each_path_asks_for_its_scope),
        T(a_loosening_without_the_scope_is_refused_named_and_recorded),
        T(tenants_do_not_see_each_other),
        T(one_key_in_two_tenants_is_two_runs),
        T(a_token_ends_when_it_expires_or_is_deleted),
        T(tokens_outlive_the_gateway),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
