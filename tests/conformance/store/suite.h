/* The store port's suite: written against proto/store/store.h alone. An adapter's main sets `factory` and
 * runs the tests. */
#ifndef STK_TESTS_CONFORMANCE_STORE_SUITE_H
#define STK_TESTS_CONFORMANCE_STORE_SUITE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "proto/store/store.h"

#define AUDIT  "stk.audit"
#define EVENTS "stk.events"

typedef enum damage {
    FLIP_BYTE, /* in the stored row */
    FLIP_HASH,
    DROP_ROW,
    CHANGE_COLUMN /* one that queries search by */
} damage;

typedef struct store_factory {
    void *(*make)(void);
    stk_store *(*open)(void *self, stk_loop *loop);
    void (*restart)(void *self); /* all handles are closed */
    void (*hurt)(void *self, damage what, int32_t partition, int64_t seq);
    void (*destroy)(void *self);
} store_factory;
extern const store_factory *factory;

typedef struct world {
    void *self;
    stk_loop *loop;
    stk_store *store;
} world;
int world_setup(void **state);
int world_teardown(void **state);
void world_restart(world *w);
void world_renew(world *w); /* a new, empty store */
void turn_loop(stk_loop *loop);
#define spin_until(w, condition)                                                                             \
    do {                                                                                                     \
        stk_mono until_ = stk_mono_add(stk_mono_now(), stk_sec(20));                                         \
        while (!(condition)) {                                                                               \
            if (!stk_mono_before(stk_mono_now(), until_))                                                    \
                fail_msg("not in 20 s: %s", #condition);                                                     \
            turn_loop((w)->loop);                                                                            \
        }                                                                                                    \
    } while (0)

typedef struct answer {
    size_t done;
    stk_err err; /* code 0 = fine */
    int64_t offset;
    size_t stored, bad;
    /* rows */
    size_t n;
    char ids[64][STK_ID_SIZE];
    char details[64][128];
    char cursor[64];
    /* result */
    bool found;
    char reason[16], assignment[STK_ID_SIZE];
    stk_chain_report report;
} answer;
void on_done(const stk_err *err, int64_t offset, size_t stored, size_t bad, void *arg);

/* A row that is a function of (run number, n): the same again is a duplicate. */
stk_audit_row make_row(int run, int n);
void run_name(int run, char out[STK_ID_SIZE]);
stk_event make_event(int run, int assignment, const char *kind, const char *reason);

answer append(world *w, const char *topic, int32_t partition, int64_t from, int64_t to,
              const stk_audit_row *rows, size_t n);
answer append_events(world *w, int64_t from, const stk_event *events, size_t n);
answer ask_offset(world *w, const char *topic, int32_t partition);
answer ask_rows(world *w, const stk_audit_query *query);
answer ask_result(world *w, const char *tenant, const char *run);
answer ask_verify(world *w);
/* n rows of one run, in one batch. */
void fill(world *w, int32_t partition, int64_t from, int run, int n);

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)
extern const struct CMUnitTest append_tests[], query_tests[], verify_tests[];
extern const size_t nappend_tests, nquery_tests, nverify_tests;

#endif
