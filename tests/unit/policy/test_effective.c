#include "tests/unit/policy/unit.h"

#define ORG(text) "\"organisation\":{" text "}"

static void each_entry_says_who_narrows_it(void **state)
{
    static const struct {
        const char *entry, *org;
        bool effective;
        const char *by;
    } rows[] = {
        {"a.com", ORG(""), true, ""},
        {"a.com", ORG("\"default\":\"deny\""), false, "organisation default deny"},
        {"a.com", ORG("\"deny\":[\"a.com\"]"), false, "organisation deny a.com"},
        {"x.a.com", ORG("\"deny\":[\"*.a.com\"]"), false, "organisation deny *.a.com"},
        {"a.com", ORG("\"deny\":[\"*.a.com\"]"), true, ""},
        {"a.com", ORG("\"deny\":[\"a.com:80\"]"), true, "organisation deny a.com:80"},
        {"a.com:5432", ORG("\"deny\":[\"a.com\"]"), false, "organisation deny a.com"},
        {"a.com:5432", ORG("\"deny\":[\"a.com:80\"]"), true, ""},
        {"a.com", ORG("\"allow\":[\"a.com\"]"), true, ""},
        {"a.com", ORG("\"allow\":[\"a.com:443\"]"), true, "organisation default deny"},
        {"a.com:5432", ORG("\"allow\":[\"a.com\"]"), false, "organisation default deny"},
        {"*.a.com", ORG("\"deny\":[\"*.a.com\"]"), false, "organisation deny *.a.com"},
        {"*.x.a.com", ORG("\"deny\":[\"b.com\",\"*.a.com\"]"), false, "organisation deny *.a.com"},
        {"*.a.com", ORG("\"deny\":[\"x.a.com\"]"), true, "organisation deny x.a.com"},
        {"*.a.com", ORG("\"deny\":[\"a.com\"]"), true, ""},
        {"*.a.com", ORG("\"deny\":[\"x.a.com:22\"]"), true, ""},
        {"*.a.com:22", ORG("\"deny\":[\"x.a.com\"]"), true, "organisation deny x.a.com"},
        {"*.a.com", ORG("\"allow\":[\"*.a.com\"]"), true, ""},
        {"*.a.com", ORG("\"allow\":[\"x.a.com\"]"), true, "organisation allows only x.a.com"},
        {"*.a.com", ORG("\"allow\":[\"b.com\"]"), false, "organisation default deny"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        char json[512];
        snprintf(json, sizeof(json), "{\"allow\":[\"%s\"],%s}", rows[i].entry, rows[i].org);
        stk_policy *policy STK_AUTO(stk_policy_freep) = NULL;
        assert_int_equal(stk_policy_parse_text(stk_str_of(json), &policy, NULL), 0);
        stk_effective *v STK_AUTO(stk_freep) = NULL;
        size_t n = 0;
        assert_int_equal(stk_policy_effective(policy, &v, &n, NULL), 0);
        assert_int_equal(n, 1);
        assert_string_equal(v[0].entry, rows[i].entry);
        if (v[0].effective != rows[i].effective || strcmp(v[0].narrowed_by, rows[i].by) != 0)
            fail_msg("%s: %d, \"%s\"", json, v[0].effective, v[0].narrowed_by);
    }
}

static void wide_wildcards_carry_a_warning(void **state)
{
    stk_policy *policy STK_AUTO(stk_policy_freep) = NULL;
    assert_int_equal(stk_policy_parse_text(STK_STR("{\"allow\":[\"*.co.uk\",\"*.a.co.uk\"]}"), &policy, NULL),
                     0);
    stk_effective *v STK_AUTO(stk_freep) = NULL;
    size_t n = 0;
    assert_int_equal(stk_policy_effective(policy, &v, &n, NULL), 0);
    assert_true(v[0].warn_public_suffix);
    assert_false(v[1].warn_public_suffix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_entry_says_who_narrows_it),
        cmocka_unit_test(wide_wildcards_carry_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
