#include "proto/policy/weaken.h"
#include "tests/unit/policy/unit.h"

/* A document out of its JSON; the reason that a body carries is not wanted here. */
static stk_sandbox_doc sandbox(const char *json)
{
    stk_sandbox_doc doc = {.enabled = false};
    stk_json *text = NULL;
    stk_err err;
    if (stk_json_parse(stk_str_of(json), NULL, &text, &err) < 0 ||
        stk_sandbox_doc_decode(stk_json_root(text), false, &doc, NULL, &err) < 0 ||
        stk_sandbox_doc_check(&doc, &err) < 0)
        fail_msg("%s: %s %s", json, err.pointer, err.detail);
    stk_json_free(text);
    return doc;
}

static stk_org_doc organisation(const char *json)
{
    stk_org_doc doc = {.nagents = 0};
    stk_json *text = NULL;
    stk_err err;
    if (stk_json_parse(stk_str_of(json), NULL, &text, &err) < 0 ||
        stk_org_doc_decode(stk_json_root(text), &doc, NULL, &err) < 0 || stk_org_doc_check(&doc, &err) < 0)
        fail_msg("%s: %s %s", json, err.pointer, err.detail);
    stk_json_free(text);
    return doc;
}

/* The pointers, joined by spaces. */
static void pointers(const stk_weakenings *list, char *out, size_t size)
{
    size_t n = 0;
    out[0] = '\0';
    for (size_t i = 0; i < list->n; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", i ? " " : "", list->v[i].pointer);
}

#define AGENT(members) "{\"enabled\":true,\"agents\":{\"h\":{" members "}}}"

static void changes_of_the_sandbox_document(void **state)
{
    static const struct {
        const char *what, *before, *after, *pointers;
    } rows[] = {
        {"the first listing with an entry", NULL, AGENT("\"allow\":[\"a.com\"]"), "/agents/h/allow/0"},
        {"the first listing with an empty list", NULL, AGENT("\"allow\":[]"), ""},
        {"the feature turned on", "{\"enabled\":false,\"agents\":{}}", "{\"enabled\":true,\"agents\":{}}",
         ""},
        {"the feature turned off", "{\"enabled\":true,\"agents\":{}}", "{\"enabled\":false,\"agents\":{}}",
         "/enabled"},
        {"off stays off", "{\"enabled\":false,\"agents\":{}}", "{\"enabled\":false,\"agents\":{}}", ""},
        {"nothing changed", AGENT("\"allow\":[\"a.com\"]"), AGENT("\"allow\":[\"a.com\"]"), ""},
        {"written another way", AGENT("\"allow\":[\"a.com\"]"), AGENT("\"allow\":[\"A.COM.\"]"), ""},
        {"an entry added", AGENT("\"allow\":[\"a.com\"]"), AGENT("\"allow\":[\"a.com\",\"b.com\"]"),
         "/agents/h/allow/1"},
        {"an entry removed", AGENT("\"allow\":[\"a.com\",\"b.com\"]"), AGENT("\"allow\":[\"a.com\"]"), ""},
        {"an entry made broader", AGENT("\"allow\":[\"x.a.com\"]"), AGENT("\"allow\":[\"*.a.com\"]"),
         "/agents/h/allow/0"},
        {"an entry made narrower", AGENT("\"allow\":[\"*.a.com\"]"),
         AGENT("\"allow\":[\"x.a.com\",\"*.y.a.com\"]"), ""},
        {"the apex beside its wildcard", AGENT("\"allow\":[\"*.a.com\"]"), AGENT("\"allow\":[\"a.com\"]"),
         "/agents/h/allow/0"},
        {"a port added", AGENT("\"allow\":[\"a.com\"]"), AGENT("\"allow\":[\"a.com\",\"a.com:8443\"]"),
         "/agents/h/allow/1"},
        {"a port narrowed", AGENT("\"allow\":[\"a.com\"]"), AGENT("\"allow\":[\"a.com:443\"]"), ""},
        {"a port widened", AGENT("\"allow\":[\"a.com:443\"]"), AGENT("\"allow\":[\"a.com\"]"),
         "/agents/h/allow/0"},
        {"an agent taken off", AGENT("\"allow\":[]"), "{\"enabled\":true,\"agents\":{}}", "/agents/h"},
        {"tls weaker", AGENT("\"tls\":\"require\""), AGENT("\"tls\":\"match\""), "/agents/h/tls"},
        {"tls dropped to the default", AGENT("\"tls\":\"require\""), AGENT("\"allow\":[]"), "/agents/h/tls"},
        {"tls off", AGENT("\"allow\":[]"), AGENT("\"tls\":\"off\""), "/agents/h/tls"},
        {"tls off at first listing", NULL, AGENT("\"tls\":\"off\""), "/agents/h/tls"},
        {"tls stronger", AGENT("\"tls\":\"off\""), AGENT("\"tls\":\"require\""), ""},
        {"firecracker given up", AGENT("\"backend\":\"firecracker\""), AGENT("\"backend\":\"oci\""),
         "/agents/h/backend"},
        {"firecracker left to choice", AGENT("\"backend\":\"firecracker\""), AGENT("\"allow\":[]"),
         "/backend"},
        {"the strongest given up", AGENT("\"allow\":[]"), AGENT("\"backend\":\"docker\""),
         "/agents/h/backend"},
        {"left to choice", AGENT("\"backend\":\"docker\""), AGENT("\"backend\":\"auto\""), ""},
        {"one container for another", AGENT("\"backend\":\"docker\""), AGENT("\"backend\":\"oci\""), ""},
        {"firecracker taken", AGENT("\"backend\":\"docker\""), AGENT("\"backend\":\"firecracker\""), ""},
        {"a backend at first listing", NULL, AGENT("\"backend\":\"oci\""), ""},
        {"for all at once", "{\"enabled\":true,\"backend\":\"firecracker\",\"agents\":{\"a\":{},\"b\":{}}}",
         "{\"enabled\":true,\"backend\":\"oci\",\"agents\":{\"a\":{},\"b\":{}}}", "/backend"},
        {"runtime class no longer required",
         "{\"enabled\":true,\"require_runtime_class\":true,\"agents\":{}}",
         "{\"enabled\":true,\"agents\":{}}", "/require_runtime_class"},
        {"k8s with a runtime class given up",
         "{\"enabled\":true,\"require_runtime_class\":true,\"backend\":\"k8s\",\"agents\":{\"h\":{}}}",
         "{\"enabled\":true,\"require_runtime_class\":true,\"backend\":\"oci\",\"agents\":{\"h\":{}}}",
         "/backend"},
        {"memory raised", AGENT("\"limits\":{}"), AGENT("\"limits\":{\"memory_bytes\":1073741824}"),
         "/agents/h/limits/memory_bytes"},
        {"memory lowered", AGENT("\"limits\":{\"memory_bytes\":1073741824}"), AGENT("\"limits\":{}"), ""},
        {"time raised by less than a second", AGENT("\"limits\":{\"timeout_seconds\":10}"),
         AGENT("\"limits\":{\"timeout_seconds\":10.5}"), "/agents/h/limits/timeout_seconds"},
        {"an image", AGENT("\"image\":\"a:1\""), AGENT("\"image\":\"b:2\""), ""},
        {"an environment", AGENT("\"allow\":[]"), AGENT("\"env\":{\"A\":\"b\"}"), ""},
        {"two things at once", AGENT("\"allow\":[\"a.com\"]"), AGENT("\"allow\":[\"b.com\"],\"tls\":\"off\""),
         "/agents/h/allow/0 /agents/h/tls"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_sandbox_doc before = {.enabled = false}, after = sandbox(rows[i].after);
        if (rows[i].before)
            before = sandbox(rows[i].before);
        stk_weakenings list;
        char got[1024];
        stk_weaken_sandbox(rows[i].before ? &before : NULL, &after, &list);
        pointers(&list, got, sizeof(got));
        if (strcmp(got, rows[i].pointers) != 0)
            fail_msg("%s: \"%s\", not \"%s\"", rows[i].what, got, rows[i].pointers);
        stk_weakenings_done(&list);
        stk_sandbox_doc_done(&before);
        stk_sandbox_doc_done(&after);
    }
}

static void changes_of_the_organisation_policy(void **state)
{
    static const struct {
        const char *what, *before, *after, *pointers;
    } rows[] = {
        {"the first policy", NULL, "{\"default\":\"allow\",\"allow\":[\"a.com\"]}", ""},
        {"default deny to allow", "{\"default\":\"deny\"}", "{\"default\":\"allow\"}", "/default"},
        {"default allow to deny", "{\"default\":\"allow\"}", "{\"default\":\"deny\"}", ""},
        {"an allow-list dropped", "{\"allow\":[\"a.com\"]}", "{}", "/default"},
        {"a denial removed", "{\"deny\":[\"a.com\",\"b.com\"]}", "{\"deny\":[\"b.com\"]}", "/deny"},
        {"a denial made wider", "{\"deny\":[\"x.a.com\"]}", "{\"deny\":[\"*.a.com\"]}", ""},
        {"a denial made narrower", "{\"deny\":[\"*.a.com\"]}", "{\"deny\":[\"x.a.com\"]}", "/deny"},
        {"a denial down to one port", "{\"deny\":[\"a.com\"]}", "{\"deny\":[\"a.com:443\"]}", "/deny"},
        {"an allowance added under deny", "{\"default\":\"deny\",\"allow\":[\"a.com\"]}",
         "{\"default\":\"deny\",\"allow\":[\"a.com\",\"b.com\"]}", "/allow/1"},
        {"an allowance added under allow", "{\"default\":\"allow\"}",
         "{\"default\":\"allow\",\"allow\":[\"b.com\"]}", ""},
        {"an allowance removed", "{\"default\":\"deny\",\"allow\":[\"a.com\"]}", "{\"default\":\"deny\"}",
         ""},
        {"an agent's default", "{\"default\":\"allow\",\"agents\":{\"h\":{\"default\":\"deny\"}}}",
         "{\"default\":\"allow\"}", "/agents/h/default"},
        {"an agent's allowance", "{\"default\":\"deny\"}",
         "{\"default\":\"deny\",\"agents\":{\"h\":{\"allow\":[\"a.com\"]}}}", "/agents/h/allow/0"},
        {"an agent's allowance that all have", "{\"default\":\"deny\",\"allow\":[\"*.a.com\"]}",
         "{\"default\":\"deny\",\"allow\":[\"*.a.com\"],\"agents\":{\"h\":{\"allow\":[\"x.a.com\"]}}}", ""},
        {"an agent's denial removed", "{\"agents\":{\"h\":{\"deny\":[\"a.com\"]}}}",
         "{\"agents\":{\"h\":{}}}", "/agents/h/deny"},
        {"an agent's denial now for all", "{\"agents\":{\"h\":{\"deny\":[\"a.com\"]}}}",
         "{\"deny\":[\"a.com\"]}", ""},
        {"an allowance for all that a stricter agent gains",
         "{\"default\":\"allow\",\"agents\":{\"h\":{\"default\":\"deny\"}}}",
         "{\"default\":\"allow\",\"allow\":[\"b.com\"],\"agents\":{\"h\":{\"default\":\"deny\"}}}",
         "/allow/0"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_org_doc before = {.nagents = 0}, after = organisation(rows[i].after);
        if (rows[i].before)
            before = organisation(rows[i].before);
        stk_weakenings list;
        char got[1024];
        stk_weaken_org(rows[i].before ? &before : NULL, &after, &list);
        pointers(&list, got, sizeof(got));
        if (strcmp(got, rows[i].pointers) != 0)
            fail_msg("%s: \"%s\", not \"%s\"", rows[i].what, got, rows[i].pointers);
        stk_weakenings_done(&list);
        stk_org_doc_done(&before);
        stk_org_doc_done(&after);
    }
}

static void what_loosens_is_written_for_people_and_programs(void **state)
{
    stk_sandbox_doc after = sandbox(AGENT("\"allow\":[\"A.com\"]"));
    stk_weakenings list;
    stk_weaken_sandbox(NULL, &after, &list);
    stk_buf out = STK_BUF(4096);
    stk_jw w;
    stk_jw_init(&w, &out);
    stk_weakenings_write(&w, &list);
    assert_int_equal(stk_jw_end(&w, NULL), 0);
    assert_string_equal(
        out.p,
        "[{\"pointer\":\"/agents/h/allow/0\",\"what\":\"h may reach a.com, which it could not before\"}]");
    stk_buf_done(&out);
    stk_weakenings_done(&list);
    stk_sandbox_doc_done(&after);
}

static void bad_entries_of_a_document_are_pointed_at(void **state)
{
    stk_agent_config agents[2] = {{.name = "good"}, {.name = "helper"}};
    stk_strv_add(&agents[0].allow, STK_STR("a.com"));
    stk_strv_add(&agents[1].allow, STK_STR("b.com"));
    stk_strv_add(&agents[1].allow, STK_STR("*"));
    stk_sandbox_doc doc = {.agents = agents, .nagents = 2};
    stk_err err = {.code = STK_OK};
    assert_int_equal(stk_sandbox_doc_check(&doc, &err), -STK_E_FIELD);
    assert_string_equal(err.pointer, "/agents/helper/allow/1");
    stk_org_scope scopes[1] = {{.agent = "helper", .deny = agents[1].allow}};
    stk_org_doc org = {.agents = scopes, .nagents = 1};
    assert_int_equal(stk_org_doc_check(&org, &err), -STK_E_FIELD);
    assert_string_equal(err.pointer, "/agents/helper/deny/1");
    stk_org_doc wrong = {.all = {.def = "never"}};
    assert_int_equal(stk_org_doc_check(&wrong, &err), -STK_E_FIELD);
    assert_string_equal(err.pointer, "/default");
    stk_strv_done(&agents[0].allow);
    stk_strv_done(&agents[1].allow);
}

static void the_proxys_document_joins_list_and_scopes(void **state)
{
    stk_sandbox_doc doc = sandbox(
        "{\"enabled\":true,\"agents\":{\"h\":{\"allow\":[\"A.com\",\"*.b.com:8443\"],\"tls\":\"require\"}}}");
    stk_org_doc org = organisation("{\"default\":\"allow\",\"deny\":[\"x.com\"],\"agents\":{\"h\":{"
                                   "\"default\":\"deny\",\"allow\":[\"a.com\"]},"
                                   "\"other\":{\"deny\":[\"a.com\"]}}}");
    stk_buf out = STK_BUF(4096);
    stk_err err = {.code = STK_OK};
    assert_int_equal(stk_policy_document(&doc.agents[0], &org, STK_STR("[]"), 9, &out, &err), 0);
    assert_string_equal(out.p, "{\"version\":9,\"allow\":[\"a.com\",\"*.b.com:8443\"],\"organisation\":{"
                               "\"default\":\"deny\",\"allow\":[\"a.com\"],"
                               "\"deny\":[\"x.com\"]},\"internal\":[],\"tls\":\"require\"}");
    stk_policy *policy STK_AUTO(stk_policy_freep) = NULL;
    assert_int_equal(stk_policy_parse_text(stk_buf_view(&out), &policy, &err), 0);
    assert_true(stk_policy_judge(policy, "a.com", 443).allow);
    assert_string_equal(stk_policy_judge(policy, "q.b.com", 8443).reason, "org_policy");
    stk_buf_reset(&out);
    assert_int_equal(stk_policy_document(&doc.agents[0], NULL, (stk_str){NULL, 0}, 1, &out, &err), 0);
    stk_policy *alone STK_AUTO(stk_policy_freep) = NULL;
    assert_int_equal(stk_policy_parse_text(stk_buf_view(&out), &alone, &err), 0);
    assert_true(stk_policy_judge(alone, "q.b.com", 8443).allow);
    stk_buf_done(&out);
    stk_sandbox_doc_done(&doc);
    stk_org_doc_done(&org);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_of_the_sandbox_document),
        cmocka_unit_test(changes_of_the_organisation_policy),
        cmocka_unit_test(what_loosens_is_written_for_people_and_programs),
        cmocka_unit_test(bad_entries_of_a_document_are_pointed_at),
        cmocka_unit_test(the_proxys_document_joins_list_and_scopes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
