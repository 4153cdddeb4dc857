#include "tests/unit/message/unit.h"
#include "proto/message/config.h"

static int sandbox(const char *text, bool stored, stk_sandbox_doc *ret, stk_bytes *reason, stk_err *err)
{
    stk_json *doc STK_AUTO(stk_json_freep) = parse(text);
    *err = (stk_err){0};
    return stk_sandbox_doc_decode(stk_json_root(doc), stored, ret, reason, err);
}

typedef struct row {
    const char *text;
    stk_code code; /* STK_OK: taken */
    const char *pointer;
    const char *says;
} row;

#define AGENT(more) "{\"enabled\":true,\"agents\":{\"h\":{" more "}}}"
#define LIMIT(more) AGENT("\"limits\":{" more "}")

static const row body_rows[] = {
    {"[]", STK_E_FIELD, "", NULL},
    {"{}", STK_E_MISSING_FIELD, "/enabled", NULL},
    {"{\"enabled\":1}", STK_E_FIELD, "/enabled", NULL},
    {"{\"enabled\":\"true\"}", STK_E_FIELD, "/enabled", NULL},
    {"{\"enabled\":true}", STK_OK, "", NULL},
    {"{\"enabled\":false,\"agents\":{}}", STK_OK, "", NULL},
    {"{\"enabled\":true,\"agents\":[]}", STK_E_FIELD, "/agents", NULL},
    {"{\"enabled\":true,\"agents\":null}", STK_E_FIELD, "/agents", NULL},
    {"{\"enabled\":true,\"agents\":{\"\":{}}}", STK_E_FIELD, "/agents/", "name"},
    {"{\"enabled\":true,\"agents\":{\"a/b\":{}}}", STK_E_FIELD, "/agents/a~1b", "name"},
    {"{\"enabled\":true,\"agents\":{\"h\":[]}}", STK_E_FIELD, "/agents/h", NULL},
    {"{\"enabled\":true,\"agents\":{\"h\":null}}", STK_E_FIELD, "/agents/h", NULL},
    {"{\"enabled\":true,\"backend\":\"runc\"}", STK_E_FIELD, "/backend", "docker"},
    {"{\"enabled\":true,\"backend\":\"\"}", STK_E_FIELD, "/backend", NULL},
    {"{\"enabled\":true,\"backend\":\"a-very-long-backend-name\"}", STK_E_FIELD, "/backend", "docker"},
    {"{\"enabled\":true,\"require_runtime_class\":1}", STK_E_FIELD, "/require_runtime_class", NULL},
    {"{\"enabled\":true,\"reason\":1}", STK_E_FIELD, "/reason", NULL},
    {"{\"enabled\":true,\"version\":3}", STK_E_UNKNOWN_FIELD, "/version", NULL},
    {AGENT(""), STK_OK, "", NULL},
    {AGENT("\"allow\":\"x\""), STK_E_FIELD, "/agents/h/allow", NULL},
    {AGENT("\"allow\":[1]"), STK_E_FIELD, "/agents/h/allow/0", NULL},
    {AGENT("\"allow\":[\"a\\u0000\"]"), STK_E_FIELD, "/agents/h/allow/0", "NUL"},
    {AGENT("\"allow\":[\"*\",\"\"]"), STK_OK, "", NULL}, /* entries are proto/policy's to judge */
    {AGENT("\"tls\":\"maybe\""), STK_E_FIELD, "/agents/h/tls", "match"},
    {AGENT("\"tls\":\"certainly-not\""), STK_E_FIELD, "/agents/h/tls", "match"},
    {AGENT("\"backend\":\"kvm\""), STK_E_FIELD, "/agents/h/backend", "oci"},
    {AGENT("\"image\":\"a\\tb\""), STK_E_FIELD, "/agents/h/image", NULL},
    {AGENT("\"template\":\"-x\""), STK_E_FIELD, "/agents/h/template", NULL},
    {AGENT("\"webhook\":1"), STK_E_UNKNOWN_FIELD, "/agents/h/webhook", NULL},
    {AGENT("\"env\":{\"1\":\"x\"}"), STK_E_FIELD, "/agents/h/env/1", "name"},
    {AGENT("\"env\":{\"A\":1}"), STK_E_FIELD, "/agents/h/env/A", NULL},
    {AGENT("\"env\":{\"A\":\"\\u0000\"}"), STK_E_FIELD, "/agents/h/env/A", "NUL"},
    {AGENT("\"env\":{\"A\":\"***\"}"), STK_E_FIELD, "/agents/h/env/A", "unchanged"},
    {AGENT("\"env\":{\"A\":\"unchanged\",\"B\":\"sealed:x\"}"), STK_OK, "", NULL},
    {AGENT("\"limits\":[]"), STK_E_FIELD, "/agents/h/limits", NULL},
    {LIMIT(""), STK_OK, "", NULL},
    {LIMIT("\"memory\":1"), STK_E_UNKNOWN_FIELD, "/agents/h/limits/memory", NULL},
    {LIMIT("\"memory_bytes\":\"512MiB\""), STK_E_FIELD, "/agents/h/limits/memory_bytes",
     "16777216 to 1099511627776"},
    {LIMIT("\"memory_bytes\":null"), STK_E_FIELD, "/agents/h/limits/memory_bytes", "16777216 to"},
    {LIMIT("\"memory_bytes\":16777215"), STK_E_FIELD, "/agents/h/limits/memory_bytes", "16777216 to"},
    {LIMIT("\"memory_bytes\":1099511627777"), STK_E_FIELD, "/agents/h/limits/memory_bytes", "16777216 to"},
    {LIMIT("\"memory_bytes\":1e300"), STK_E_FIELD, "/agents/h/limits/memory_bytes", "16777216 to"},
    {LIMIT("\"memory_bytes\":1.5e8"), STK_OK, "", NULL},
    {LIMIT("\"cpu_millis\":49"), STK_E_FIELD, "/agents/h/limits/cpu_millis", "50 to 256000"},
    {LIMIT("\"cpu_millis\":256001"), STK_E_FIELD, "/agents/h/limits/cpu_millis", "50 to 256000"},
    {LIMIT("\"pids\":7"), STK_E_FIELD, "/agents/h/limits/pids", "8 to 32768"},
    {LIMIT("\"pids\":32769"), STK_E_FIELD, "/agents/h/limits/pids", "8 to 32768"},
    {LIMIT("\"open_files\":15"), STK_E_FIELD, "/agents/h/limits/open_files", "16 to 1048576"},
    {LIMIT("\"workspace_bytes\":0"), STK_E_FIELD, "/agents/h/limits/workspace_bytes",
     "1048576 to 68719476736"},
    {LIMIT("\"tmp_bytes\":-1"), STK_E_FIELD, "/agents/h/limits/tmp_bytes", "1048576 to 68719476736"},
    {LIMIT("\"file_bytes\":1"), STK_E_FIELD, "/agents/h/limits/file_bytes", "4096 to 68719476736"},
    {LIMIT("\"timeout_seconds\":0"), STK_E_FIELD, "/agents/h/limits/timeout_seconds", "0.001 to 86400"},
    {LIMIT("\"timeout_seconds\":86401"), STK_E_FIELD, "/agents/h/limits/timeout_seconds", "0.001 to 86400"},
    {LIMIT("\"timeout_seconds\":\"5\""), STK_E_FIELD, "/agents/h/limits/timeout_seconds", "0.001 to 86400"},
};

