/* Consumer groups: resuming, sharing, changing hands. */
#include "tests/conformance/bus/suite.h"
#include <pthread.h>

static void a_group_resumes_behind_its_finished_prefix(void **state)
{
    world *w = *state;
    publish_n(w, ONE, 0, 0, 6);
    tap t = {0};
    tap_on(w->bus, &t, &(stk_consumer_spec){.topic = ONE, .group = "g"});
    spin_until(w, t.n == 6);
    static const int finished[] = {4, 1, 0, 3};
    for (size_t i = 0; i < STK_COUNT(finished); i++)
        stk_bus_finish(t.consumer, 0, t.v[finished[i]].offset);
    tap_off(&t);
    world_restart(w);
    tap again = {.finish = true};
    tap_on(w->bus, &again, &(stk_consumer_spec){.topic = ONE, .group = "g"});
    spin_until(w, again.n == 4);
    settle(w, 30);
    assert_int_equal(again.n, 4);
    assert_string_equal(again.v[0].value, "m2");
    assert_string_equal(again.v[3].value, "m5");
    tap_off(&again);
    world_restart(w);
    tap none = {.finish = true};
    tap_on(w->bus, &none, &(stk_consumer_spec){.topic = ONE, .group = "g"});
    publish(w, ONE, 0, "k", "new");
    spin_until(w, none.n == 1);
    assert_string_equal(none.v[0].value, "new");
    tap_done(&t);
    tap_done(&again);
    tap_done(&none);
}

static void finishing_in_reverse_order_commits_everything(void **state)
{
    world *w = *state;
    publish_n(w, ONE, 0, 0, 300);
    tap t = {0};
    tap_on(w->bus, &t, &(stk_consumer_spec){.topic = ONE, .group = "g"});
    spin_until(w, t.n == 300);
    for (size_t i = t.n; i-- > 0;)
        stk_bus_finish(t.consumer, 0, t.v[i].offset);
    tap_off(&t);
    tap again = {.finish = true};
    tap_on(w->bus, &again, &(stk_consumer_spec){.topic = ONE, .group = "g"});
    spin_until(w, again.caught_up);
    assert_int_equal(again.n, 0);
    tap_done(&t);
    tap_done(&again);
}

static void groups_do_not_see_each_other(void **state)
{
    world *w = *state;
    tap a = {.finish = true}, b = {0};
    tap_on(w->bus, &a, &(stk_consumer_spec){.topic = MANY, .group = "a"});
    tap_on(w->bus, &b, &(stk_consumer_spec){.topic = MANY, .group = "b"});
    publish_n(w, MANY, -1, 0, 200);
    spin_until(w, a.n == 200 && b.n == 200);
    tap_off(&a);
    tap_off(&b);
    tap a2 = {0}, b2 = {0};
    tap_on(w->bus, &a2, &(stk_consumer_spec){.topic = MANY, .group = "a"});
    tap_on(w->bus, &b2, &(stk_consumer_spec){.topic = MANY, .group = "b"});
    spin_until(w, b2.n == 200 && a2.caught_up);
    assert_int_equal(a2.n, 0);
    tap_done(&a);
    tap_done(&b);
    tap_done(&a2);
    tap_done(&b2);
}

static void count_partitions(const tap *t, size_t from, size_t n[PARTITIONS])
{
    memset(n, 0, PARTITIONS * sizeof(*n));
    for (size_t i = from; i < t->n; i++)
        n[t->v[i].partition]++;
}

static void one_of_each(world *w)
{
    for (int32_t i = 0; i < PARTITIONS; i++)
        publish(w, MANY, i, "k", "x");
}

static void two_members_share_the_partitions_evenly(void **state)
{
    world *w = *state;
    stk_bus *other = factory->open(w->self, w->loop);
    tap a = {.finish = true}, b = {.finish = true};
    tap_on(w->bus, &a, &(stk_consumer_spec){.topic = MANY, .group = "g"});
    one_of_each(w);
    spin_until(w, a.n == PARTITIONS);
    tap_on(other, &b, &(stk_consumer_spec){.topic = MANY, .group = "g"});
    spin_until(w, a.nrevoked == PARTITIONS / 2);
    size_t from = a.n;
    one_of_each(w);
    spin_until(w, a.n + b.n == 2 * PARTITIONS);
    size_t na[PARTITIONS], nb[PARTITIONS];
    count_partitions(&a, from, na);
    count_partitions(&b, 0, nb);
    assert_int_equal(b.n, PARTITIONS / 2);
    for (int i = 0; i < PARTITIONS; i++)
        assert_int_equal(na[i] + nb[i], 1);
    tap_off(&b);
    one_of_each(w);
    spin_until(w, a.n + b.n == 3 * PARTITIONS);
    assert_int_equal(b.n, PARTITIONS / 2);
    tap_done(&a);
    tap_done(&b);
    stk_bus_close(other);
}

