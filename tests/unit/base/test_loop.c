#include "proto/base/loop.h"
#include "proto/base/buf.h"
#include "tests/unit/base/test.h"
#include <pthread.h>
#include <stdatomic.h>

static stk_loop *loop;

static void too_long(void *arg)
{
    fail_msg("the test took too long");
}

static void run_loop(void)
{
    stk_timer *guard STK_AUTO(stk_timer_freep) = stk_timer_new(loop, too_long, NULL);
    stk_timer_set(guard, stk_sec(30));
    stk_loop_run(loop);
}

static void stop(void *arg)
{
    stk_loop_stop(loop);
}

enum { THREADS = 4, EACH = 16 * 1024 };

typedef struct letter {
    stk_task task;
    unsigned thread, number;
} letter;

static letter letters[THREADS][EACH];
static unsigned next_of[THREADS];
static unsigned received;
static bool out_of_order;

static void on_letter(void *arg)
{
    letter *l = arg;
    out_of_order |= l->number != next_of[l->thread]++;
    if (++received == THREADS * EACH)
        stk_loop_stop(loop);
}

static void *post_letters(void *arg)
{
    unsigned thread = (unsigned)(uintptr_t)arg;
    for (unsigned i = 0; i < EACH; i++) {
        letter *l = &letters[thread][i];
        *l = (letter){.task = {.fn = on_letter, .arg = l}, .thread = thread, .number = i};
        if (i % 2)
            stk_loop_post_task(loop, &l->task);
        else
            stk_loop_post(loop, on_letter, l);
    }
    return NULL;
}

static void posts_of_four_threads_all_arrive_each_in_its_order(void **state)
{
    pthread_t threads[THREADS];
    memset(next_of, 0, sizeof(next_of));
    received = 0;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, post_letters, (void *)(uintptr_t)i), 0);
    run_loop();
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(received, THREADS * EACH);
    assert_false(out_of_order);
}

static unsigned seen[3000];
static size_t n_seen;

static void see(void *arg)
{
    seen[n_seen++] = (unsigned)(uintptr_t)arg;
}

static void posts_before_the_loop_runs_are_kept_in_order(void **state)
{
    n_seen = 0;
    for (unsigned i = 0; i < STK_COUNT(seen); i++)
        stk_loop_post(loop, see, (void *)(uintptr_t)i);
    stk_loop_post(loop, stop, NULL);
    run_loop();
    assert_int_equal(n_seen, STK_COUNT(seen));
    for (unsigned i = 0; i < STK_COUNT(seen); i++)
        assert_int_equal(seen[i], i);
}

static stk_task self_task;
static int rounds;

static void post_again(void *arg)
{
    rounds++;
    stk_loop_post_task(loop, &self_task);
}

static void a_task_that_posts_itself_does_not_starve_timers(void **state)
{
    self_task = (stk_task){.fn = post_again};
    rounds = 0;
    stk_timer *timer STK_AUTO(stk_timer_freep) = stk_timer_new(loop, stop, NULL);
    stk_timer_set(timer, stk_ms(20));
    stk_loop_post_task(loop, &self_task);
    run_loop();
    assert_true(rounds > 10);
    /* It is posted still; a fresh loop for the next test. */
    stk_loop_free(loop);
    assert_int_equal(stk_loop_new(&loop, NULL), 0);
}

static void what_was_posted_and_not_run_is_dropped_without_a_leak(void **state)
{
    stk_loop *other = NULL;
    n_seen = 0;
    assert_int_equal(stk_loop_new(&other, NULL), 0);
    for (int i = 0; i < 100; i++)
        stk_loop_post(other, see, NULL);
    stk_loop_free(other);
    assert_int_equal(n_seen, 0);
}

static void *stop_soon(void *arg)
{
    stk_loop_stop(loop);
    return NULL;
}

static void stop_comes_from_any_thread_and_before_the_run_too(void **state)
{
    pthread_t thread;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(pthread_create(&thread, NULL, stop_soon, NULL), 0);
        run_loop();
        pthread_join(thread, NULL);
    }
    stk_loop_stop(loop);
    run_loop();
}

static unsigned fired[8];
static size_t n_fired;

static void fire(void *arg)
{
    fired[n_fired++] = (unsigned)(uintptr_t)arg;
    if (arg == (void *)3)
        stk_loop_stop(loop);
}

static void timers_fire_once_in_the_order_of_their_times(void **state)
{
    n_fired = 0;
    stk_timer *t[5];
    for (uintptr_t i = 0; i < 5; i++)
        t[i] = stk_timer_new(loop, fire, (void *)i);
    stk_timer_set(t[3], stk_ms(60));
    stk_timer_set(t[2], stk_ms(20));
    stk_timer_set(t[1], stk_ms(500));
    stk_timer_set(t[1], stk_ms(1)); /* set again: the last one counts */
    stk_timer_set(t[0], stk_ms(5));
    stk_timer_clear(t[0]);
    stk_timer_set(t[4], stk_ms(5));
    stk_timer_set(t[4], STK_SPAN_NEVER);
    run_loop();
    assert_int_equal(n_fired, 3);
    assert_int_equal(fired[0], 1);
    assert_int_equal(fired[1], 2);
    assert_int_equal(fired[2], 3);
    for (int i = 0; i < 5; i++)
        stk_timer_free(t[i]);
}

static void free_itself(void *arg)
{
    stk_timer **timer = arg;
    stk_timer_free(*timer);
    *timer = NULL;
    stk_loop_stop(loop);
}

static void a_timer_may_free_itself_in_its_callback(void **state)
{
    stk_timer *timer = NULL;
    timer = stk_timer_new(loop, free_itself, &timer);
    stk_timer_set(timer, stk_ns(0));
    run_loop();
    assert_null(timer);
}

static void hold_up(void *arg)
{
    stk_mono until = stk_mono_add(stk_mono_now(), stk_ms(250));
    while (stk_mono_before(stk_mono_now(), until))
        usleep(1000);
}

static void a_callback_that_holds_the_loop_shows_as_lag(void **state)
{
    stk_loop *own = NULL;
    assert_int_equal(stk_loop_new(&own, NULL), 0);
    stk_loop *kept = loop;
    loop = own;
    assert_int_equal(stk_loop_lag(own).ns, 0);
    stk_timer *timer = stk_timer_new(own, stop, NULL);
    stk_timer_set(timer, stk_ms(400));
    stk_loop_post(own, hold_up, NULL);
    run_loop();
    int64_t lag = stk_span_ms(stk_loop_lag(own));
    stk_timer_free(timer);
    stk_loop_free(own);
    loop = kept;
    assert_true(lag >= 100 && lag < 10000);
}

static int set_up(void **state)
{
    return stk_loop_new(&loop, NULL);
}

static int tear_down(void **state)
{
    stk_loop_free(loop);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(posts_of_four_threads_all_arrive_each_in_its_order),
        cmocka_unit_test(posts_before_the_loop_runs_are_kept_in_order),
        cmocka_unit_test(a_task_that_posts_itself_does_not_starve_timers),
        cmocka_unit_test(what_was_posted_and_not_run_is_dropped_without_a_leak),
        cmocka_unit_test(stop_comes_from_any_thread_and_before_the_run_too),
        cmocka_unit_test(timers_fire_once_in_the_order_of_their_times),
        cmocka_unit_test(a_timer_may_free_itself_in_its_callback),
        cmocka_unit_test(a_callback_that_holds_the_loop_shows_as_lag),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