static void check(const row *r, int rc, const stk_err *err)
{
    if (r->code == STK_OK && rc < 0)
        fail_msg("%s: %s %s", r->text, err->pointer, err->detail);
    if (r->code != STK_OK)
        assert_error(rc, err, r->code, r->pointer, r->text);
    if (r->says && !strstr(err->detail, r->says))
        fail_msg("%s: \"%s\" does not say \"%s\"", r->text, err->detail, r->says);
}

static void a_bad_document_is_refused_with_pointer_and_reason(void **state)
{
    for (size_t i = 0; i < STK_COUNT(body_rows); i++) {
        stk_sandbox_doc doc;
        stk_err err;
        check(&body_rows[i], sandbox(body_rows[i].text, false, &doc, NULL, &err), &err);
        stk_sandbox_doc_done(&doc);
    }
}

static void a_stored_document_holds_sealed_values_and_no_reason(void **state)
{
    static const row rows[] = {
        {AGENT("\"env\":{\"A\":\"sealed:U1RLMQ==\"}"), STK_OK, "", NULL},
        {AGENT("\"env\":{\"A\":\"clear\"}"), STK_E_FIELD, "/agents/h/env/A", "sealed"},
        {AGENT("\"env\":{\"A\":\"unchanged\"}"), STK_E_FIELD, "/agents/h/env/A", "sealed"},
        {AGENT("\"env\":{\"A\":\"sealed:\"}"), STK_E_FIELD, "/agents/h/env/A", "damaged"},
        {AGENT("\"env\":{\"A\":\"sealed:?\"}"), STK_E_FIELD, "/agents/h/env/A", "damaged"},
        {"{\"enabled\":true,\"reason\":\"x\"}", STK_E_UNKNOWN_FIELD, "/reason", NULL},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_sandbox_doc doc;
        stk_err err;
        check(&rows[i], sandbox(rows[i].text, true, &doc, NULL, &err), &err);
        stk_sandbox_doc_done(&doc);
    }
}

