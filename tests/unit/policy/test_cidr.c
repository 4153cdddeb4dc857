#include "tests/unit/policy/unit.h"
#include <arpa/inet.h>

static struct sockaddr_storage addr_of(const char *text)
{
    struct sockaddr_storage ss = {.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET};
    void *at = ss.ss_family == AF_INET ? (void *)&((struct sockaddr_in *)&ss)->sin_addr
                                       : (void *)&((struct sockaddr_in6 *)&ss)->sin6_addr;
    assert_int_equal(inet_pton(ss.ss_family, text, at), 1);
    return ss;
}

static void membership_is_exact_at_both_edges(void **state)
{
    static const struct {
        const char *net, *addr;
        bool in;
    } rows[] = {
        {"0.0.0.0/0", "0.0.0.0", true},
        {"0.0.0.0/0", "255.255.255.255", true},
        {"0.0.0.0/0", "::1", false},
        {"255.255.255.255/32", "255.255.255.255", true},
        {"255.255.255.255/32", "255.255.255.254", false},
        {"240.0.0.0/4", "239.255.255.255", false},
        {"240.0.0.0/4", "240.0.0.0", true},
        {"240.0.0.0/4", "255.255.255.255", true},
        {"10.1.0.0/16", "10.0.255.255", false},
        {"10.1.0.0/16", "10.1.0.0", true},
        {"10.1.0.0/16", "10.1.255.255", true},
        {"10.1.0.0/16", "10.2.0.0", false},
        {"10.0.0.2/31", "10.0.0.1", false},
        {"10.0.0.2/31", "10.0.0.2", true},
        {"10.0.0.2/31", "10.0.0.3", true},
        {"10.0.0.2/31", "10.0.0.4", false},
        {"::/0", "::", true},
        {"::/0", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", true},
        {"::/0", "1.2.3.4", false},
        {"2001:db8::/32", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", true},
        {"2001:db8::/32", "2001:db9::", false},
        {"2001:db8::/33", "2001:db8:8000::", false},
        {"::1/128", "::1", true},
        {"::1/128", "::2", false},
        {"10.0.0.0/8", "::ffff:10.0.0.1", false},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_cidr net;
        assert_int_equal(stk_cidr_parse(stk_str_of(rows[i].net), &net, NULL), 0);
        struct sockaddr_storage ss = addr_of(rows[i].addr);
        if (stk_cidr_has(&net, (struct sockaddr *)&ss) != rows[i].in)
            fail_msg("%s in %s", rows[i].addr, rows[i].net);
    }
}

static void malformed_networks_are_refused(void **state)
{
    static const char *const rows[] = {
        "",
        "/",
        "10.0.0.0",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.0/08",
        "10.0.0.0/-1",
        "10.0.0.0/8 ",
        " 10.0.0.0/8",
        "10.0.0.1/8",
        "10/8",
        "::/129",
        "2001:db8::1/32",
        "fe80::%eth0/10",
        "::1/127",
        "a/8",
        "10.0.0.0/8/8",
        "0x0a.0.0.0/8",
        "255.255.255.255/31",
        "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb/64",
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_cidr net;
        if (stk_cidr_parse(stk_str_of(rows[i]), &net, NULL) != -STK_E_FIELD)
            fail_msg("\"%s\" passed", rows[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(membership_is_exact_at_both_edges),
        cmocka_unit_test(malformed_networks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
