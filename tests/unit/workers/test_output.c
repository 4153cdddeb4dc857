/* What is kept of a stream is bounded here again, whatever the runtime sends. */
#include "tests/unit/workers/unit.h"
#include "workers/output.h"

static void all_of_a_short_stream_is_kept(void **state)
{
    stk_output out;
    stk_output_init(&out, 16);
    stk_output_add(&out, STK_STR("hello "));
    stk_output_add(&out, STK_STR(""));
    stk_output_add(&out, STK_STR("world"));
    assert_int_equal(out.kept.n, 11);
    assert_memory_equal(out.kept.p, "hello world", 11);
    assert_int_equal(out.left_out, 0);
    stk_output_done(&out);
}

static void exactly_the_bound_is_not_cut(void **state)
{
    stk_output out;
    stk_output_init(&out, 4);
    stk_output_add(&out, STK_STR("abcd"));
    assert_int_equal(out.left_out, 0);
    stk_output_add(&out, STK_STR("e"));
    assert_int_equal(out.left_out, 1);
    assert_int_equal(out.kept.n, 4);
    stk_output_done(&out);
}

static void more_than_the_bound_is_counted_and_not_kept(void **state)
{
    static char block[65536];
    stk_output out;
    stk_output_init(&out, 1000);
    for (int i = 0; i < 64; i++)
        stk_output_add(&out, stk_str_n(block, sizeof(block)));
    assert_int_equal(out.kept.n, 1000);
    assert_int_equal(out.left_out, 64 * 65536 - 1000);
    stk_output_done(&out);
}

static void a_gap_is_marked_where_it_is(void **state)
{
    static const char right[] = "head\n[12 bytes left out]\ntail";
    stk_output out;
    stk_output_init(&out, 64);
    stk_output_add(&out, STK_STR("head"));
    stk_output_gap(&out, 12);
    stk_output_gap(&out, 0);
    stk_output_gap(&out, -5);
    stk_output_add(&out, STK_STR("tail"));
    assert_int_equal(out.kept.n, sizeof(right) - 1);
    assert_memory_equal(out.kept.p, right, sizeof(right) - 1);
    assert_int_equal(out.left_out, 12);
    stk_output_done(&out);
}

static void very_many_gaps_stay_within_the_bound(void **state)
{
    stk_output out;
    stk_output_init(&out, 256);
    for (int i = 0; i < 10000; i++) {
        stk_output_gap(&out, 1);
        stk_output_add(&out, STK_STR("x"));
    }
    assert_true(out.kept.n <= 256 + 64);
    assert_true(out.left_out >= 10000);
    stk_output_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_a_short_stream_is_kept),
        cmocka_unit_test(exactly_the_bound_is_not_cut),
        cmocka_unit_test(more_than_the_bound_is_counted_and_not_kept),
        cmocka_unit_test(a_gap_is_marked_where_it_is),
        cmocka_unit_test(very_many_gaps_stay_within_the_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
