/* join, heartbeat, leave, lanes: who may hold what. */
#include "tests/conformance/state/rig.h"

static void a_lane_has_one_holder(void **state)
{
    rig *r = *state;
    stk_op_join *first = do_join(r, "wrk-1", "inc-1", 4, 2);
    stk_op_join *second = do_join(r, "wrk-2", "inc-2", 4, 2);
    assert_int_equal(first->outcome, STK_JOIN_OK);
    assert_int_equal(second->outcome, STK_JOIN_OK);
    assert_true(first->lane >= 0 && first->lane < 2 && second->lane >= 0 && second->lane < 2);
    assert_int_not_equal(first->lane, second->lane);
    stk_op_join *third = do_join(r, "wrk-3", "inc-3", 4, 2);
    assert_int_equal(third->outcome, STK_JOIN_NO_LANE);
    assert_null(worker_of(r, "wrk-3"));
    do_leave(r, "wrk-1", "inc-1");
    third = do_join(r, "wrk-3", "inc-3", 4, 2);
    assert_int_equal(third->outcome, STK_JOIN_OK);
    assert_int_equal(third->lane, first->lane);
}

static void the_offset_of_a_lane_outlives_its_holder(void **state)
{
    rig *r = *state;
    int32_t lane = do_join(r, "wrk-1", "inc-1", 4, 1)->lane;
    assert_true(do_lane_done(r, lane, "wrk-1", "inc-1", 41)->held);
    assert_true(do_lane_done(r, lane, "wrk-1", "inc-1", 12)->held);
    assert_false(do_lane_done(r, lane, "wrk-1", "inc-2", 99)->held);
    assert_false(do_lane_done(r, lane, "wrk-2", "inc-1", 99)->held);
    assert_false(do_lane_done(r, lane + 1, "wrk-1", "inc-1", 99)->held);
    do_leave(r, "wrk-1", "inc-1");
    assert_false(do_lane_done(r, lane, "wrk-1", "inc-1", 99)->held);
    stk_op_join *next = do_join(r, "wrk-2", "inc-2", 4, 1);
    assert_int_equal(next->lane, lane);
    assert_int_equal(next->lane_offset, 41);
}

static void a_worker_that_comes_back_gets_its_lane_again(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    int32_t lane = do_join(r, "wrk-2", "inc-2", 4, 8)->lane;
    do_leave(r, "wrk-1", "inc-1");
    do_leave(r, "wrk-2", "inc-2");
    assert_int_equal(do_join(r, "wrk-2", "inc-3", 4, 8)->lane, lane);
}

static void joining_again_with_the_same_incarnation_keeps_everything(void **state)
{
    rig *r = *state;
    int32_t lane = do_join(r, "wrk-1", "inc-1", 4, 8)->lane;
    do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1");
    stk_op_join *again = do_join(r, "wrk-1", "inc-1", 6, 8);
    assert_int_equal(again->lane, lane);
    assert_int_equal(again->nlost, 0);
    assert_int_equal(worker_of(r, "wrk-1")->used, 1);
    assert_int_equal(worker_of(r, "wrk-1")->slots, 6);
    assert_int_equal(do_start(r, "run-1", "asg-1", "wrk-1", "inc-1")->outcome, STK_START_OK);
}

