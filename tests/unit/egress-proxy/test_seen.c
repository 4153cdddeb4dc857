#include "egress-proxy/seen.h"
#include "tests/unit/egress-proxy/unit.h"

static void hosts_are_found_again_up_to_the_cap(void **state)
{
    stk_seen seen = {0};
    char host[32];
    assert_null(stk_seen_get(&seen, "a.example"));
    for (int i = 0; i < 1200; i++) {
        snprintf(host, sizeof(host), "h%d.example", i);
        stk_seen_put(&seen, host, i + 1, 1000);
    }
    for (int i = 0; i < 1200; i++) {
        snprintf(host, sizeof(host), "h%d.example", i);
        int64_t *seq = stk_seen_get(&seen, host);
        assert_int_equal(seq != NULL, i < 1000);
        if (seq)
            assert_int_equal(*seq, i + 1);
    }
    stk_seen_clear(&seen);
    assert_null(stk_seen_get(&seen, "h1.example"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hosts_are_found_again_up_to_the_cap)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
