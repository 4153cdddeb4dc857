/* Configuration through the API: versions, weakening, sealed values. */
#include "tests/unit/gateway/suite.h"

static void it_is_off_until_somebody_turns_it_on(void **state)
{
    fx *f = *state;
    reply *r = fx_expect(f, 200, "GET", CFG, "", NULL);
    assert_false(stk_jv_bool(reply_at(r, "enabled")));
    assert_int_equal(stk_jv_count(reply_at(r, "agents")), 0);
    assert_true(reply_has_header(r, "ETag: \"0\"\r\n"));
}

static void the_documented_put_works_as_it_stands(void **state)
{
    fx *f = *state;
    reply *r = fx_expect(f, 200, "PUT", CFG, "",
                         "{\"enabled\": true, \"agents\": {\"helper\": {\"allow\": [\"api.vendor.com\"]}}, "
                         "\"reason\": \"CHG-1042\"}");
    assert_int_equal(reply_int(r, "version"), 1);
    assert_true(stk_jv_is(reply_at(r, "before"), STK_J_NULL));
    assert_string_equal(reply_text(r, "after/agents/helper/allow/0"), "api.vendor.com");
    assert_string_equal(reply_text(r, "weakening/0/pointer"), "/agents/helper/allow/0");
    assert_true(reply_has_header(r, "ETag: \"1\"\r\n"));
    r = fx_expect(f, 200, "GET", CFG, "", NULL);
    assert_true(stk_jv_bool(reply_at(r, "enabled")));
    assert_true(reply_has_header(r, "ETag: \"1\"\r\n"));
    assert_int_equal(fx_audit_count(f, STK_AUDIT_CONFIG_UPDATE), 1);
}

static void what_get_shows_can_be_put_back(void **state)
{
    fx *f = *state;
    fx_enable(f);
    reply *r = fx_expect(f, 200, "GET", CFG, "", NULL);
    char *text STK_AUTO(stk_freep) = stk_xmemdup(r->body.p, r->body.n);
    r = fx_expect(f, 200, "PUT", CFG, "", text);
    assert_int_equal(reply_int(r, "version"), 2);
    assert_int_equal(stk_jv_count(reply_at(r, "weakening")), 0);
}

static void a_loosening_needs_a_reason_and_tightening_none(void **state)
{
    static const struct {
        const char *body;
        int without;
        const char *pointer;
    } rows[] = {
        {"{\"enabled\":true,\"agents\":{\"a\":{},\"b\":{}}", 200, NULL},
        {"{\"enabled\":true,\"agents\":{\"a\":{\"allow\":[\"x.org\"]},\"b\":{}}", 422, "/agents/a/allow/0"},
        {"{\"enabled\":true,\"agents\":{\"a\":{\"allow\":[\"*.x.org\"]},\"b\":{}}", 422, "/agents/a/allow/0"},
        {"{\"enabled\":true,\"agents\":{\"a\":{},\"b\":{}}", 200, NULL},
        {"{\"enabled\":true,\"agents\":{\"a\":{\"limits\":{\"pids\":4096}},\"b\":{}}", 422, NULL},
        {"{\"enabled\":true,\"agents\":{\"a\":{\"limits\":{\"pids\":64}},\"b\":{}}", 200, NULL},
        {"{\"enabled\":true,\"agents\":{\"a\":{}}", 422, NULL},
        {"{\"enabled\":false", 422, NULL},
    };
    fx *f = *state;
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        char plain[512], reasoned[512];
        snprintf(plain, sizeof(plain), "%s}", rows[i].body);
        snprintf(reasoned, sizeof(reasoned), "%s,\"reason\":\"CHG-1\"}", rows[i].body);
        reply *r = fx_expect(f, rows[i].without, "PUT", CFG, "", plain);
        if (rows[i].without == 200)
            continue;
        assert_string_equal(reply_text(r, "pointer"), "/reason");
        snprintf(plain, sizeof(plain), "%s,\"reason\":\" \\t\\u0000\\u007f\"}", rows[i].body);
        r = fx_expect(f, 422, "PUT", CFG, "", plain);
        assert_string_equal(reply_text(r, "pointer"), "/reason");
        r = fx_expect(f, 200, "PUT", CFG, "", reasoned);
        assert_true(stk_jv_count(reply_at(r, "weakening")) > 0);
        if (rows[i].pointer)
            assert_string_equal(reply_text(r, "weakening/0/pointer"), rows[i].pointer);
    }
}