static void what_is_not_given_has_its_default(void **state)
{
    stk_sandbox_doc doc;
    stk_bytes reason = {0};
    stk_err err;
    assert_int_equal(sandbox("{\"enabled\": true, \"agents\": {\"helper\": {\"allow\": "
                             "[\"api.vendor.com\"]}}, \"reason\": \"CHG-1042\"}",
                             false, &doc, &reason, &err),
                     0);
    assert_text(stk_bytes_view(&reason), STK_STR("CHG-1042"));
    assert_string_equal(doc.backend, "auto");
    assert_false(doc.require_runtime_class);
    const stk_agent_config *agent = stk_sandbox_doc_agent(&doc, STK_STR("helper"));
    assert_non_null(agent);
    assert_null(stk_sandbox_doc_agent(&doc, STK_STR("help")));
    stk_agent_limits limits;
    stk_agent_limits_default(&limits);
    assert_memory_equal(&agent->limits, &limits, sizeof(limits));
    assert_int_equal(limits.memory_bytes, 512 << 20);
    assert_int_equal(limits.timeout.ns, 3600LL * 1000000000);
    assert_int_equal(limits.file_bytes, limits.workspace_bytes);
    stk_bytes_done(&reason);
    stk_sandbox_doc_done(&doc);
}

static void the_largest_file_follows_the_workspace_unless_given(void **state)
{
    stk_sandbox_doc doc;
    stk_err err;
    assert_int_equal(sandbox(LIMIT("\"workspace_bytes\":1048576"), false, &doc, NULL, &err), 0);
    assert_int_equal(doc.agents[0].limits.file_bytes, 1048576);
    stk_sandbox_doc_done(&doc);
    assert_int_equal(
        sandbox(LIMIT("\"file_bytes\":4096,\"workspace_bytes\":1048576"), false, &doc, NULL, &err), 0);
    assert_int_equal(doc.agents[0].limits.file_bytes, 4096);
    stk_sandbox_doc_done(&doc);
}

static void written(const stk_sandbox_doc *doc, bool blank, stk_buf *out)
{
    stk_jw w;
    stk_jw_init(&w, out);
    stk_sandbox_doc_write(&w, doc, blank);
    assert_int_equal(stk_jw_end(&w, NULL), 0);
}

