/* The bus port's suite: written against proto/bus/bus.h alone. An adapter's main sets `factory` and runs the
 * groups of tests. */
#ifndef STK_TESTS_CONFORMANCE_BUS_SUITE_H
#define STK_TESTS_CONFORMANCE_BUS_SUITE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "proto/bus/bus.h"

#define ONE        "t.one"  /* 1 partition  */
#define MANY       "t.many" /* 8 partitions */
#define PARTITIONS 8

typedef struct bus_factory {
    void *(*make)(void);                           /* a new, empty bus with the two topics */
    stk_bus *(*open)(void *world, stk_loop *loop); /* a handle */
    void (*restart)(void *world);                  /* all handles are closed: only what is durable stays */
    void (*refuse)(void *world, bool on);          /* publishes fail from now on */
    void (*destroy)(void *world);
} bus_factory;
extern const bus_factory *factory;

/* The fixture of every test: a fresh bus, one loop, one handle. */
typedef struct world {
    void *self;
    stk_loop *loop;
    stk_bus *bus;
} world;
int world_setup(void **state);
int world_teardown(void **state);
void world_restart(world *w);

/* Runs the loop until the condition holds; fails the test after 20 s. */
#define spin_until(w, condition)                                                                             \
    do {                                                                                                     \
        stk_mono until_ = stk_mono_add(stk_mono_now(), stk_sec(20));                                         \
        while (!(condition)) {                                                                               \
            if (!stk_mono_before(stk_mono_now(), until_))                                                    \
                fail_msg("not in 20 s: %s", #condition);                                                     \
            turn_loop((w)->loop);                                                                            \
        }                                                                                                    \
    } while (0)
void turn_loop(stk_loop *loop); /* one turn, at most 10 ms */
/* Runs the loop for a while in which something must not happen. */
void settle(world *w, int64_t ms);

typedef struct ack {
    size_t done, published;
    stk_publish_outcome outcome; /* of the last */
    int32_t partition;
    int64_t offset;
    stk_err err;
} ack;
void on_ack(stk_publish_outcome outcome, int32_t partition, int64_t offset, const stk_err *err, void *arg);
/* Publishes and waits. */
ack publish(world *w, const char *topic, int32_t partition, const char *key, const char *value);
void publish_n(world *w, const char *topic, int32_t partition, size_t from, size_t n);

/* A consumer that writes down what it got. */
typedef struct got {
    int32_t partition;
    int64_t offset;
    char value[32];
} got;
typedef struct tap {
    stk_consumer *consumer;
    bool finish; /* at once */
    bool leave;  /* inside the first callback */
    got *v;
    size_t n, size;
    int32_t revoked[64];
    size_t nrevoked;
    size_t caught_up, errors;
    stk_err err;
} tap;
void tap_on(stk_bus *bus, tap *t, const stk_consumer_spec *spec);
void tap_off(tap *t); /* unsubscribes, keeps what was got */
void tap_done(tap *t);
size_t tap_count(const tap *t, const char *value);

extern const struct CMUnitTest publish_tests[], group_tests[], deliver_tests[];
extern const size_t npublish_tests, ngroup_tests, ndeliver_tests;
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

#endif