static void a_new_incarnation_ends_the_old_one_at_once(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    do_put(r, "sbx-1", "tpl-a", "wrk-1", "inc-1");
    do_join(r, "wrk-1", "inc-2", 4, 8);
    assert_int_equal(do_heartbeat(r, "wrk-1", "inc-1")->outcome, STK_HEARTBEAT_ENDED);
    assert_int_equal(do_heartbeat(r, "wrk-1", "inc-2")->outcome, STK_HEARTBEAT_OK);
    assert_false(do_take(r, "", "tpl-a")->found);
    assert_int_equal(do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1")->outcome, STK_ASSIGN_NO_WORKER);
}

static void a_heartbeat_renews_and_says_what_changed(void **state)
{
    rig *r = *state;
    char *epoch = do_join(r, "wrk-1", "inc-1", 4, 8)->epoch;
    assert_int_not_equal(epoch[0], 0);
    for (int i = 0; i < 4; i++) {
        rig_advance(r, stk_sec(6));
        assert_string_equal(do_heartbeat(r, "wrk-1", "inc-1")->epoch, epoch);
    }
    assert_true(worker_of(r, "wrk-1")->live);
    OP(heartbeat, HEARTBEAT);
    TEXT(op->in.worker, ID("wrk-1"));
    TEXT(op->in.incarnation, ID("inc-1"));
    op->in.lease = LEASE;
    op->in.slots = 9;
    stk_bytes_set(&op->in.stats, STK_STR("{\"warm\":1}"));
    CALL_OK(r, op);
    do_heartbeat(r, "wrk-1", "inc-1");
    stk_worker_row *row = worker_of(r, "wrk-1");
    assert_string_equal(row->stats.p, "{\"warm\":1}");
    assert_string_equal(row->backends.p, "[]");
    assert_int_equal(row->slots, 4);
    rig_advance(r, LEASE);
    assert_false(worker_of(r, "wrk-1")->live);
}

static void nobody_renews_what_he_never_had(void **state)
{
    rig *r = *state;
    assert_int_equal(do_heartbeat(r, "wrk-1", "inc-1")->outcome, STK_HEARTBEAT_ENDED);
    assert_int_equal(do_leave(r, "wrk-1", "inc-1")->nlost, 0);
}

static void joining_with_nonsense_is_refused(void **state)
{
    rig *r = *state;
    static const struct {
        int32_t lanes;
        int64_t lease;
    } rows[] = {{0, 1}, {-1, 1}, {100000, 1}, {8, 0}, {8, -5}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        OP(join, JOIN);
        TEXT(op->in.worker, ID("wrk-1"));
        TEXT(op->in.incarnation, ID("inc-1"));
        op->in.lanes = rows[i].lanes;
        op->in.lease.ns = rows[i].lease;
        assert_int_equal(CALL(r, op)->op.rc, -STK_E_FIELD);
    }
}

static void counts_add_up_over_tenants_and_workers(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    do_join(r, "wrk-2", "inc-2", 2, 8);
    do_submit(r, "run-1", "acme", NULL, NULL, 0);
    do_queue(r, "run-2", "zeta", 1);
    do_assign(r, "run-3", "asg-3", "wrk-1", "inc-1");
    do_assign(r, "run-4", "asg-4", "wrk-2", "inc-2");
    do_start(r, "run-4", "asg-4", "wrk-2", "inc-2");
    do_queue(r, "run-5", "acme", 2);
    do_finish(r, "run-5", "", "expired");
    stk_op_counts *c = do_counts(r);
    for (int s = STK_RUN_SUBMITTED; s <= STK_RUN_FINISHED; s++)
        assert_int_equal(c->by_state[s], 1);
    assert_int_equal(c->workers_live, 2);
    assert_int_equal(c->slots, 6);
    assert_int_equal(c->used, 2);
    assert_int_equal(c->outbox, 1);
    assert_true(c->open);
    assert_int_equal(c->oldest_queued.ns, 1700000000000000000);
    rig_advance(r, LEASE);
    assert_int_equal(do_counts(r)->workers_live, 0);
}

SUITE(workers, CASE(a_lane_has_one_holder), CASE(the_offset_of_a_lane_outlives_its_holder),
      CASE(a_worker_that_comes_back_gets_its_lane_again),
      CASE(joining_again_with_the_same_incarnation_keeps_everything),
      CASE(a_new_incarnation_ends_the_old_one_at_once), CASE(a_heartbeat_renews_and_says_what_changed),
      CASE(nobody_renews_what_he_never_had), CASE(joining_with_nonsense_is_refused),
      CASE(counts_add_up_over_tenants_and_workers));
