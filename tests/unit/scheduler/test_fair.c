#include "scheduler/fair.h"
#include "tests/unit/scheduler/unit.h"
#include <time.h>

#define ANY 0xfffu

static stk_mono at(double seconds)
{
    return (stk_mono){(int64_t)(seconds * 1e9) + 1};
}

static uint32_t add(stk_fair *fair, const char *tenant, unsigned priority, unsigned cost, double arrived,
                    unsigned cls)
{
    uint32_t item;
    assert_int_equal(stk_fair_add(fair, stk_str_of(tenant), priority, cost, at(arrived), &item, NULL), 0);
    stk_fair_enter(fair, item, cls);
    return item;
}

static void a_lone_tenant_is_served_in_order(void **state)
{
    stk_fair *fair STK_AUTO(stk_fair_freep) = stk_fair_new(100, stk_sec(30));
    uint32_t items[5];
    assert_int_equal(stk_fair_pick(fair, ANY, at(0)), STK_FAIR_NONE);
    for (int i = 0; i < 5; i++)
        items[i] = add(fair, "a", 5, 1, i, 0);
    for (int i = 0; i < 5; i++)
        assert_int_equal(stk_fair_pick(fair, ANY, at(10)), items[i]);
    assert_int_equal(stk_fair_pick(fair, ANY, at(10)), STK_FAIR_NONE);
    assert_int_equal(stk_fair_count(fair), 5); /* picked, not dropped */
}

static void a_flooding_tenant_does_not_delay_a_small_one(void **state)
{
    stk_fair *fair STK_AUTO(stk_fair_freep) = stk_fair_new(200000, stk_sec(30));
    for (int i = 0; i < 100000; i++)
        add(fair, "flood", 9, 1, 0, 0);
    for (int i = 0; i < 50; i++)
        assert_int_not_equal(stk_fair_pick(fair, ANY, at(1)), STK_FAIR_NONE);
    uint32_t small = add(fair, "small", 0, 1, 1, 0);
    int before = 0;
    while (stk_fair_pick(fair, ANY, at(1)) != small)
        before++;
    assert_in_range(before, 0, 1);
    for (int i = 0; i < 10; i++) { /* and again each time */
        small = add(fair, "small", 0, 1, 2, 0);
        for (before = 0; stk_fair_pick(fair, ANY, at(2)) != small;)
            before++;
        assert_in_range(before, 0, 1);
    }
}

static void tenants_take_turns(void **state)
{
    stk_fair *fair STK_AUTO(stk_fair_freep) = stk_fair_new(1000, stk_sec(30));
    static const char *const names[] = {"a", "b", "c", "d"};
    uint32_t owner[400];
    for (int i = 0; i < 400; i++)
        owner[add(fair, names[i < 370 ? 0 : 1 + i % 3], 5, 1, 0, 0)] = i < 370 ? 0 : (uint32_t)(1 + i % 3);
    int served[4] = {0};
    for (int i = 0; i < 36; i++)
        served[owner[stk_fair_pick(fair, ANY, at(1))]]++;
    for (int i = 0; i < 4; i++)
        assert_int_equal(served[i], 9);
}

static void a_dear_run_takes_more_of_the_share(void **state)
{
    stk_fair *fair STK_AUTO(stk_fair_freep) = stk_fair_new(2000, stk_sec(30));
    bool dear[2000] = {false};
    for (int i = 0; i < 500; i++) {
        dear[add(fair, "dear", 5, 4, 0, 0)] = true;
        add(fair, "cheap", 5, 1, 0, 0);
    }
    int n = 0;
    for (int i = 0; i < 500; i++)
        n += dear[stk_fair_pick(fair, ANY, at(1))];
    assert_in_range(n, 98, 102); /* one in five */
}

static void priorities_order_within_a_tenant_only(void **state)
{
    stk_fair *fair STK_AUTO(stk_fair_freep) = stk_fair_new(100, stk_sec(30));
    uint32_t low = add(fair, "a", 1, 1, 0, 0), high = add(fair, "a", 9, 1, 0, 0),
             other = add(fair, "b", 0, 1, 0, 0);
    uint32_t first = stk_fair_pick(fair, ANY, at(1)), second = stk_fair_pick(fair, ANY, at(1));
    assert_int_equal(first, high);
    assert_int_equal(second, other);
    assert_int_equal(stk_fair_pick(fair, ANY, at(1)), low);
}

