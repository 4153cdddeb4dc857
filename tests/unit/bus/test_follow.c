/* Following a compacted topic. */
#include "proto/bus/follow.h"
#include "tests/unit/bus/bench.h"

typedef struct seen {
    size_t changes, live, caught_up, entries;
    char last[64];
    bool removed;
} seen;

static void on_change(stk_str key, stk_str value, bool caught_up, void *arg)
{
    seen *s = arg;
    s->changes++;
    s->live += caught_up;
    s->removed = value.p == NULL;
    snprintf(s->last, sizeof(s->last), "%.*s=%.*s", (int)key.n, key.p, (int)value.n, value.n ? value.p : "");
}

static void on_caught_up(void *arg)
{
    ((seen *)arg)->caught_up++;
}

static void count(stk_str key, stk_str value, void *arg)
{
    ((seen *)arg)->entries++;
}

static void the_newest_record_of_a_key_is_what_counts(void **state)
{
    bench *b = *state;
    bench_put(b, "c", "one", "1");
    bench_put(b, "c", "two", "2");
    bench_put(b, "c", "one", "1b");
    seen s = {0};
    stk_follow *follow;
    stk_err err;
    assert_int_equal(stk_follow_new(b->bus, "c", on_change, &s, &follow, &err), 0);
    stk_follow_on_caught_up(follow, on_caught_up, &s);
    assert_false(stk_follow_caught_up(follow));
    bench_until(b, s.caught_up);
    assert_int_equal(s.changes, 3);
    assert_int_equal(s.live, 0);
    assert_true(stk_str_eq(stk_follow_get(follow, STK_STR("one")), STK_STR("1b")));
    assert_true(stk_str_eq(stk_follow_get(follow, STK_STR("two")), STK_STR("2")));
    assert_null(stk_follow_get(follow, STK_STR("three")).p);
    bench_put(b, "c", "two", "2b");
    bench_until(b, s.live == 1);
    assert_string_equal(s.last, "two=2b");
    bench_put(b, "c", "one", "");
    bench_until(b, s.live == 2);
    assert_true(s.removed);
    assert_null(stk_follow_get(follow, STK_STR("one")).p);
    stk_follow_each(follow, count, &s);
    assert_int_equal(s.entries, 1);
    assert_null(stk_follow_error(follow));
    stk_follow_free(follow);
}

static void an_empty_topic_is_caught_up_at_once(void **state)
{
    bench *b = *state;
    seen s = {0};
    stk_follow *follow;
    stk_err err;
    assert_int_equal(stk_follow_new(b->bus, "c", on_change, &s, &follow, &err), 0);
    bench_until(b, stk_follow_caught_up(follow));
    stk_follow_on_caught_up(follow, on_caught_up, &s);
    assert_int_equal(s.caught_up, 1);
    assert_int_equal(s.changes, 0);
    stk_follow_free(follow);
    assert_int_equal(stk_follow_new(b->bus, "none", on_change, &s, &follow, &err), -STK_E_NOT_FOUND);
}

static void many_keys_are_found(void **state)
{
    bench *b = *state;
    ack a = {0};
    for (int i = 0; i < 2000; i++) {
        char key[32];
        snprintf(key, sizeof(key), "key-%d", i);
        stk_bus_out out = {.topic = "c", .partition = 0, .key = stk_str_of(key), .value = stk_str_of(key)};
        stk_bus_publish(b->bus, &out, on_ack, &a);
    }
    bench_until(b, a.done == 2000);
    seen s = {0};
    stk_follow *follow;
    stk_err err;
    assert_int_equal(stk_follow_new(b->bus, "c", NULL, NULL, &follow, &err), 0);
    bench_until(b, stk_follow_caught_up(follow));
    for (int i = 0; i < 2000; i++) {
        char key[32];
        snprintf(key, sizeof(key), "key-%d", i);
        assert_true(stk_str_eq(stk_follow_get(follow, stk_str_of(key)), stk_str_of(key)));
    }
    stk_follow_each(follow, count, &s);
    assert_int_equal(s.entries, 2000);
    stk_follow_free(follow);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, bench_setup, bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {CASE(the_newest_record_of_a_key_is_what_counts),
                                       CASE(an_empty_topic_is_caught_up_at_once), CASE(many_keys_are_found)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