static void if_match_guards_against_lost_updates(void **state)
{
    fx *f = *state;
    static const char body[] = "{\"enabled\":true,\"agents\":{}}";
    fx_expect(f, 412, "PUT", CFG, "If-Match: \"1\"\r\n", body);
    fx_expect(f, 412, "PUT", CFG, "If-Match: *\r\n", body);
    fx_expect(f, 200, "PUT", CFG, "If-Match: \"0\"\r\n", body);
    reply *r = fx_expect(f, 412, "PUT", CFG, "If-Match: \"0\"\r\n", body);
    assert_string_equal(reply_text(r, "code"), "version_mismatch");
    fx_expect(f, 412, "PUT", CFG, "If-Match: W/\"1\"\r\n", body);
    fx_expect(f, 200, "PUT", CFG, "If-Match: \"7\", \"1\"\r\n", body);
    fx_expect(f, 200, "PUT", CFG, "If-Match: *\r\n", body);
    assert_int_equal(reply_int(fx_expect(f, 200, "PUT", CFG, "If-Match: 3\r\n", body), "version"), 4);
}

static void values_of_variables_are_sealed_and_never_shown(void **state)
{
    fx *f = *state;
    fx_expect(f, 200, "PUT", CFG, "",
              "{\"enabled\":true,\"agents\":{\"helper\":{\"env\":{\"KEY\":\"s3cr3t-value\",\"B\":\"2\"}}}}");
    reply *r = fx_expect(f, 200, "GET", CFG, "", NULL);
    assert_string_equal(reply_text(r, "agents/helper/env/KEY"), "***");
    r = fx_expect(f, 200, "PUT", CFG, "",
                  "{\"enabled\":true,\"agents\":{\"helper\":{\"env\":{\"KEY\":\"unchanged\",\"B\":\"3\"}}}}");
    assert_null(memmem(r->all.p, r->all.n, "s3cr3t", 6));
    assert_null(memmem(r->all.p, r->all.n, "sealed:", 7));
    r = fx_expect(f, 422, "PUT", CFG, "",
                  "{\"enabled\":true,\"agents\":{\"helper\":{\"env\":{\"NEW\":\"unchanged\"}}}}");
    assert_string_equal(reply_text(r, "pointer"), "/agents/helper/env/NEW");
    r = fx_expect(f, 422, "PUT", CFG, "",
                  "{\"enabled\":true,\"agents\":{\"helper\":{\"env\":{\"KEY\":\"***\"}}}}");
    assert_string_equal(reply_text(r, "pointer"), "/agents/helper/env/KEY");
    const char *const files[] = {"bus.db", "bus.db-wal", "state.db", "state.db-wal"};
    for (size_t i = 0; i < STK_COUNT(files); i++) {
        stk_buf bytes STK_AUTO(stk_buf_done) = STK_BUF((size_t)64 << 20);
        snprintf(f->path, sizeof(f->path), "%s/%s", f->dir, files[i]);
        if (stk_file_read(f->path, &bytes, NULL) == 0 && bytes.n)
            assert_null(memmem(bytes.p, bytes.n, "s3cr3t-value", 12));
    }
}

