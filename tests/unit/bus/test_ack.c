/* The ack window against a plain model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "proto/bus/ack.h"

static void the_prefix_moves_over_what_is_finished(void **state)
{
    stk_ack ack = {0};
    stk_ack_start(&ack, 100);
    for (int64_t i = 100; i < 110; i++)
        stk_ack_deliver(&ack, i);
    static const struct {
        int64_t offset;
        bool ok;
        int64_t prefix;
    } rows[] = {{102, true, 100},  {102, false, 100}, {99, false, 100}, {110, false, 100}, {100, true, 101},
                {100, false, 101}, {101, true, 103},  {109, true, 103}, {108, true, 103},  {107, true, 103},
                {106, true, 103},  {105, true, 103},  {104, true, 103}, {103, true, 110},  {-1, false, 110}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        assert_int_equal(stk_ack_finish(&ack, rows[i].offset), rows[i].ok);
        assert_int_equal(ack.prefix, rows[i].prefix);
    }
    stk_ack_done(&ack);
}

static void offsets_that_do_not_exist_count_as_finished(void **state)
{
    stk_ack ack = {0};
    stk_ack_start(&ack, 0);
    stk_ack_deliver(&ack, 50);
    assert_int_equal(ack.prefix, 50);
    stk_ack_deliver(&ack, 300);
    assert_false(stk_ack_finish(&ack, 60));
    assert_true(stk_ack_finish(&ack, 300));
    assert_int_equal(ack.prefix, 50);
    assert_true(stk_ack_finish(&ack, 50));
    assert_int_equal(ack.prefix, 301);
    stk_ack_skip(&ack, 1000000000);
    assert_int_equal(ack.prefix, 1000000000);
    stk_ack_done(&ack);
}

static void it_agrees_with_a_plain_model(void **state)
{
    enum { N = 20000 };
    static bool delivered[N], finished[N];
    unsigned seed = 7;
    print_message("seed %u\n", seed);
    for (int round = 0; round < 5; round++) {
        stk_ack ack = {0};
        int64_t next = rand_r(&seed) % 100, prefix = next;
        memset(delivered, 0, sizeof(delivered));
        memset(finished, 0, sizeof(finished));
        stk_ack_start(&ack, next);
        while (next < N - 10) {
            if (rand_r(&seed) % 2) {
                int64_t at = next + (rand_r(&seed) % 10 == 0 ? rand_r(&seed) % 9 : 0);
                for (; next < at; next++)
                    finished[next] = true;
                stk_ack_deliver(&ack, at);
                delivered[next++] = true;
            } else {
                int64_t back = rand_r(&seed) % (round == 0 ? 3000 : 200), at = next - back;
                bool want = at >= 0 && delivered[at] && !finished[at];
                assert_int_equal(stk_ack_finish(&ack, at), want);
                if (want)
                    finished[at] = true;
            }
            while (prefix < next && finished[prefix])
                prefix++;
            assert_int_equal(ack.prefix, prefix);
            assert_int_equal(ack.next, next);
        }
        stk_ack_done(&ack);
    }
}

static void the_span_is_bounded(void **state)
{
    stk_ack ack = {0};
    stk_ack_start(&ack, 0);
    stk_ack_deliver(&ack, 0);
    assert_true(stk_ack_room(&ack));
    stk_ack_skip(&ack, STK_ACK_SPAN);
    assert_false(stk_ack_room(&ack));
    assert_true(stk_ack_finish(&ack, 0));
    assert_true(stk_ack_room(&ack));
    assert_int_equal(ack.prefix, STK_ACK_SPAN);
    stk_ack_done(&ack);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_prefix_moves_over_what_is_finished),
        cmocka_unit_test(offsets_that_do_not_exist_count_as_finished),
        cmocka_unit_test(it_agrees_with_a_plain_model),
        cmocka_unit_test(the_span_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
