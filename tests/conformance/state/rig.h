/* What every case of the suite stands on: an adapter made by a factory, one loop, and operations called as if
 * they were blocking. */
#ifndef STK_TESTS_CONFORMANCE_STATE_RIG_H
#define STK_TESTS_CONFORMANCE_STATE_RIG_H

#include "proto/message/assignment.h"
#include "proto/message/config.h"
#include "proto/state/state.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

/* One adapter. `lose` needs all handles closed. */
typedef struct state_factory {
    const char *name;
    void *(*open)(void);       /* fresh, with a clock that stands still */
    void (*close)(void *self); /* everything it made is gone */
    stk_state *(*handle)(void *self, stk_loop *loop);
    void (*advance)(void *self, stk_span by); /* the adapter's clock */
    void (*restart)(
        void *self,
        bool other_boot); /* the server went away and came back; other_boot: and lost what is live */
} state_factory;
extern const state_factory sqlite_factory;

typedef struct rig {
    const state_factory *factory;
    void *self;
    stk_loop *loop;
    stk_state *st;
    void **kept; /* answered operations, freed at the end */
    size_t nkept;
} rig;

int rig_setup(void **state); /* *state: const state_factory * in, rig * out */
int rig_teardown(void **state);
void rig_advance(rig *r, stk_span by);
void rig_restart(rig *r, bool other_boot);

/* Calls and runs the loop until it is answered; the answer lives until teardown. */
void *rig_call(rig *r, void *op, size_t size);
#define CALL(r, op) ((__typeof__(op))rig_call(r, op, sizeof(*(op))))
/* The same, and it must have worked. */
#define CALL_OK(r, op) ((__typeof__(op))rig_ok(CALL(r, op)))
void *rig_ok(void *op);
/* Runs the loop once for what is there; false after the deadline. */
void rig_until(rig *r, bool (*done)(void *arg), void *arg);

#define OP(type, NAME)    stk_op_##type *op = stk_op_new(STK_OP_##NAME, NULL, NULL)
#define TEXT(array, text) snprintf(array, sizeof(array), "%s", text)

const char *ID(const char *name);
/* Short forms. Ids are given as "run-1", "asg-1", "wrk-1", "inc-1", "sbx-1" and made whole; the rest has
 * fixed values. */
stk_op_submit *do_submit(rig *r, const char *run, const char *tenant, const char *key, const char *body,
                         int64_t cap);
stk_op_queue *do_queue(rig *r, const char *run, const char *tenant, int64_t offset);
typedef struct assign_args {
    const char *run, *assignment, *worker, *incarnation, *sandbox, *tenant, *retry;
    int64_t running_cap, attempt;
    bool plan, first;
} assign_args;
stk_op_assign *do_assign_with(rig *r, assign_args args);
#define ASSIGN(r, ...) do_assign_with(r, (assign_args){__VA_ARGS__}) /* designated */
stk_op_assign *do_assign(rig *r, const char *run, const char *assignment, const char *worker,
                         const char *incarnation);
stk_op_start *do_start(rig *r, const char *run, const char *assignment, const char *worker,
                       const char *incarnation);
stk_op_finish *do_finish(rig *r, const char *run, const char *assignment, const char *reason);
stk_op_cancel *do_cancel(rig *r, const char *run, const char *tenant);
stk_op_requeue *do_requeue(rig *r, const char *run, const char *assignment, bool count, bool repeat);
stk_op_run_get *do_get(rig *r, const char *run);
stk_op_join *do_join(rig *r, const char *worker, const char *incarnation, int64_t slots, int32_t lanes);
stk_op_heartbeat *do_heartbeat(rig *r, const char *worker, const char *incarnation);
stk_op_leave *do_leave(rig *r, const char *worker, const char *incarnation);
stk_op_lane_done *do_lane_done(rig *r, int32_t lane, const char *worker, const char *incarnation,
                               int64_t offset);
stk_op_reap *do_reap(rig *r);
stk_op_pool_put *do_put(rig *r, const char *sandbox, const char *template_key, const char *worker,
                        const char *incarnation);
stk_op_pool_take *do_take(rig *r, const char *sandbox, const char *template_key);
stk_op_outbox_take *do_outbox(rig *r, stk_span older, stk_span hold);
void do_outbox_done(rig *r, int64_t id);
stk_op_counts *do_counts(rig *r);
stk_worker_row *worker_of(rig *r, const char *worker);

/* The lane record that do_assign stores: its `request` is {"id":"<run>"}. */
void record_of(const assign_args *args, stk_bytes *ret);
#define LEASE     stk_sec(9)
#define HEARTBEAT stk_sec(2)

#define CASE(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
#define SUITES(X)                                                                                            \
    X(runs) X(ends) X(workers) X(lost) X(pool) X(config) X(output) X(list) X(watch) X(race) X(random)
#define X(name)                                                                                              \
    extern const struct CMUnitTest suite_##name[];                                                           \
    extern const size_t suite_##name##_n;
SUITES(X)
#undef X
#define SUITE(name, ...)                                                                                     \
    const struct CMUnitTest suite_##name[] = {__VA_ARGS__};                                                  \
    const size_t suite_##name##_n = sizeof(suite_##name) / sizeof(suite_##name[0])

#endif
