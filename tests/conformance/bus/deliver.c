/* Delivery: windows, pausing, starts, catching up, unsubscribing. */
#include "tests/conformance/bus/suite.h"

static void ten_thousand_messages_arrive_once_and_in_order(void **state)
{
    world *w = *state;
    tap t = {.finish = true};
    tap_on(w->bus, &t, &(stk_consumer_spec){.topic = ONE, .group = "g"});
    publish_n(w, ONE, 0, 0, 10000);
    spin_until(w, t.n >= 10000);
    settle(w, 30);
    assert_int_equal(t.n, 10000);
    for (size_t i = 0; i < t.n; i++) {
        char want[32];
        snprintf(want, sizeof(want), "m%zu", i);
        assert_string_equal(t.v[i].value, want);
    }
    assert_int_equal(t.errors, 0);
    tap_done(&t);
}

static void a_consumer_that_fell_behind_catches_up(void **state)
{
    world *w = *state;
    stk_loop *slow;
    stk_err err;
    assert_int_equal(stk_loop_new(&slow, &err), 0);
    stk_bus *bus = factory->open(w->self, slow);
    tap t = {.finish = true};
    tap_on(bus, &t, &(stk_consumer_spec){.topic = MANY});
    publish_n(w, MANY, -1, 0, 6000);
    assert_int_equal(t.n, 0);
    stk_mono until = stk_mono_add(stk_mono_now(), stk_sec(20));
    while (t.n < 6000 && stk_mono_before(stk_mono_now(), until))
        turn_loop(slow);
    assert_int_equal(t.n, 6000);
    int64_t last[PARTITIONS];
    memset(last, -1, sizeof(last));
    for (size_t i = 0; i < t.n; i++) {
        assert_true(t.v[i].offset > last[t.v[i].partition]);
        last[t.v[i].partition] = t.v[i].offset;
    }
    tap_done(&t);
    stk_bus_close(bus);
    stk_loop_free(slow);
}

static void the_window_pauses_delivery(void **state)
{
    world *w = *state;
    tap t = {0};
    tap_on(w->bus, &t, &(stk_consumer_spec){.topic = ONE, .group = "g", .window = 3});
    publish_n(w, ONE, 0, 0, 10);
    spin_until(w, t.n == 3);
    settle(w, 50);
    assert_int_equal(t.n, 3);
    stk_bus_finish(t.consumer, 0, t.v[2].offset);
    spin_until(w, t.n == 4);
    stk_bus_finish(t.consumer, 0, t.v[2].offset);
    settle(w, 50);
    assert_int_equal(t.n, 4);
    stk_bus_finish(t.consumer, 0, t.v[0].offset);
    stk_bus_finish(t.consumer, 0, t.v[1].offset);
    spin_until(w, t.n == 6);
    tap_done(&t);
}

static void finishing_is_never_answered_from_inside(void **state)
{
    world *w = *state;
    tap t = {0};
    tap_on(w->bus, &t, &(stk_consumer_spec){.topic = ONE, .window = 1});
    publish_n(w, ONE, 0, 0, 2);
    spin_until(w, t.n == 1);
    stk_bus_finish(t.consumer, 0, t.v[0].offset);
    assert_int_equal(t.n, 1);
    spin_until(w, t.n == 2);
    tap_done(&t);
}

static void a_paused_consumer_gets_nothing_until_it_resumes(void **state)
{
    world *w = *state;
    tap t = {.finish = true};
    tap_on(w->bus, &t, &(stk_consumer_spec){.topic = ONE, .group = "g"});
    publish_n(w, ONE, 0, 0, 5);
    spin_until(w, t.n == 5);
    stk_bus_pause(t.consumer, true);
    publish_n(w, ONE, 0, 5, 5);
    settle(w, 50);
    assert_int_equal(t.n, 5);
    stk_bus_pause(t.consumer, false);
    assert_int_equal(t.n, 5);
    spin_until(w, t.n == 10);
    assert_int_equal(t.nrevoked, 0);
    tap_done(&t);
}

static void unsubscribing_stops_all_callbacks(void **state)
{
    world *w = *state;
    publish_n(w, ONE, 0, 0, 100);
    tap t = {.leave = true};
    tap_on(w->bus, &t, &(stk_consumer_spec){.topic = ONE});
    spin_until(w, t.n == 1);
    publish_n(w, ONE, 0, 100, 100);
    settle(w, 50);
    assert_int_equal(t.n, 1);
    assert_int_equal(t.caught_up, 0);

    tap before = {0};
    tap_on(w->bus, &before, &(stk_consumer_spec){.topic = ONE});
    tap_off(&before);
    settle(w, 50);
    assert_int_equal(before.n + before.caught_up, 0);
    tap_done(&t);
    tap_done(&before);
}