static void what_a_member_left_unfinished_comes_to_the_next_owner(void **state)
{
    world *w = *state;
    stk_bus *other = factory->open(w->self, w->loop);
    tap a = {0}, b = {.finish = true};
    tap_on(w->bus, &a, &(stk_consumer_spec){.topic = MANY, .group = "g"});
    publish_n(w, MANY, -1, 0, 400);
    spin_until(w, a.n == 400);
    tap_on(other, &b, &(stk_consumer_spec){.topic = MANY, .group = "g"});
    spin_until(w, a.nrevoked == PARTITIONS / 2);
    size_t theirs = 0;
    for (size_t i = 0; i < a.n; i++) {
        bool moved = false;
        for (size_t k = 0; k < a.nrevoked; k++)
            moved |= a.revoked[k] == a.v[i].partition;
        theirs += moved;
        stk_bus_finish(a.consumer, a.v[i].partition,
                       a.v[i].offset); /* late for the moved ones: changes nothing */
    }
    spin_until(w, b.n == theirs);
    for (size_t i = 0; i < a.n; i++)
        assert_true(tap_count(&b, a.v[i].value) <= 1);
    tap_off(&a);
    tap_off(&b);
    tap last = {0};
    tap_on(w->bus, &last, &(stk_consumer_spec){.topic = MANY, .group = "g"});
    spin_until(w, last.caught_up);
    assert_int_equal(last.n, 0);
    tap_done(&a);
    tap_done(&b);
    tap_done(&last);
    stk_bus_close(other);
}

static void members_that_come_and_go_lose_nothing(void **state)
{
    world *w = *state;
    enum { ROUNDS = 30, PER_ROUND = 50 };
    stk_bus *handles[3];
    tap taps[3] = {0};
    for (int i = 0; i < 3; i++)
        handles[i] = factory->open(w->self, w->loop);
    ack a = {0};
    unsigned seed = 20260101;
    print_message("seed %u\n", seed);
    for (int round = 0; round < ROUNDS; round++) {
        tap *t = &taps[rand_r(&seed) % 3];
        if (t->consumer)
            tap_off(t);
        else {
            t->finish = true;
            tap_on(handles[t - taps], t, &(stk_consumer_spec){.topic = MANY, .group = "g", .window = 16});
        }
        for (int i = 0; i < PER_ROUND; i++) {
            char value[32];
            snprintf(value, sizeof(value), "m%d", round * PER_ROUND + i);
            stk_bus_out out = {
                .topic = MANY, .partition = -1, .key = stk_str_of(value), .value = stk_str_of(value)};
            stk_bus_publish(w->bus, &out, on_ack, &a);
        }
        settle(w, rand_r(&seed) % 4);
    }
    if (!taps[0].consumer)
        tap_on(handles[0], &taps[0], &(stk_consumer_spec){.topic = MANY, .group = "g"});
    taps[0].finish = true;
    spin_until(w, a.done == ROUNDS * PER_ROUND && taps[0].n + taps[1].n + taps[2].n >= ROUNDS * PER_ROUND);
    settle(w, 50);
    for (int i = 0; i < ROUNDS * PER_ROUND; i++) {
        char value[32];
        snprintf(value, sizeof(value), "m%d", i);
        assert_true(tap_count(&taps[0], value) + tap_count(&taps[1], value) + tap_count(&taps[2], value) >=
                    1);
    }
    for (int i = 0; i < 3; i++) {
        tap_done(&taps[i]);
        stk_bus_close(handles[i]);
    }
}

typedef struct peer {
    stk_bus *bus;
    stk_loop *loop;
    tap tap;
    size_t seen;
    bool stop;
} peer;

static void *peer_main(void *arg)
{
    peer *p = arg;
    p->tap.finish = true;
    tap_on(p->bus, &p->tap, &(stk_consumer_spec){.topic = MANY, .group = "g"});
    while (!__atomic_load_n(&p->stop, __ATOMIC_ACQUIRE)) {
        turn_loop(p->loop);
        __atomic_store_n(&p->seen, p->tap.n, __ATOMIC_RELEASE);
    }
    tap_off(&p->tap);
    stk_bus_close(p->bus);
    return NULL;
}

static void members_may_live_on_threads_of_their_own(void **state)
{
    world *w = *state;
    peer p = {0};
    stk_err err;
    assert_int_equal(stk_loop_new(&p.loop, &err), 0);
    p.bus = factory->open(w->self, p.loop);
    tap t = {.finish = true};
    tap_on(w->bus, &t, &(stk_consumer_spec){.topic = MANY, .group = "g"});
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, peer_main, &p), 0);
    for (int round = 0; round < 20; round++)
        publish_n(w, MANY, -1, (size_t)round * 200, 200);
    spin_until(w, t.nrevoked);
    publish_n(w, MANY, -1, 4000, 1000);
    spin_until(w, t.n + __atomic_load_n(&p.seen, __ATOMIC_ACQUIRE) >= 5000);
    __atomic_store_n(&p.stop, true, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    assert_true(p.tap.n > 0);
    unsigned char seen[5000] = {0};
    const tap *both[] = {&t, &p.tap};
    for (int k = 0; k < 2; k++)
        for (size_t i = 0; i < both[k]->n; i++)
            seen[strtoul(both[k]->v[i].value + 1, NULL, 10)]++;
    for (int i = 0; i < 5000; i++)
        assert_true(seen[i] >= 1);
    tap_done(&t);
    tap_done(&p.tap);
    stk_loop_free(p.loop);
}

const struct CMUnitTest group_tests[] = {
    CASE(a_group_resumes_behind_its_finished_prefix),
    CASE(finishing_in_reverse_order_commits_everything),
    CASE(groups_do_not_see_each_other),
    CASE(two_members_share_the_partitions_evenly),
    CASE(what_a_member_left_unfinished_comes_to_the_next_owner),
    CASE(members_that_come_and_go_lose_nothing),
    CASE(members_may_live_on_threads_of_their_own),
};
const size_t ngroup_tests = STK_COUNT(group_tests);
