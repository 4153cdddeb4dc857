/* Publishing, fetching, refusing. */
#include "proto/message/limits.h"
#include "tests/conformance/bus/suite.h"

static void what_was_acknowledged_is_there_after_a_restart(void **state)
{
    world *w = *state;
    publish_n(w, ONE, 0, 0, 50);
    world_restart(w);
    tap t = {.finish = true};
    tap_on(w->bus, &t, &(stk_consumer_spec){.topic = ONE});
    spin_until(w, t.n == 50);
    for (size_t i = 0; i < 50; i++) {
        char want[32];
        snprintf(want, sizeof(want), "m%zu", i);
        assert_string_equal(t.v[i].value, want);
    }
    ack a = publish(w, ONE, 0, "k", "after");
    assert_true(a.offset > t.v[49].offset);
    tap_done(&t);
}

static void done_is_never_called_from_inside_publish(void **state)
{
    world *w = *state;
    ack a = {0};
    stk_bus_out good = {.topic = ONE, .partition = 0, .value = STK_STR("x")};
    stk_bus_out bad = {.topic = "t.none", .partition = 0, .value = STK_STR("x")};
    stk_bus_publish(w->bus, &good, on_ack, &a);
    stk_bus_publish(w->bus, &bad, on_ack, &a);
    assert_int_equal(a.done, 0);
    spin_until(w, a.done == 2);
    assert_int_equal(a.published, 1);
}

static void a_partition_keeps_the_order_of_publishing(void **state)
{
    world *w = *state;
    publish_n(w, MANY, 3, 0, 500);
    tap t = {.finish = true};
    tap_on(w->bus, &t, &(stk_consumer_spec){.topic = MANY});
    publish_n(w, MANY, 3, 500, 500);
    spin_until(w, t.n == 1000);
    for (size_t i = 0; i < t.n; i++) {
        char want[32];
        snprintf(want, sizeof(want), "m%zu", i);
        assert_string_equal(t.v[i].value, want);
        assert_int_equal(t.v[i].partition, 3);
        assert_true(i == 0 || t.v[i].offset > t.v[i - 1].offset);
    }
    tap_done(&t);
}

static void a_key_goes_to_the_partition_of_its_hash(void **state)
{
    world *w = *state;
    static const struct {
        const char *key;
        int32_t of8; /* FNV-1a 32 mod 8 */
    } rows[] = {{"", 5}, {"a", 4}, {"foobar", 0}, {"run-01", -1}, {"run-02", -1}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        int32_t want = stk_bus_partition_of(stk_str_of(rows[i].key), PARTITIONS);
        if (rows[i].of8 >= 0)
            assert_int_equal(want, rows[i].of8);
        for (int again = 0; again < 2; again++)
            assert_int_equal(publish(w, MANY, -1, rows[i].key, "v").partition, want);
    }
}

static void fetched(const stk_bus_msg *msg, const stk_err *err, void *arg)
{
    ack *a = arg;
    a->done++;
    if (!msg) {
        a->err = *err;
        return;
    }
    a->offset = msg->offset;
    a->partition = msg->partition;
    a->published = msg->key.n == 3 && memcmp(msg->key.p, "k\0y", 3) == 0 && msg->value.n == 5 &&
                   memcmp(msg->value.p, "\0\xff\r\n\0", 5) == 0 && msg->nheaders == 3 &&
                   strcmp(msg->topic, MANY) == 0 &&
                   stk_str_eq(stk_bus_header_get(msg, "tenant"), STK_STR("acme")) &&
                   stk_bus_header_get(msg, "empty").p && stk_bus_header_get(msg, "empty").n == 0 &&
                   stk_str_eq(stk_bus_header_get(msg, "raw"), STK_STR("\0\1\377")) &&
                   stk_bus_header_get(msg, "none").p == NULL && msg->time.ns > 0;
}

static void key_value_and_headers_come_back_byte_for_byte(void **state)
{
    world *w = *state;
    ack put = {0}, get = {0};
    stk_bus_out out = {
        .topic = MANY,
        .partition = 5,
        .key = STK_STR("k\0y"),
        .value = STK_STR("\0\xff\r\n\0"),
        .headers = {{"tenant", STK_STR("acme")}, {"empty", STK_STR("")}, {"raw", STK_STR("\0\1\377")}},
        .nheaders = 3};
    stk_bus_publish(w->bus, &out, on_ack, &put);
    spin_until(w, put.done);
    stk_bus_fetch(w->bus, MANY, put.partition, put.offset, fetched, &get);
    spin_until(w, get.done);
    assert_int_equal(get.err.code, STK_OK);
    assert_true(get.published);
    assert_int_equal(get.offset, put.offset);
    assert_int_equal(get.partition, 5);
}

