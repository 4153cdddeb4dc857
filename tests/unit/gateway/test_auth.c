#include "tests/unit/gateway/unit.h"
#include "api-gateway/auth.h"

static void only_loopback_hosts_pass(void **state)
{
    static const char *const good[] = {"localhost",       "LocalHost:8700", "127.0.0.1", "127.0.0.1:1",
                                       "127.9.8.7:65535", "[::1]",          "[::1]:80"};
    static const char *const bad[] = {"",
                                      "example.org",
                                      "localhost.example.org",
                                      "127.0.0.1.example.org",
                                      "127.0.0.1x",
                                      "127.1",
                                      "127.a.0.1",
                                      "10.0.0.1",
                                      "[::2]",
                                      "[::1]x",
                                      "[::1]:x",
                                      "localhost:",
                                      "localhost:70000",
                                      "0.0.0.0",
                                      "::1",
                                      "localhost:8700:1"};
    for (size_t i = 0; i < STK_COUNT(good); i++)
        if (!stk_gw_host_is_loopback(stk_str_of(good[i])))
            fail_msg("%s", good[i]);
    for (size_t i = 0; i < STK_COUNT(bad); i++)
        if (stk_gw_host_is_loopback(stk_str_of(bad[i])))
            fail_msg("%s", bad[i]);
}

static void a_web_page_does_not_get_in(void **state)
{
    static const struct {
        const char *headers;
        bool in, in_unix;
    } rows[] = {
        {"Host: localhost:8700\r\n", true, true},
        {"Host: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\n", true, true},
        {"Host: 127.0.0.1\r\nSec-Fetch-Site: none\r\n", true, true},
        {"Host: 127.0.0.1\r\nSec-Fetch-Site: cross-site\r\n", false, false},
        {"Host: 127.0.0.1\r\nSec-Fetch-Site: same-site\r\n", false, false},
        {"Host: 127.0.0.1\r\nSec-Fetch-Site: \r\n", false, false},
        {"Host: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n", false, false},
        {"Host: 127.0.0.1\r\norigin: null\r\n", false, false},
        {"Host: attacker.example\r\n", false, true},
        {"Host: attacker.example:8700\r\n", false, true},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        char text[512];
        size_t scan = 0;
        stk_head head;
        stk_head_fault fault;
        const char *why;
        const stk_head_limits limits = {16384, STK_HEAD_MAX_FIELDS};
        stk_err err = {0};
        snprintf(text, sizeof(text), "GET /v1/runs HTTP/1.1\r\n%s\r\n", rows[i].headers);
        assert_true(stk_head_request(stk_str_of(text), &limits, &scan, &head, &fault, &why) > 0);
        if ((stk_gw_guard(&head, false, &err) == 0) != rows[i].in ||
            (stk_gw_guard(&head, true, &err) == 0) != rows[i].in_unix)
            fail_msg("%s", rows[i].headers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_loopback_hosts_pass),
        cmocka_unit_test(a_web_page_does_not_get_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
