/* Configuration as a worker sees it: only what decodes, and what does not never widens anything. */
#include "tests/unit/workers/rig.h"

#define SANDBOX(agents) "{\"enabled\":true,\"agents\":{" agents "}}"

static void agents_are_those_on_the_list(void **state)
{
    rig *r = rig_new();
    stk_err err;
    assert_non_null(stk_view_agent(r->ctx.view, "t", "helper", &err));
    assert_null(stk_view_agent(r->ctx.view, "t", "other", &err));
    assert_int_equal(err.code, STK_E_NOT_SANDBOXED);
    assert_null(stk_view_agent(r->ctx.view, "nobody", "helper", &err));
    assert_int_equal(err.code, STK_E_NOT_SANDBOXED);
    rig_free(r);
}

static void switched_off_nobody_is_on_it(void **state)
{
    rig *r = rig_new();
    stk_err err;
    rig_config(r, STK_CONF_AGENT_SANDBOX, "{\"enabled\":false,\"agents\":{\"helper\":{}}}");
    assert_null(stk_view_agent(r->ctx.view, "t", "helper", &err));
    assert_int_equal(err.code, STK_E_NOT_SANDBOXED);
    rig_free(r);
}

static void a_document_replaces_the_one_before(void **state)
{
    rig *r = rig_new();
    stk_err err;
    rig_config(r, STK_CONF_AGENT_SANDBOX, SANDBOX("\"b\":{\"limits\":{\"pids\":9}},\"a\":{}"));
    assert_null(stk_view_agent(r->ctx.view, "t", "helper", &err));
    assert_int_equal(stk_view_agent(r->ctx.view, "t", "b", &err)->limits.pids, 9);
    assert_int_equal(stk_view_tenant(r->ctx.view, "t")->sandbox_version, 2);
    rig_free(r);
}

static void a_list_that_cannot_be_read_lists_nobody(void **state)
{
    static const char *const docs[] = {"{\"enabled\":true,\"agents\":{\"helper\":{\"no such\":1}}}",
                                       "{\"enabled\":1}",
                                       "{\"enabled\":true,\"agents\":[]}",
                                       "{}",

                                       SANDBOX("\"helper\":{\"limits\":{\"pids\":0}}"),
                                       SANDBOX("\"helper\":{\"allow\":[\"*\"]}")};
    for (size_t i = 0; i < STK_COUNT(docs); i++) {
        rig *r = rig_new();
        stk_err err;
        rig_config(r, STK_CONF_AGENT_SANDBOX, docs[i]);
        if (stk_view_agent(r->ctx.view, "t", "helper", &err))
            fail_msg("listed by %s", docs[i]);
        rig_free(r);
    }
}

static void an_organisations_policy_that_cannot_be_read_denies_all(void **state)
{
    static const char *const docs[] = {"{\"default\":\"maybe\"}", "{\"allow\":[\"*\"]}",
                                       "{\"allow\":[\"http://x\"]}", "{\"x\":1}"};
    for (size_t i = 0; i < STK_COUNT(docs); i++) {
        rig *r = rig_new();
        rig_config(r, STK_CONF_EGRESS_POLICY, "{\"default\":\"allow\"}");
        assert_string_equal(stk_view_tenant(r->ctx.view, "t")->org.all.def, "allow");
        rig_config(r, STK_CONF_EGRESS_POLICY, docs[i]);
        const stk_org_doc *org = &stk_view_tenant(r->ctx.view, "t")->org;
        if (strcmp(org->all.def, "deny") != 0 || org->all.allow.n)
            fail_msg("%s: %s", docs[i], org->all.def);
        rig_free(r);
    }
}

static void pools_that_cannot_be_read_are_none(void **state)
{
    rig *r = rig_new();
    rig_config(r, STK_CONF_POOLS, "{\"p\":{\"agent\":\"helper\",\"target\":2,\"max\":2}}");
    assert_int_equal(stk_view_tenant(r->ctx.view, "t")->pools.n, 1);
    rig_config(r, STK_CONF_POOLS, "{\"p\":{\"agent\":\"helper\",\"target\":-2}}");
    assert_int_equal(stk_view_tenant(r->ctx.view, "t")->pools.n, 0);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agents_are_those_on_the_list),
        cmocka_unit_test(switched_off_nobody_is_on_it),
        cmocka_unit_test(a_document_replaces_the_one_before),
        cmocka_unit_test(a_list_that_cannot_be_read_lists_nobody),
        cmocka_unit_test(an_organisations_policy_that_cannot_be_read_denies_all),
        cmocka_unit_test(pools_that_cannot_be_read_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