static void fetching_what_is_not_there_says_so(void **state)
{
    world *w = *state;
    publish(w, MANY, 0, "k", "v");
    static const struct {
        const char *topic;
        int32_t partition;
        int64_t offset;
    } rows[] = {{MANY, 0, 1000}, {MANY, 1, 0}, {MANY, PARTITIONS, 0}, {"t.none", 0, 0}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        ack get = {0};
        stk_bus_fetch(w->bus, rows[i].topic, rows[i].partition, rows[i].offset, fetched, &get);
        assert_int_equal(get.done, 0);
        spin_until(w, get.done);
        assert_int_equal(get.err.code, STK_E_NOT_FOUND);
    }
}

static void a_refusing_bus_stores_nothing(void **state)
{
    world *w = *state;
    publish(w, ONE, 0, "k", "before");
    assert_true(stk_bus_ready(w->bus));
    factory->refuse(w->self, true);
    ack a = publish(w, ONE, 0, "k", "refused");
    assert_int_equal(a.outcome, STK_PUBLISH_REFUSED);
    assert_int_equal(a.err.code, STK_E_UNAVAILABLE);
    assert_false(stk_bus_ready(w->bus));
    factory->refuse(w->self, false);
    assert_int_equal(publish(w, ONE, 0, "k", "after").outcome, STK_PUBLISHED);
    world_restart(w);
    tap t = {.finish = true};
    tap_on(w->bus, &t, &(stk_consumer_spec){.topic = ONE});
    spin_until(w, t.caught_up);
    assert_int_equal(t.n, 2);
    assert_int_equal(tap_count(&t, "refused"), 0);
    tap_done(&t);
}

static void sized(const stk_bus_msg *msg, const stk_err *err, void *arg)
{
    ack *a = arg;
    a->done++;
    a->published = msg && msg->value.n == STK_RECORD_MAX && msg->value.p[STK_RECORD_MAX - 1] == 'z';
}

static void a_record_at_the_limit_passes_and_one_over_is_too_large(void **state)
{
    world *w = *state;
    char *big = stk_xcalloc(1, STK_RECORD_MAX + 1);
    memset(big, 'z', STK_RECORD_MAX + 1);
    ack a = {0}, over = {0}, get = {0};
    stk_bus_out out = {.topic = ONE, .partition = 0, .value = stk_str_n(big, STK_RECORD_MAX)};
    stk_bus_publish(w->bus, &out, on_ack, &a);
    out.value.n++;
    stk_bus_publish(w->bus, &out, on_ack, &over);
    free(big);
    spin_until(w, a.done && over.done);
    assert_int_equal(a.outcome, STK_PUBLISHED);
    assert_int_equal(over.outcome, STK_PUBLISH_REFUSED);
    assert_int_equal(over.err.code, STK_E_TOO_LARGE);
    stk_bus_fetch(w->bus, ONE, 0, a.offset, sized, &get);
    spin_until(w, get.done);
    assert_true(get.published);
}

static void publish_again(stk_publish_outcome outcome, int32_t partition, int64_t offset, const stk_err *err,
                          void *arg)
{
    world *w = ((void **)arg)[0];
    ack *a = ((void **)arg)[1];
    on_ack(outcome, partition, offset, err, a);
    stk_bus_out out = {.topic = ONE, .partition = 0, .value = STK_STR("again")};
    if (a->done < 5)
        stk_bus_publish(w->bus, &out, publish_again, arg);
}

static void a_callback_may_publish(void **state)
{
    world *w = *state;
    ack a = {0};
    void *args[] = {w, &a};
    stk_bus_out out = {.topic = ONE, .partition = 0, .value = STK_STR("first")};
    stk_bus_publish(w->bus, &out, publish_again, args);
    spin_until(w, a.done == 5);
    assert_int_equal(a.published, 5);
}

static void closing_completes_what_is_in_flight(void **state)
{
    world *w = *state;
    ack a = {0};
    stk_bus *second = factory->open(w->self, w->loop);
    for (int i = 0; i < 200; i++) {
        stk_bus_out out = {.topic = ONE, .partition = 0, .value = STK_STR("x")};
        stk_bus_publish(second, &out, on_ack, &a);
    }
    stk_bus_close(second);
    assert_int_equal(a.done, 200);
    assert_int_equal(a.published, 200);
}

const struct CMUnitTest publish_tests[] = {
    CASE(what_was_acknowledged_is_there_after_a_restart),
    CASE(done_is_never_called_from_inside_publish),
    CASE(a_partition_keeps_the_order_of_publishing),
    CASE(a_key_goes_to_the_partition_of_its_hash),
    CASE(key_value_and_headers_come_back_byte_for_byte),
    CASE(fetching_what_is_not_there_says_so),
    CASE(a_refusing_bus_stores_nothing),
    CASE(a_record_at_the_limit_passes_and_one_over_is_too_large),
    CASE(a_callback_may_publish),
    CASE(closing_completes_what_is_in_flight),
};
const size_t npublish_tests = STK_COUNT(publish_tests);
