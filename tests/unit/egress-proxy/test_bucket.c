#include "egress-proxy/bucket.h"
#include "tests/unit/egress-proxy/unit.h"

static stk_mono at(int64_t ms)
{
    return (stk_mono){ms * 1000000};
}

static void it_starts_full_and_fills_at_its_rate(void **state)
{
    stk_bucket bucket;
    stk_bucket_init(&bucket, 1000, 50, at(0));
    assert_int_equal(stk_bucket_take(&bucket, 80, at(0)), 50);
    assert_int_equal(stk_bucket_take(&bucket, 1, at(0)), 0);
    assert_int_equal(stk_bucket_take(&bucket, 100, at(20)), 20);
    assert_int_equal(stk_bucket_take(&bucket, 100, at(100000)), 50);
}

static void many_small_takes_lose_nothing(void **state)
{
    stk_bucket bucket;
    int64_t got = 0;
    stk_bucket_init(&bucket, 300, 10, at(0));
    got += stk_bucket_take(&bucket, 10, at(0));
    for (int64_t ms = 1; ms <= 10000; ms++)
        got += stk_bucket_take(&bucket, 1, at(ms));
    assert_int_equal(got, 10 + 3000);
}

static void the_wait_is_exactly_long_enough(void **state)
{
    stk_bucket bucket;
    stk_bucket_init(&bucket, 7, 100, at(0));
    stk_bucket_take(&bucket, 100, at(0));
    stk_span wait = stk_bucket_wait(&bucket, 3, at(0));
    stk_bucket early = bucket;
    assert_int_equal(stk_bucket_take(&early, 3, (stk_mono){wait.ns - 1}), 2);
    assert_int_equal(stk_bucket_take(&bucket, 3, (stk_mono){wait.ns}), 3);
}

static void what_was_not_used_comes_back_up_to_the_brim(void **state)
{
    stk_bucket bucket;
    stk_bucket_init(&bucket, 1, 10, at(0));
    stk_bucket_take(&bucket, 10, at(0));
    stk_bucket_return(&bucket, 4);
    assert_int_equal(stk_bucket_take(&bucket, 10, at(0)), 4);
    stk_bucket_return(&bucket, 400);
    assert_int_equal(stk_bucket_take(&bucket, 400, at(0)), 10);
}

static void no_rate_is_no_limit_and_time_going_back_gives_nothing(void **state)
{
    stk_bucket bucket;
    stk_bucket_init(&bucket, 0, 0, at(0));
    assert_int_equal(stk_bucket_take(&bucket, 1 << 30, at(0)), 1 << 30);
    assert_int_equal(stk_bucket_wait(&bucket, 1 << 30, at(0)).ns, 0);
    stk_bucket_init(&bucket, 1000, 10, at(100));
    stk_bucket_take(&bucket, 10, at(100));
    assert_int_equal(stk_bucket_take(&bucket, 10, at(50)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_starts_full_and_fills_at_its_rate),
        cmocka_unit_test(many_small_takes_lose_nothing),
        cmocka_unit_test(the_wait_is_exactly_long_enough),
        cmocka_unit_test(what_was_not_used_comes_back_up_to_the_brim),
        cmocka_unit_test(no_rate_is_no_limit_and_time_going_back_gives_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