static void without_a_group_it_reads_the_partitions_and_starts_it_was_given(void **state)
{
    world *w = *state;
    ack two = {0};
    for (int i = 0; i < 10; i++) {
        char value[32];
        snprintf(value, sizeof(value), "v%d", i);
        publish(w, MANY, 2, "k", value);
        publish(w, MANY, 3, "k", value);
        publish(w, MANY, 4, "k", value);
        if (i == 6)
            two = publish(w, MANY, 2, "k", "start");
    }
    int32_t partitions[] = {2, 4};
    int64_t starts[] = {two.offset, 0};
    tap t = {.finish = true};
    tap_on(w->bus, &t,
           &(stk_consumer_spec){.topic = MANY, .partitions = partitions, .npartitions = 2, .starts = starts});
    spin_until(w, t.caught_up);
    size_t n[PARTITIONS] = {0};
    for (size_t i = 0; i < t.n; i++)
        n[t.v[i].partition]++;
    assert_int_equal(n[2], 4);
    assert_int_equal(n[4], 10);
    assert_int_equal(t.n, 14);
    assert_int_equal(tap_count(&t, "start"), 1);
    tap_done(&t);
}

static void caught_up_is_told_once_after_what_was_there(void **state)
{
    world *w = *state;
    tap empty = {.finish = true};
    tap_on(w->bus, &empty, &(stk_consumer_spec){.topic = MANY});
    assert_int_equal(empty.caught_up, 0);
    spin_until(w, empty.caught_up);
    publish_n(w, MANY, -1, 0, 300);
    tap t = {.finish = true};
    tap_on(w->bus, &t, &(stk_consumer_spec){.topic = MANY});
    spin_until(w, t.caught_up);
    assert_true(t.n >= 300);
    publish_n(w, MANY, -1, 300, 10);
    spin_until(w, t.n == 310 && empty.n == 310);
    assert_int_equal(t.caught_up, 1);
    assert_int_equal(empty.caught_up, 1);
    tap_done(&t);
    tap_done(&empty);
}

static void an_offset_out_of_range_is_an_alarm_and_nothing_is_skipped(void **state)
{
    world *w = *state;
    publish_n(w, ONE, 0, 0, 3);
    int64_t starts[] = {1000};
    int32_t partitions[] = {0};
    tap t = {.finish = true};
    tap_on(w->bus, &t,
           &(stk_consumer_spec){.topic = ONE, .partitions = partitions, .npartitions = 1, .starts = starts});
    spin_until(w, t.errors);
    publish_n(w, ONE, 0, 3, 3);
    settle(w, 50);
    assert_int_equal(t.errors, 1);
    assert_int_equal(t.n, 0);
    tap_done(&t);
}

static void a_topic_that_does_not_exist_is_refused(void **state)
{
    world *w = *state;
    static const stk_consumer_ops ops = {0};
    stk_consumer *consumer = NULL;
    stk_err err = {0};
    assert_int_equal(
        stk_bus_subscribe(w->bus, &(stk_consumer_spec){.topic = "t.none"}, &ops, NULL, &consumer, &err),
        -STK_E_NOT_FOUND);
    assert_null(consumer);
    assert_int_equal(err.code, STK_E_NOT_FOUND);
}

const struct CMUnitTest deliver_tests[] = {
    CASE(ten_thousand_messages_arrive_once_and_in_order),
    CASE(a_consumer_that_fell_behind_catches_up),
    CASE(the_window_pauses_delivery),
    CASE(finishing_is_never_answered_from_inside),
    CASE(a_paused_consumer_gets_nothing_until_it_resumes),
    CASE(unsubscribing_stops_all_callbacks),
    CASE(without_a_group_it_reads_the_partitions_and_starts_it_was_given),
    CASE(caught_up_is_told_once_after_what_was_there),
    CASE(an_offset_out_of_range_is_an_alarm_and_nothing_is_skipped),
    CASE(a_topic_that_does_not_exist_is_refused),
};
const size_t ndeliver_tests = STK_COUNT(deliver_tests);
