#include "tests/unit/egress-proxy/unit.h"

static const char policy_text[] =
    "{\"version\":1,\"allow\":[\"a.example\",\"*.b.example\",\"db.example:5432\",\"*.org.example\"],"
    "\"organisation\":{\"deny\":[\"bad.org.example\"]},"
    "\"internal\":[{\"cidr\":\"10.1.0.0/16\",\"hosts\":[\"a.example\"],\"ports\":[443]}],"
    "\"limits\":{\"tunnels\":2,\"bytes\":1000,\"dns_queries\":10}}";

static void a_name_is_judged_by_list_then_organisation_then_what_is_used_up(void **state)
{
    static const struct {
        const char *host;
        bool literal;
        uint16_t port;
        stk_usage usage;
        stk_reason reason;
        const char *rule;
    } rows[] = {
        {"a.example", false, 443, {0}, STK_R_ALLOWED, "a.example"},
        {"a.example", false, 80, {0}, STK_R_ALLOWED, "a.example"},
        {"a.example", false, 8443, {0}, STK_R_PORT_NOT_ALLOWED, "a.example"},
        {"x.y.b.example", false, 443, {0}, STK_R_ALLOWED, "*.b.example"},
        {"b.example", false, 443, {0}, STK_R_HOST_NOT_ALLOWED, ""},
        {"notb.example", false, 443, {0}, STK_R_HOST_NOT_ALLOWED, ""},
        {"db.example", false, 443, {0}, STK_R_PORT_NOT_ALLOWED, "db.example:5432"},
        {"db.example", false, 5432, {0}, STK_R_ALLOWED, "db.example:5432"},
        {"bad.org.example", false, 443, {0}, STK_R_ORG_POLICY, "bad.org.example"},
        {"good.org.example", false, 443, {0}, STK_R_ALLOWED, "*.org.example"},
        {"a.example", true, 443, {0}, STK_R_HOST_NOT_ALLOWED, ""},
        {"a.example", false, 443, {.tunnels = 1}, STK_R_ALLOWED, "a.example"},
        {"a.example", false, 443, {.tunnels = 2}, STK_R_TOO_MANY_TUNNELS, "a.example"},
        {"a.example", false, 443, {.bytes = 999}, STK_R_ALLOWED, "a.example"},
        {"a.example", false, 443, {.bytes = 1000}, STK_R_BYTES_EXCEEDED, "a.example"},
        {"a.example", false, 443, {.dns_queries = 10}, STK_R_DNS_BUDGET, "a.example"},
        {"evil.example", false, 443, {.tunnels = 2, .bytes = 1000}, STK_R_HOST_NOT_ALLOWED, ""},
    };
    stk_policy *policy = policy_of(policy_text);
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_decision got =
            stk_decide_name(policy, rows[i].host, rows[i].literal, rows[i].port, &rows[i].usage);
        if (got.reason != rows[i].reason || strcmp(got.rule, rows[i].rule) != 0)
            fail_msg("%s:%u: %s by '%s'", rows[i].host, rows[i].port, stk_reason_code(got.reason), got.rule);
    }
    stk_policy_free(policy);
}

static void without_a_policy_nothing_is_allowed(void **state)
{
    const stk_usage nothing = {0};
    assert_int_equal(stk_decide_name(NULL, "a.example", false, 443, &nothing).reason,
                     STK_R_POLICY_UNAVAILABLE);
}

static void one_bad_address_refuses_the_lot(void **state)
{
    static const struct {
        const char *addrs[4];
        uint16_t port;
        stk_reason reason;
        const char *class;
    } rows[] = {
        {{"93.184.216.34"}, 443, STK_R_ALLOWED, "public"},
        {{"93.184.216.34", "2606:4700::1"}, 443, STK_R_ALLOWED, "public"},
        {{"93.184.216.34", "127.0.0.1"}, 443, STK_R_ADDRESS_NOT_PUBLIC, "loopback"},
        {{"169.254.169.254", "93.184.216.34"}, 443, STK_R_ADDRESS_NOT_PUBLIC, "metadata"},
        {{"93.184.216.34", "fd00:ec2::254"}, 443, STK_R_ADDRESS_NOT_PUBLIC, NULL},
        {{"2606:4700::1", "::ffff:93.184.216.34"}, 443, STK_R_ADDRESS_NOT_PUBLIC, "embedded-v4"},
        {{"10.1.2.3"}, 443, STK_R_ALLOWED, NULL},
        {{"10.1.2.3"}, 80, STK_R_ADDRESS_NOT_PUBLIC, "private"},
        {{"10.2.2.3"}, 443, STK_R_ADDRESS_NOT_PUBLIC, "private"},
        {{"11.0.0.1"}, 443, STK_R_ADDRESS_NOT_PUBLIC, "own"},
        {{"93.184.216.34", "11.0.0.1"}, 443, STK_R_ADDRESS_NOT_PUBLIC, "own"},
        {{NULL}, 443, STK_R_DNS_NO_ADDRESS, ""},
    };
    stk_policy *policy = policy_of(policy_text);
    const stk_sock own = sock_of("11.0.0.1");
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_sock addrs[4];
        size_t n = 0;
        const char *class;
        for (; n < 4 && rows[i].addrs[n]; n++)
            addrs[n] = sock_of(rows[i].addrs[n]);
        stk_reason got = stk_decide_addresses(policy, "a.example", rows[i].port, (stk_own_addrs){&own, 1},
                                              addrs, n, &class);
        if (got != rows[i].reason || (rows[i].class && strcmp(class, rows[i].class) != 0))
            fail_msg("row %zu: %s (%s)", i, stk_reason_code(got), class);
        for (size_t k = 0; got == STK_R_ALLOWED && k < n; k++)
            assert_int_equal(addrs[k].v4.sin_port, htons(rows[i].port));
    }
    stk_policy_free(policy);
}

static void families_alternate_and_the_newer_goes_first(void **state)
{
    stk_sock addrs[] = {sock_of("93.184.216.1"), sock_of("93.184.216.2"), sock_of("93.184.216.3"),
                        sock_of("2606:4700::1"), sock_of("2606:4700::2")};
    static const char *const want[] = {"2606:4700::1", "93.184.216.1", "2606:4700::2", "93.184.216.2",
                                       "93.184.216.3"};
    stk_decide_order(addrs, STK_COUNT(addrs));
    for (size_t i = 0; i < STK_COUNT(want); i++) {
        stk_sock expected = sock_of(want[i]);
        assert_true(stk_sock_same_addr(&addrs[i], &expected));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_judged_by_list_then_organisation_then_what_is_used_up),
        cmocka_unit_test(without_a_policy_nothing_is_allowed),
        cmocka_unit_test(one_bad_address_refuses_the_lot),
        cmocka_unit_test(families_alternate_and_the_newer_goes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
