#include "scheduler/index.h"
#include "tests/unit/scheduler/unit.h"

static void the_first_due_is_always_on_top(void **state)
{
    srandom(20260204);
    stk_index index = {.slots = NULL};
    stk_index_grow(&index, 1000);
    for (int step = 0; step < 20000; step++) {
        uint32_t item = (uint32_t)(random() % 1000);
        stk_index_set_due(&index, item, (stk_mono){random() % 4 ? random() % 1000000 + 1 : 0});
        if (step % 50)
            continue;
        int64_t least = INT64_MAX;
        size_t due = 0;
        for (uint32_t i = 0; i < 1000; i++) {
            due += index.slots[i].due.ns != 0;
            if (index.slots[i].due.ns && index.slots[i].due.ns < least)
                least = index.slots[i].due.ns;
        }
        assert_int_equal(index.nheap, due);
        if (due)
            assert_int_equal(index.slots[stk_index_first(&index)].due.ns, least);
    }
    while (stk_index_first(&index) != UINT32_MAX) {
        int64_t was = index.slots[stk_index_first(&index)].due.ns;
        stk_index_set_due(&index, stk_index_first(&index), (stk_mono){0});
        if (index.nheap)
            assert_true(index.slots[stk_index_first(&index)].due.ns >= was);
    }
    stk_index_done(&index);
}

static void what_waits_costs_about_a_hundred_bytes(void **state)
{
    assert_true(sizeof(stk_slot) + sizeof(uint32_t) + 32 <= 100); /* slot, heap, item of stk_fair */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_due_is_always_on_top),
        cmocka_unit_test(what_waits_costs_about_a_hundred_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
