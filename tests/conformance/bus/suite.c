#include "tests/conformance/bus/suite.h"

const bus_factory *factory;

int world_setup(void **state)
{
    world *w = stk_xcalloc(1, sizeof(*w));
    stk_err err;
    w->self = factory->make();
    assert_int_equal(stk_loop_new(&w->loop, &err), 0);
    w->bus = factory->open(w->self, w->loop);
    *state = w;
    return 0;
}

int world_teardown(void **state)
{
    world *w = *state;
    stk_bus_close(w->bus);
    factory->destroy(w->self);
    stk_loop_free(w->loop);
    free(w);
    return 0;
}

void world_restart(world *w)
{
    stk_bus_close(w->bus);
    factory->restart(w->self);
    w->bus = factory->open(w->self, w->loop);
}

void turn_loop(stk_loop *loop)
{
    const struct timeval most = {0, 10000};
    event_base_loopexit(stk_loop_base(loop), &most);
    event_base_loop(stk_loop_base(loop), EVLOOP_ONCE);
}

void settle(world *w, int64_t ms)
{
    stk_mono until = stk_mono_add(stk_mono_now(), stk_ms(ms));
    while (stk_mono_before(stk_mono_now(), until))
        turn_loop(w->loop);
}

void on_ack(stk_publish_outcome outcome, int32_t partition, int64_t offset, const stk_err *err, void *arg)
{
    ack *a = arg;
    a->done++;
    a->published += outcome == STK_PUBLISHED;
    a->outcome = outcome;
    a->partition = partition;
    a->offset = offset;
    if (err)
        a->err = *err;
}

ack publish(world *w, const char *topic, int32_t partition, const char *key, const char *value)
{
    ack a = {0};
    stk_bus_out out = {
        .topic = topic, .partition = partition, .key = stk_str_of(key), .value = stk_str_of(value)};
    stk_bus_publish(w->bus, &out, on_ack, &a);
    spin_until(w, a.done);
    return a;
}

void publish_n(world *w, const char *topic, int32_t partition, size_t from, size_t n)
{
    ack a = {0};
    for (size_t i = from; i < from + n; i++) {
        char value[32];
        snprintf(value, sizeof(value), "m%zu", i);
        stk_bus_out out = {
            .topic = topic, .partition = partition, .key = stk_str_of(value), .value = stk_str_of(value)};
        stk_bus_publish(w->bus, &out, on_ack, &a);
    }
    spin_until(w, a.done == n);
    assert_int_equal(a.published, n);
}

static void tap_message(stk_consumer *consumer, const stk_bus_msg *msg, void *arg)
{
    tap *t = arg;
    if (t->n == t->size) {
        t->size = t->size ? t->size * 2 : 64;
        t->v = stk_xrealloc(t->v, t->size * sizeof(*t->v));
    }
    got *g = &t->v[t->n++];
    *g = (got){.partition = msg->partition, .offset = msg->offset};
    if (msg->value.n < sizeof(g->value))
        memcpy(g->value, msg->value.p, msg->value.n);
    if (t->finish)
        stk_bus_finish(consumer, msg->partition, msg->offset);
    if (t->leave)
        tap_off(t);
}

static void tap_revoked(stk_consumer *consumer, const int32_t *partitions, size_t n, void *arg)
{
    tap *t = arg;
    for (size_t i = 0; i < n && t->nrevoked < STK_COUNT(t->revoked); i++)
        t->revoked[t->nrevoked++] = partitions[i];
}

static void tap_caught_up(stk_consumer *consumer, void *arg)
{
    ((tap *)arg)->caught_up++;
}

static void tap_error(stk_consumer *consumer, const stk_err *err, void *arg)
{
    tap *t = arg;
    t->errors++;
    t->err = *err;
}

void tap_on(stk_bus *bus, tap *t, const stk_consumer_spec *spec)
{
    static const stk_consumer_ops ops = {tap_message, tap_revoked, tap_caught_up, tap_error};
    stk_err err = {0};
    if (stk_bus_subscribe(bus, spec, &ops, t, &t->consumer, &err) < 0)
        fail_msg("subscribe: %s", err.detail);
}

void tap_off(tap *t)
{
    if (t->consumer)
        stk_bus_unsubscribe(STK_TAKE(t->consumer));
}

void tap_done(tap *t)
{
    tap_off(t);
    free(t->v);
}

size_t tap_count(const tap *t, const char *value)
{
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        n += strcmp(t->v[i].value, value) == 0;
    return n;
}