static void the_same_document_is_the_same_text_in_any_order(void **state)
{
    stk_sandbox_doc a, b;
    stk_err err;
    stk_buf one STK_AUTO(stk_buf_done) = STK_BUF(65536), two STK_AUTO(stk_buf_done) = STK_BUF(65536);
    assert_int_equal(
        sandbox(
            "{\"enabled\":true,\"agents\":{\"b\":{\"env\":{\"Y\":\"1\",\"X\":\"2\"}},\"a\":{},\"a.b\":{}}}",
            false, &a, NULL, &err),
        0);
    assert_int_equal(sandbox("{\"agents\":{\"a.b\":{\"allow\":[]},\"a\":{\"limits\":{}},\"b\":{\"env\":{"
                             "\"X\":\"2\",\"Y\":\"1\"}}},\"backend\":\"auto\",\"enabled\":true}",
                             false, &b, NULL, &err),
                     0);
    written(&a, false, &one);
    written(&b, false, &two);
    assert_text(stk_buf_view(&one), stk_buf_view(&two));
    stk_sandbox_doc_done(&a);
    stk_sandbox_doc_done(&b);
}

static void values_are_never_shown_when_blank(void **state)
{
    stk_sandbox_doc doc;
    stk_err err;
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(65536);
    assert_int_equal(sandbox(AGENT("\"env\":{\"TOKEN\":\"s3cr3t\"}"), false, &doc, NULL, &err), 0);
    written(&doc, true, &out);
    assert_null(strstr(out.p, "s3cr3t"));
    assert_non_null(strstr(out.p, "\"env\":{\"TOKEN\":\"***\"}"));
    stk_sandbox_doc_done(&doc);
}

static void sandboxes_that_could_be_exchanged_share_a_key(void **state)
{
    stk_agent_limits limits, other;
    char key[STK_ID_SIZE], again[STK_ID_SIZE];
    stk_agent_limits_default(&limits);
    other = limits;
    other.timeout = stk_sec(5); /* of a run, not of a sandbox */
    stk_template_key("acme", "oci", "python", &limits, key);
    stk_template_key("acme", "oci", "python", &other, again);
    assert_true(stk_id_valid("tpl", stk_str_of(key)));
    assert_string_equal(key, again);
    stk_template_key("acme2", "oci", "python", &limits, again);
    assert_string_not_equal(key, again);
    stk_template_key("acme", "docker", "python", &limits, again);
    assert_string_not_equal(key, again);
    stk_template_key("acme", "oci", "", &limits, again);
    assert_string_not_equal(key, again);
    int64_t *const members[] = {&other.memory_bytes, &other.cpu_millis,      &other.pids,
                                &other.open_files,   &other.workspace_bytes, &other.tmp_bytes,
                                &other.file_bytes};
    for (size_t i = 0; i < STK_COUNT(members); i++) {
        other = limits;
        (*members[i])++;
        stk_template_key("acme", "oci", "python", &other, again);
        assert_string_not_equal(key, again);
    }
}

static void an_organisation_document_is_checked(void **state)
{
    static const row rows[] = {
        {"{}", STK_OK, "", NULL},
        {"{\"default\":\"allow\",\"allow\":[\"x\"],\"deny\":[],\"agents\":{\"h\":{\"default\":\"deny\"}},"
         "\"reason\":\"r\"}",
         STK_OK, "", NULL},
        {"[]", STK_E_FIELD, "", NULL},
        {"{\"default\":\"maybe\"}", STK_E_FIELD, "/default", "allow|deny"},
        {"{\"default\":\"\"}", STK_OK, "", NULL},
        {"{\"deny\":[null]}", STK_E_FIELD, "/deny/0", NULL},
        {"{\"agents\":{\"h\":{\"default\":\"all-of-them\"}}}", STK_E_FIELD, "/agents/h/default",
         "allow|deny"},
        {"{\"agents\":{\"h\":{\"default\":\"none\"}}}", STK_E_FIELD, "/agents/h/default", "allow|deny"},
        {"{\"agents\":{\"h\":{\"agents\":{}}}}", STK_E_UNKNOWN_FIELD, "/agents/h/agents", NULL},
        {"{\"agents\":{\"-\":{}}}", STK_E_FIELD, "/agents/-", "name"},
        {"{\"enabled\":true}", STK_E_UNKNOWN_FIELD, "/enabled", NULL},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_json *doc STK_AUTO(stk_json_freep) = parse(rows[i].text);
        stk_org_doc org;
        stk_err err = {0};
        check(&rows[i], stk_org_doc_decode(stk_json_root(doc), &org, NULL, &err), &err);
        stk_org_doc_done(&org);
    }
}