static void a_wrong_document_changes_nothing(void **state)
{
    static const struct {
        const char *body, *pointer;
    } rows[] = {
        {"{}", "/enabled"},
        {"{\"enabled\":1}", "/enabled"},
        {"{\"enabled\":true,\"agent\":{}}", "/agent"},
        {"{\"enabled\":true,\"backend\":\"chroot\"}", "/backend"},
        {"{\"enabled\":true,\"agents\":{\"a\":{\"allow\":[\"*\"]}}}", "/agents/a/allow/0"},
        {"{\"enabled\":true,\"agents\":{\"a\":{\"allow\":[\"*.com\"]}}}", "/agents/a/allow/0"},
        {"{\"enabled\":true,\"agents\":{\"a\":{\"allow\":[\"ok.org\",\"http://x\"]}}}", "/agents/a/allow/1"},
        {"{\"enabled\":true,\"agents\":{\"a\":{\"allow\":[\"x.org:0\"]}}}", "/agents/a/allow/0"},
        {"{\"enabled\":true,\"agents\":{\"a\":{\"allow\":[\"x.org:99999\"]}}}", "/agents/a/allow/0"},
        {"{\"enabled\":true,\"agents\":{\"a\":{\"allow\":[\"0x7f.1\"]}}}", "/agents/a/allow/0"},
        {"{\"enabled\":true,\"agents\":{\"a\":{\"allow\":[\"\"]}}}", "/agents/a/allow/0"},
        {"{\"enabled\":true,\"agents\":{\"a\":{\"limits\":{\"memory_bytes\":1}}}}",
         "/agents/a/limits/memory_bytes"},
        {"{\"enabled\":true,\"agents\":{\"a\":{\"tls\":\"maybe\"}}}", "/agents/a/tls"},
        {"{\"enabled\":true,\"agents\":{\"a/b\":{}}}", "/agents/a~1b"},
    };
    fx *f = *state;
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        reply *r = fx_expect(f, 422, "PUT", CFG, "", rows[i].body);
        if (strcmp(reply_text(r, "pointer"), rows[i].pointer) != 0)
            fail_msg("%s: %.*s", rows[i].body, (int)r->body.n, r->body.p);
    }
    assert_true(reply_has_header(fx_expect(f, 200, "GET", CFG, "", NULL), "ETag: \"0\"\r\n"));
    assert_int_equal(fx_audit_count(f, STK_AUDIT_CONFIG_UPDATE), 0);
}

static void the_organisations_policy_has_versions_of_its_own(void **state)
{
    fx *f = *state;
    fx_enable(f);
    reply *r = fx_expect(f, 200, "GET", ORG, "", NULL);
    assert_true(reply_has_header(r, "ETag: \"0\"\r\n"));
    r = fx_expect(f, 200, "PUT", ORG, "",
                  "{\"default\":\"deny\",\"allow\":[\"*.vendor.com\"],\"agents\":{\"helper\":{\"deny\":[\"x."
                  "vendor.com\"]}}}");
    assert_int_equal(reply_int(r, "version"), 1);
    assert_int_equal(stk_jv_count(reply_at(r, "weakening")), 0);
    r = fx_expect(f, 422, "PUT", ORG, "", "{\"default\":\"allow\"}");
    assert_string_equal(reply_text(r, "pointer"), "/reason");
    r = fx_expect(f, 200, "PUT", ORG, "If-Match: \"1\"\r\n", "{\"default\":\"allow\",\"reason\":\"CHG-2\"}");
    assert_string_equal(reply_text(r, "before/default"), "deny");
    assert_string_equal(reply_text(r, "after/default"), "allow");
    fx_expect(f, 412, "PUT", ORG, "If-Match: \"1\"\r\n", "{}");
    r = fx_expect(f, 422, "PUT", ORG, "", "{\"deny\":[\"*\"]}");
    assert_string_equal(reply_text(r, "pointer"), "/deny/0");
    assert_int_equal(fx_audit_count(f, STK_AUDIT_POLICY_UPDATE), 2);
}