static void waiting_raises_a_priority(void **state)
{
    stk_fair *fair STK_AUTO(stk_fair_freep) = stk_fair_new(100, stk_sec(30));
    uint32_t old = add(fair, "a", 2, 1, 0, 0), young = add(fair, "a", 5, 1, 89, 0);
    assert_int_equal(stk_fair_pick(fair, ANY, at(90)), young); /* 2 + 3 against 5 and a little */
    stk_fair_return(fair, young);
    uint32_t late = add(fair, "a", 5, 1, 100, 0);
    assert_int_equal(stk_fair_pick(fair, ANY, at(101)), young);
    assert_int_equal(stk_fair_pick(fair, ANY, at(101)), old);
    assert_int_equal(stk_fair_pick(fair, ANY, at(101)), late);
}

static void only_possible_classes_are_picked(void **state)
{
    stk_fair *fair STK_AUTO(stk_fair_freep) = stk_fair_new(100, stk_sec(30));
    uint32_t first = add(fair, "a", 9, 1, 0, 3), second = add(fair, "a", 1, 1, 0, 4);
    assert_int_equal(stk_fair_classes(fair), 1u << 3 | 1u << 4);
    assert_int_equal(stk_fair_pick(fair, 1u << 5, at(1)), STK_FAIR_NONE);
    assert_int_equal(stk_fair_pick(fair, 1u << 4, at(1)), second);
    assert_int_equal(stk_fair_pick(fair, 1u << 4, at(1)), STK_FAIR_NONE);
    assert_int_equal(stk_fair_pick(fair, 1u << 3, at(1)), first);
    assert_int_equal(stk_fair_classes(fair), 0);
}

static void a_parked_tenant_is_passed_over_until_it_is_let_in(void **state)
{
    stk_fair *fair STK_AUTO(stk_fair_freep) = stk_fair_new(100, stk_sec(30));
    uint32_t a[3], b;
    for (int i = 0; i < 3; i++)
        a[i] = add(fair, "a", 5, 1, i, 0);
    b = add(fair, "b", 5, 1, 0, 0);
    assert_int_equal(stk_fair_pick(fair, ANY, at(5)), a[0]);
    stk_fair_park(fair, a[0]);
    stk_fair_return(fair, a[0]);
    assert_int_equal(stk_fair_pick(fair, ANY, at(5)), b);
    assert_int_equal(stk_fair_pick(fair, ANY, at(5)), STK_FAIR_NONE);
    assert_int_equal(stk_fair_classes(fair), 0);
    stk_fair_unpark(fair);
    for (int i = 0; i < 3; i++)
        assert_int_equal(stk_fair_pick(fair, ANY, at(5)), a[i]);
}

static void a_returned_one_is_first_again(void **state)
{
    stk_fair *fair STK_AUTO(stk_fair_freep) = stk_fair_new(100, stk_sec(30));
    uint32_t a = add(fair, "a", 5, 1, 0, 0), b = add(fair, "a", 5, 1, 1, 0);
    assert_int_equal(stk_fair_pick(fair, ANY, at(2)), a);
    stk_fair_return(fair, a);
    assert_int_equal(stk_fair_pick(fair, ANY, at(2)), a);
    assert_int_equal(stk_fair_pick(fair, ANY, at(2)), b);
}

static void items_leave_from_anywhere(void **state)
{
    stk_fair *fair STK_AUTO(stk_fair_freep) = stk_fair_new(100, stk_sec(30));
    uint32_t v[5];
    for (int i = 0; i < 5; i++)
        v[i] = add(fair, "a", 5, 1, i, 0);
    stk_fair_drop(fair, v[0]);
    stk_fair_drop(fair, v[2]);
    assert_true(stk_fair_unlist(fair, v[4]));
    assert_false(stk_fair_unlist(fair, v[4]));
    assert_int_equal(stk_fair_pick(fair, ANY, at(9)), v[1]);
    assert_int_equal(stk_fair_pick(fair, ANY, at(9)), v[3]);
    assert_int_equal(stk_fair_pick(fair, ANY, at(9)), STK_FAIR_NONE);
    stk_fair_drop(fair, v[1]);
    stk_fair_drop(fair, v[3]);
    stk_fair_drop(fair, v[4]);
    assert_int_equal(stk_fair_count(fair), 0);
    assert_int_equal(stk_fair_tenants(fair), 0);
}

static void a_full_index_says_so(void **state)
{
    stk_fair *fair STK_AUTO(stk_fair_freep) = stk_fair_new(3, stk_sec(30));
    uint32_t item = 0;
    for (int i = 0; i < 3; i++)
        item = add(fair, "a", 5, 1, i, 0);
    uint32_t more;
    assert_int_equal(stk_fair_add(fair, STK_STR("b"), 5, 1, at(0), &more, NULL), -STK_E_LIMIT);
    stk_fair_drop(fair, item);
    assert_int_equal(stk_fair_add(fair, STK_STR("b"), 5, 1, at(0), &more, NULL), 0);
}