static void a_pools_document_is_checked(void **state)
{
    static const row rows[] = {
        {"{}", STK_OK, "", NULL},
        {"[]", STK_E_FIELD, "", NULL},
        {"{\"p\":{\"agent\":\"h\"}}", STK_OK, "", NULL},
        {"{\"p\":{}}", STK_E_MISSING_FIELD, "/p/agent", NULL},
        {"{\"P\":{\"agent\":\"h\"}}", STK_E_FIELD, "/P", "name"},
        {"{\"\":{\"agent\":\"h\"}}", STK_E_FIELD, "/", "name"},
        {"{\"p\":{\"agent\":\"h\",\"target\":1001}}", STK_E_FIELD, "/p/target", "0 to 1000"},
        {"{\"p\":{\"agent\":\"h\",\"target\":-1}}", STK_E_FIELD, "/p/target", "0 to 1000"},
        {"{\"p\":{\"agent\":\"h\",\"target\":\"1\"}}", STK_E_FIELD, "/p/target", "0 to 1000"},
        {"{\"p\":{\"agent\":\"h\",\"max\":-1}}", STK_E_FIELD, "/p/max", "0 to 1000"},
        {"{\"p\":{\"agent\":\"h\",\"target\":2,\"max\":1}}", STK_E_FIELD, "/p/max", "target"},
        {"{\"p\":{\"agent\":\"h\",\"target\":2,\"min\":3}}", STK_E_FIELD, "/p/min", "target"},
        {"{\"p\":{\"agent\":\"h\",\"ttl_seconds\":0.5}}", STK_E_FIELD, "/p/ttl_seconds", "1 to 86400"},
        {"{\"p\":{\"agent\":\"h\",\"ttl_seconds\":\"10m\"}}", STK_E_FIELD, "/p/ttl_seconds", "1 to 86400"},
        {"{\"p\":{\"agent\":\"h\",\"image\":\"x\"}}", STK_E_UNKNOWN_FIELD, "/p/image", NULL},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_json *doc STK_AUTO(stk_json_freep) = parse(rows[i].text);
        stk_pools_doc pools;
        stk_err err = {0};
        check(&rows[i], stk_pools_doc_decode(stk_json_root(doc), &pools, &err), &err);
        stk_pools_doc_done(&pools);
    }
}

static void a_pools_max_is_its_target_unless_given(void **state)
{
    stk_json *doc STK_AUTO(stk_json_freep) =
        parse("{\"b\":{\"agent\":\"h\",\"target\":3},\"a\":{\"agent\":\"h\",\"target\":3,\"max\":5}}");
    stk_pools_doc pools;
    assert_int_equal(stk_pools_doc_decode(stk_json_root(doc), &pools, NULL), 0);
    assert_int_equal(pools.n, 2);
    assert_string_equal(pools.v[0].name, "a");
    assert_int_equal(pools.v[0].max, 5);
    assert_int_equal(pools.v[1].max, 3);
    assert_int_equal(pools.v[1].min, 0);
    assert_int_equal(pools.v[1].ttl.ns, 600LL * 1000000000);
    stk_pools_doc_done(&pools);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_document_is_refused_with_pointer_and_reason),
        cmocka_unit_test(a_stored_document_holds_sealed_values_and_no_reason),
        cmocka_unit_test(what_is_not_given_has_its_default),
        cmocka_unit_test(the_largest_file_follows_the_workspace_unless_given),
        cmocka_unit_test(the_same_document_is_the_same_text_in_any_order),
        cmocka_unit_test(values_are_never_shown_when_blank),
        cmocka_unit_test(sandboxes_that_could_be_exchanged_share_a_key),
        cmocka_unit_test(an_organisation_document_is_checked),
        cmocka_unit_test(a_pools_document_is_checked),
        cmocka_unit_test(a_pools_max_is_its_target_unless_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
