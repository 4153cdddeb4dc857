#include "tests/unit/policy/unit.h"
#include <arpa/inet.h>

static stk_policy *make(const char *json)
{
    stk_policy *policy = NULL;
    stk_err err;
    if (stk_policy_parse_text(stk_str_of(json), &policy, &err) < 0)
        fail_msg("%s: %s", err.pointer, err.detail);
    return policy;
}

static void a_bad_part_rejects_the_whole_policy(void **state)
{
    static const struct {
        const char *json, *pointer;
    } rows[] = {
        {"", ""},
        {"null", ""},
        {"[]", ""},
        {"{\"allow\":[\"a.com\"]", ""},
        {"{\"allow\":[\"a.com\"]} x", ""},
        {"{\"allow\":[\"a.com\"],\"allow\":[\"b.com\"]}", ""},
        {"{\"allow\":[\"*\"]}", "/allow/0"},
        {"{\"allow\":[\"a.com\",\"*.\"]}", "/allow/1"},
        {"{\"allow\":[\"\"]}", "/allow/0"},
        {"{\"allow\":\"a.com\"}", "/allow"},
        {"{\"allow\":[1]}", "/allow/0"},
        {"{\"allow\":null}", "/allow"},
        {"{\"allow\":[\"a.com\"],\"alow\":[]}", "/alow"},
        {"{\"version\":\"7\"}", "/version"},
        {"{\"version\":-1}", "/version"},
        {"{\"tls\":\"on\"}", "/tls"},
        {"{\"organisation\":{\"default\":\"maybe\"}}", "/organisation/default"},
        {"{\"organisation\":{\"deny\":[\"*\"]}}", "/organisation/deny/0"},
        {"{\"organisation\":{\"allow\":[\"a.com\",\"1.2.3.4\"]}}", "/organisation/allow/1"},
        {"{\"organisation\":{\"denied\":[]}}", "/organisation/denied"},
        {"{\"organisation\":[]}", "/organisation"},
        {"{\"internal\":{}}", "/internal"},
        {"{\"internal\":[{\"cidr\":\"10.0.0.1/8\",\"hosts\":[\"a.com\"]}]}", "/internal/0/cidr"},
        {"{\"internal\":[{\"cidr\":\"10.0.0.0/8\"}]}", "/internal/0/hosts"},
        {"{\"internal\":[{\"cidr\":\"10.0.0.0/8\",\"hosts\":[]}]}", "/internal/0/hosts"},
        {"{\"internal\":[{\"cidr\":\"10.0.0.0/8\",\"hosts\":[\"a.com\",\"*\"]}]}", "/internal/0/hosts/1"},
        {"{\"internal\":[{\"cidr\":\"10.0.0.0/8\",\"hosts\":[\"a.com\"],\"ports\":[443,0]}]}",
         "/internal/0/ports/1"},
        {"{\"internal\":[{\"cidr\":\"10.0.0.0/8\",\"hosts\":[\"a.com\"],\"ports\":443}]}",
         "/internal/0/ports"},
        {"{\"limits\":{\"tunnels\":0}}", "/limits/tunnels"},
        {"{\"limits\":{\"tunnel\":1}}", "/limits/tunnel"},
        {"{\"limits\":{\"idle_seconds\":0}}", "/limits/idle_seconds"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_policy *policy = NULL;
        stk_err err = {.code = STK_OK};
        if (stk_policy_parse_text(stk_str_of(rows[i].json), &policy, &err) != -STK_E_POLICY)
            fail_msg("%s passed", rows[i].json);
        assert_null(policy);
        assert_int_equal(err.code, STK_E_POLICY);
        if (strcmp(err.pointer, rows[i].pointer) != 0)
            fail_msg("%s points at \"%s\" (%s)", rows[i].json, err.pointer, err.detail);
    }
}

static void what_is_not_said_has_its_default(void **state)
{
    stk_policy *policy STK_AUTO(stk_policy_freep) = make("{}");
    const stk_policy_limits *limits = stk_policy_limits_of(policy);
    assert_int_equal(stk_policy_version(policy), 0);
    assert_int_equal(stk_policy_tls(policy), STK_TLS_MATCH);
    assert_int_equal(limits->tunnels, 256);
    assert_int_equal(limits->bytes, 0);
    assert_int_equal(limits->dns_queries, 10000);
    assert_int_equal(limits->idle.ns, stk_sec(300).ns);
    assert_false(stk_policy_judge(policy, "api.x.com", 443).allow);
}

static void what_is_said_is_taken(void **state)
{
    stk_policy *policy STK_AUTO(stk_policy_freep) = make(
        "{\"version\":7,\"tls\":\"require\",\"limits\":{\"tunnels\":4,\"bytes\":1000,\"bytes_per_second\":10,"
        "\"dns_queries\":0,\"idle_seconds\":1.5,\"head_seconds\":2,\"connect_seconds\":3}}");
    const stk_policy_limits *limits = stk_policy_limits_of(policy);
    assert_int_equal(stk_policy_version(policy), 7);
    assert_int_equal(stk_policy_tls(policy), STK_TLS_REQUIRE);
    assert_int_equal(limits->tunnels, 4);
    assert_int_equal(limits->bytes, 1000);
    assert_int_equal(limits->bytes_per_second, 10);
    assert_int_equal(limits->dns_queries, 0);
    assert_int_equal(limits->idle.ns, stk_ms(1500).ns);
    assert_int_equal(limits->head.ns, stk_sec(2).ns);
    assert_int_equal(limits->connect.ns, stk_sec(3).ns);
}

static void lists_and_organisation_decide_together(void **state)
{
    static const struct {
        const char *json, *host;
        uint16_t port;
        const char *reason, *rule;
    } rows[] = {
        {"{\"allow\":[]}", "a.com", 443, "host_not_allowed", ""},
        {"{\"allow\":[\"a.com\"]}", "a.com", 443, "allowed", "a.com"},
        {"{\"allow\":[\"A.com.\"]}", "a.com", 80, "allowed", "a.com"},
        {"{\"allow\":[\"a.com\"]}", "a.com", 8443, "port_not_allowed", "a.com"},
        {"{\"allow\":[\"a.com:8443\"]}", "a.com", 443, "port_not_allowed", "a.com:8443"},
        {"{\"allow\":[\"*.a.com\"]}", "a.com", 443, "host_not_allowed", ""},
        {"{\"allow\":[\"*.a.com\"]}", "x.y.a.com", 443, "allowed", "*.a.com"},
        {"{\"allow\":[\"*.a.com\"]}", "127.0.0.1", 443, "host_not_allowed", ""},
        {"{\"allow\":[\"*.a.com\"]}", "[::1]", 443, "host_not_allowed", ""},
        {"{\"allow\":[\"a.com\"],\"organisation\":{}}", "a.com", 443, "allowed", "a.com"},
        {"{\"allow\":[\"a.com\"],\"organisation\":{\"default\":\"allow\"}}", "a.com", 443, "allowed",
         "a.com"},
        {"{\"allow\":[\"a.com\"],\"organisation\":{\"default\":\"deny\"}}", "a.com", 443, "org_policy", ""},
        {"{\"allow\":[\"a.com\"],\"organisation\":{\"default\":\"allow\",\"deny\":[\"a.com\"]}}", "a.com",
         443, "org_policy", "a.com"},
        {"{\"allow\":[\"a.com:5432\"],\"organisation\":{\"deny\":[\"a.com\"]}}", "a.com", 5432, "org_policy",
         "a.com"},
        {"{\"allow\":[\"a.com\"],\"organisation\":{\"deny\":[\"a.com:80\"]}}", "a.com", 80, "org_policy",
         "a.com:80"},
        {"{\"allow\":[\"a.com\"],\"organisation\":{\"deny\":[\"a.com:80\"]}}", "a.com", 443, "allowed",
         "a.com"},
        {"{\"allow\":[\"*.a.com\"],\"organisation\":{\"deny\":[\"x.a.com\"]}}", "x.a.com", 443, "org_policy",
         "x.a.com"},
        {"{\"allow\":[\"*.a.com\"],\"organisation\":{\"deny\":[\"x.a.com\"]}}", "y.a.com", 443, "allowed",
         "*.a.com"},
        {"{\"allow\":[\"a.com\"],\"organisation\":{\"default\":\"deny\",\"allow\":[\"a.com\"],\"deny\":[\"a."
         "com\"]}}",
         "a.com", 443, "org_policy", "a.com"},
        {"{\"allow\":[\"a.com\"],\"organisation\":{\"default\":\"deny\",\"allow\":[\"a.com\"]}}", "a.com",
         443, "allowed", "a.com"},
        /* the organisation never widens, and its wildcard leaves out the apex too */
        {"{\"allow\":[\"a.com\"],\"organisation\":{\"allow\":[\"other.com\"]}}", "other.com", 443,
         "host_not_allowed", ""},
        {"{\"allow\":[\"a.com\"],\"organisation\":{\"allow\":[\"*.a.com\"]}}", "a.com", 443, "org_policy",
         ""},
        {"{\"allow\":[\"a.com:5432\"],\"organisation\":{\"default\":\"deny\",\"allow\":[\"a.com\"]}}",
         "a.com", 5432, "org_policy", ""},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_policy *policy STK_AUTO(stk_policy_freep) = make(rows[i].json);
        stk_verdict verdict = stk_policy_judge(policy, rows[i].host, rows[i].port);
        if (strcmp(verdict.reason, rows[i].reason) != 0 || strcmp(verdict.rule, rows[i].rule) != 0)
            fail_msg("%s on %s:%u: %s by \"%s\"", rows[i].json, rows[i].host, rows[i].port, verdict.reason,
                     verdict.rule);
        assert_int_equal(verdict.allow, strcmp(rows[i].reason, "allowed") == 0);
    }
}

static void internal_networks_open_for_named_hosts_and_never_for_what_is_never(void **state)
{
    stk_policy *policy STK_AUTO(stk_policy_freep) = make(
        "{\"allow\":[\"db.corp.com:5432\"],\"internal\":["
        "{\"cidr\":\"10.1.0.0/16\",\"hosts\":[\"db.corp.com\"],\"ports\":[5432]},"
        "{\"cidr\":\"0.0.0.0/0\",\"hosts\":[\"*.any.com\"]},{\"cidr\":\"::/0\",\"hosts\":[\"*.any.com\"]},"
        "{\"cidr\":\"10.2.0.0/16\",\"hosts\":[\"p.corp.com:8080\"]}]}");
    static const struct {
        const char *addr, *host;
        uint16_t port;
        bool ok;
    } rows[] = {
        {"10.1.0.1", "db.corp.com", 5432, true},
        {"10.1.0.1", "db.corp.com", 443, false},
        {"10.1.0.1", "evil.com", 5432, false},
        {"10.3.0.1", "db.corp.com", 5432, false},
        {"93.184.216.34", "evil.com", 443, true},
        {"10.9.9.9", "x.any.com", 1234, true},
        {"127.0.0.1", "x.any.com", 443, false},
        {"169.254.1.1", "x.any.com", 443, false},
        {"169.254.169.254", "x.any.com", 443, false},
        {"168.63.129.16", "x.any.com", 443, false},
        {"0.0.0.0", "x.any.com", 443, false},
        {"224.0.0.1", "x.any.com", 443, false},
        {"::1", "x.any.com", 443, false},
        {"::ffff:10.1.0.1", "x.any.com", 443, false},
        {"64:ff9b::a01:1", "x.any.com", 443, false},
        {"fd00::5efe:a00:1", "x.any.com", 443, false},
        {"fd00::1", "x.any.com", 443, true},
        {"fe80::1", "x.any.com", 443, false},
        {"10.2.0.1", "p.corp.com", 8080, true},
        {"10.2.0.1", "p.corp.com", 443, false},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        struct sockaddr_storage ss = {.ss_family = strchr(rows[i].addr, ':') ? AF_INET6 : AF_INET};
        void *at = ss.ss_family == AF_INET ? (void *)&((struct sockaddr_in *)&ss)->sin_addr
                                           : (void *)&((struct sockaddr_in6 *)&ss)->sin6_addr;
        assert_int_equal(inet_pton(ss.ss_family, rows[i].addr, at), 1);
        stk_addr_class cls = STK_ADDR_SCOPED;
        if (stk_policy_address_ok(policy, (struct sockaddr *)&ss, rows[i].host, rows[i].port, &cls) !=
            rows[i].ok)
            fail_msg("%s for %s:%u", rows[i].addr, rows[i].host, rows[i].port);
        assert_int_equal(cls, stk_addr_classify((struct sockaddr *)&ss));
    }
}

static void overlapping_and_huge_lists_load(void **state)
{
    stk_buf json = STK_BUF(1 << 20);
    stk_buf_text(&json, "{\"allow\":[\"api.x.com\",\"*.x.com\",\"api.x.com\"");
    for (int i = 0; i < 10000; i++)
        stk_buf_fmt(&json, ",\"h%d.example.com\"", i);
    stk_buf_text(&json, "]}");
    stk_policy *policy STK_AUTO(stk_policy_freep) = make(json.p);
    assert_true(stk_policy_judge(policy, "h9999.example.com", 443).allow);
    assert_false(stk_policy_judge(policy, "h10000.example.com", 443).allow);
    stk_buf_done(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_part_rejects_the_whole_policy),
        cmocka_unit_test(what_is_not_said_has_its_default),
        cmocka_unit_test(what_is_said_is_taken),
        cmocka_unit_test(lists_and_organisation_decide_together),
        cmocka_unit_test(internal_networks_open_for_named_hosts_and_never_for_what_is_never),
        cmocka_unit_test(overlapping_and_huge_lists_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