/* Every item comes out exactly once, whatever happens to it on the way, and a model that only counts agrees.
 */
static void random_lives_lose_nobody(void **state)
{
    srandom(20260203);
    for (int round = 0; round < 200; round++) {
        stk_fair *fair STK_AUTO(stk_fair_freep) = stk_fair_new(500, stk_sec(30));
        enum { GONE, OUT, LISTED } lives[500] = {GONE};
        size_t count = 0, listed = 0;
        for (int step = 0; step < 600; step++) {
            uint32_t i = (uint32_t)(random() % 500);
            char tenant[8];
            snprintf(tenant, sizeof(tenant), "t%ld", random() % 7);
            switch (random() % 6) {
            case 0:
            case 1:
                if (stk_fair_add(fair, stk_str_of(tenant), (unsigned)(random() % 12),
                                 (unsigned)(random() % 10), at(step), &i, NULL) < 0)
                    break;
                assert_int_equal(lives[i], GONE);
                stk_fair_enter(fair, i, (unsigned)(random() % STK_FAIR_CLASSES));
                lives[i] = LISTED;
                count++;
                listed++;
                break;
            case 2:
                i = stk_fair_pick(fair, (uint32_t)random() & ANY, at(step));
                if (i == STK_FAIR_NONE)
                    break;
                assert_int_equal(lives[i], LISTED);
                lives[i] = OUT;
                listed--;
                break;
            case 3:
                if (lives[i] != OUT)
                    break;
                stk_fair_return(fair, i);
                lives[i] = LISTED;
                listed++;
                break;
            case 4:
                if (lives[i] == GONE)
                    break;
                listed -= lives[i] == LISTED;
                stk_fair_drop(fair, i);
                lives[i] = GONE;
                count--;
                break;
            default:
                if (lives[i] != GONE && random() % 2)
                    stk_fair_park(fair, i);
                else
                    stk_fair_unpark(fair);
            }
            assert_int_equal(stk_fair_count(fair), count);
            assert_int_equal(stk_fair_listed(fair), listed);
        }
        stk_fair_unpark(fair);
        for (; listed; listed--) {
            uint32_t i = stk_fair_pick(fair, ANY, at(9999));
            assert_int_not_equal(i, STK_FAIR_NONE);
            assert_int_equal(lives[i], LISTED);
            lives[i] = OUT;
        }
        assert_int_equal(stk_fair_pick(fair, ANY, at(9999)), STK_FAIR_NONE);
    }
}

static double seconds_for(size_t n)
{
    double best = 1e9;
    for (int round = 0; round < 3; round++) {
        stk_fair *fair STK_AUTO(stk_fair_freep) = stk_fair_new(n, stk_sec(30));
        char tenant[16];
        struct timespec a, b;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
        for (size_t i = 0; i < n; i++) {
            snprintf(tenant, sizeof(tenant), "t%zu", i % 100);
            add(fair, tenant, (unsigned)(i % 10), 1, (double)i / 1e6, (unsigned)(i % 4));
        }
        for (size_t i = 0; i < n; i++)
            stk_fair_drop(fair, stk_fair_pick(fair, ANY, at(1)));
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
        double took = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
        best = took < best ? took : best;
    }
    return best;
}

/* Eleven times on a machine of our own; caches that others fill cost the larger queue more. Anything that
 * grows with the number of waiting runs would be a hundred times. */
static void ten_times_as_many_take_about_ten_times_as_long(void **state)
{
    double few = seconds_for(20000), many = seconds_for(200000);
    print_message("20,000: %.1f ns, 200,000: %.1f ns a run\n", few / 20000 * 1e9, many / 200000 * 1e9);
    assert_true(many < 20 * few);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lone_tenant_is_served_in_order),
        cmocka_unit_test(a_flooding_tenant_does_not_delay_a_small_one),
        cmocka_unit_test(tenants_take_turns),
        cmocka_unit_test(a_dear_run_takes_more_of_the_share),
        cmocka_unit_test(priorities_order_within_a_tenant_only),
        cmocka_unit_test(waiting_raises_a_priority),
        cmocka_unit_test(only_possible_classes_are_picked),
        cmocka_unit_test(a_parked_tenant_is_passed_over_until_it_is_let_in),
        cmocka_unit_test(a_returned_one_is_first_again),
        cmocka_unit_test(items_leave_from_anywhere),
        cmocka_unit_test(a_full_index_says_so),
        cmocka_unit_test(random_lives_lose_nobody),
        cmocka_unit_test(ten_times_as_many_take_about_ten_times_as_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