static void pools_are_changed_one_by_one(void **state)
{
    fx *f = *state;
    fx_enable(f);
    reply *r = fx_expect(f, 200, "PUT", "/v1/pools/quick", "", "{\"agent\":\"helper\",\"target\":3}");
    assert_int_equal(reply_int(r, "version"), 1);
    fx_expect(f, 200, "PUT", "/v1/pools/other", "", "{\"agent\":\"helper\",\"target\":1,\"max\":4}");
    r = fx_expect(f, 200, "GET", "/v1/pools", "", NULL);
    assert_int_equal(stk_jv_count(reply_at(r, "pools")), 2);
    assert_string_equal(reply_text(r, "pools/1/name"), "quick");
    assert_int_equal(reply_int(r, "pools/1/warm"), 0);
    r = fx_expect(f, 200, "GET", "/v1/pools/quick", "", NULL);
    assert_int_equal(reply_int(r, "spec/target"), 3);
    assert_true(reply_has_header(r, "ETag: \"2\"\r\n"));
    r = fx_expect(f, 200, "PUT", "/v1/pools/quick", "If-Match: \"2\"\r\n",
                  "{\"agent\":\"helper\",\"target\":0}");
    assert_int_equal(reply_int(r, "before/target"), 3);
    assert_int_equal(reply_int(r, "after/target"), 0);
    fx_expect(f, 422, "PUT", "/v1/pools/quick", "", "{\"agent\":\"helper\",\"target\":5000}");
    fx_expect(f, 422, "PUT", "/v1/pools/BAD", "", "{\"agent\":\"helper\"}");
}

static void a_change_while_the_bus_is_away_changes_nothing(void **state)
{
    fx *f = *state;
    stk_bus_file_refuse(f->bus_file, true);
    fx_expect(f, 503, "PUT", CFG, "", "{\"enabled\":true}");
    stk_bus_file_refuse(f->bus_file, false);
    assert_true(reply_has_header(fx_expect(f, 200, "GET", CFG, "", NULL), "ETag: \"0\"\r\n"));
    assert_int_equal(reply_int(fx_expect(f, 200, "PUT", CFG, "", "{\"enabled\":true}"), "version"), 1);
}

static void changes_at_the_same_time_all_count_once(void **state)
{
    enum { N = 12 };
    fx *f = *state;
    int fds[N];
    stk_buf in[N];
    size_t open = N;
    for (int i = 0; i < N; i++) {
        char body[128], text[512];
        snprintf(body, sizeof(body), "{\"enabled\":true,\"agents\":{\"a%d\":{}},\"reason\":\"r\"}", i);
        snprintf(text, sizeof(text),
                 "PUT " CFG
                 " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                 strlen(body), body);
        fds[i] = fx_dial(f);
        stk_buf_init(&in[i], 65536);
        fx_send(f, fds[i], stk_str_of(text));
    }
    while (open) {
        fx_turn(f);
        open = 0;
        for (int i = 0; i < N; i++)
            open += fds[i] >= 0 && (fx_recv(fds[i], &in[i]) || (close(fds[i]), fds[i] = -1, false));
    }
    bool seen[N + 1] = {false};
    int changed = 0;
    for (int i = 0; i < N; i++) {
        const char *at = strstr(in[i].p, "{\"version\":");
        if (at) {
            long version = strtol(at + 11, NULL, 10);
            assert_in_range(version, 1, N);
            assert_false(seen[version]);
            seen[version] = true;
            changed++;
        } else {
            assert_non_null(strstr(in[i].p, "HTTP/1.1 409")); /* gave up, and said so */
        }
        stk_buf_done(&in[i]);
    }
    assert_true(changed > 0);
    assert_int_equal(fx_audit_count(f, STK_AUDIT_CONFIG_UPDATE), changed);
    char etag[32];
    snprintf(etag, sizeof(etag), "ETag: \"%d\"\r\n", changed);
    assert_true(reply_has_header(fx_expect(f, 200, "GET", CFG, "", NULL), etag));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(it_is_off_until_somebody_turns_it_on),
        T(the_documented_put_works_as_it_stands),
        T(what_get_shows_can_be_put_back),
        T(a_loosening_needs_a_reason_and_tightening_none),
        T(if_match_guards_against_lost_updates),
        T(values_of_variables_are_sealed_and_never_shown),
        T(a_wrong_document_changes_nothing),
        T(the_organisations_policy_has_versions_of_its_own),
        T(pools_are_changed_one_by_one),
        T(a_change_while_the_bus_is_away_changes_nothing),
        T(changes_at_the_same_time_all_count_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
