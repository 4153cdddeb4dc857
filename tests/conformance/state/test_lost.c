/* Workers that die, come back or leave; state that was away or lost; what is too old. */
#include "proto/state/decide.h"
#include "tests/conformance/state/rig.h"

/* wrk-1 holds run-1 (assigned), run-2 (running) and run-3 (running, retry: always). */
static void holding(rig *r)
{
    do_join(r, "wrk-1", "inc-1", 4, 8);
    do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1");
    do_assign(r, "run-2", "asg-2", "wrk-1", "inc-1");
    ASSIGN(r, .run = "run-3", .assignment = "asg-3", .worker = "wrk-1", .incarnation = "inc-1",
           .retry = "always");
    do_start(r, "run-2", "asg-2", "wrk-1", "inc-1");
    do_start(r, "run-3", "asg-3", "wrk-1", "inc-1");
}

static const stk_lost_run *lost_of(const stk_lost_run *lost, size_t n, const char *run)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(lost[i].run, ID(run)) == 0)
            return &lost[i];
    fail_msg("%s is not among %zu lost runs", run, n);
    return NULL;
}

static stk_outbox_item *item_of(rig *r, int64_t id)
{
    stk_op_outbox_take *take = do_outbox(r, stk_ns(0), stk_ns(0));
    for (size_t i = 0; i < take->items.n; i++)
        if (take->items.v[i].id == id)
            return &take->items.v[i];
    fail_msg("no item %lld in the outbox", (long long)id);
    return NULL;
}

static void check_settled(rig *r, const stk_lost_run *lost, size_t n, int64_t counted)
{
    assert_int_equal(n, 3);
    const stk_lost_run *one = lost_of(lost, n, "run-1");
    assert_true(!one->started && one->requeued);
    assert_string_equal(one->assignment, ID("asg-1"));
    assert_string_equal(one->worker, ID("wrk-1"));
    stk_outbox_item *item = item_of(r, one->outbox);
    char request[128];
    snprintf(request, sizeof(request), "{\"id\":\"%s\"}", ID("run-1"));
    assert_string_equal(item->topic, "stk.requests");
    assert_string_equal(item->value.p, request);
    assert_int_equal(do_queue(r, "run-1", "acme", 7)->attempt, counted);

    const stk_lost_run *two = lost_of(lost, n, "run-2");
    assert_true(two->started && !two->requeued);
    item = item_of(r, two->outbox);
    assert_string_equal(item->topic, "stk.events");
    stk_event ev = {0};
    assert_int_equal(stk_event_decode(stk_bytes_view(&item->value), &ev, NULL), 0);
    assert_string_equal(ev.kind, "finished");
    assert_string_equal(ev.reason, "worker_lost");
    assert_string_equal(ev.run, ID("run-2"));
    assert_string_equal(ev.assignment, ID("asg-2"));
    assert_string_equal(ev.worker, ID("wrk-1"));
    assert_true(ev.started.ns > 0 && ev.finished.ns > 0);
    stk_event_done(&ev);
    assert_string_equal(do_get(r, "run-2")->row.reason, "worker_lost");
    assert_true(do_get(r, "run-2")->row.result.set);

    const stk_lost_run *three = lost_of(lost, n, "run-3");
    assert_true(three->started && three->requeued);
    assert_string_equal(item_of(r, three->outbox)->topic, "stk.requests");
    assert_int_equal(do_queue(r, "run-3", "acme", 9)->attempt, 1);
}

static void a_restarted_worker_settles_what_it_held_when_it_joins(void **state)
{
    rig *r = *state;
    holding(r);
    stk_op_join *join = do_join(r, "wrk-1", "inc-2", 4, 8);
    assert_int_equal(join->outcome, STK_JOIN_OK);
    check_settled(r, join->lost, join->nlost, 0);
    assert_int_equal(worker_of(r, "wrk-1")->used, 0);
}

static void a_dead_worker_is_reaped_when_its_lease_ends(void **state)
{
    rig *r = *state;
    holding(r);
    do_reap(r);
    for (int i = 0; i < 4; i++) {
        rig_advance(r, HEARTBEAT);
        assert_int_equal(do_reap(r)->nlost, 0);
    }
    rig_advance(r, HEARTBEAT);
    stk_op_reap *reap = do_reap(r);
    assert_int_equal(reap->workers.n, 1);
    assert_string_equal(reap->workers.v[0].p, ID("wrk-1"));
    check_settled(r, reap->lost, reap->nlost, 1);
    assert_null(worker_of(r, "wrk-1"));
    assert_int_equal(do_heartbeat(r, "wrk-1", "inc-1")->outcome, STK_HEARTBEAT_ENDED);
    assert_int_equal(do_finish(r, "run-2", "asg-2", "exited")->outcome, STK_FINISH_LOST);
    assert_int_equal(do_start(r, "run-1", "asg-1", "wrk-1", "inc-1")->outcome, STK_START_STALE);
}

static void leaving_gives_back_what_did_not_start(void **state)
{
    rig *r = *state;
    holding(r);
    stk_op_leave *leave = do_leave(r, "wrk-1", "inc-1");
    check_settled(r, leave->lost, leave->nlost, 0);
    assert_null(worker_of(r, "wrk-1"));
}

static void the_living_are_not_reaped_when_state_was_away(void **state)
{
    rig *r = *state;
    holding(r);
    do_reap(r);
    rig_advance(r, stk_sec(120));
    assert_int_equal(do_reap(r)->nlost, 0);
    assert_int_equal(do_heartbeat(r, "wrk-1", "inc-1")->outcome, STK_HEARTBEAT_OK);
    rig_advance(r, HEARTBEAT);
    assert_int_equal(do_reap(r)->nlost, 0);
}

static void after_the_grace_the_dead_are_reaped(void **state)
{
    rig *r = *state;
    holding(r);
    do_reap(r);
    rig_advance(r, stk_sec(120));
    size_t lost = do_reap(r)->nlost;
    for (int64_t t = 0; t < LEASE.ns && lost == 0; t += HEARTBEAT.ns) {
        rig_advance(r, HEARTBEAT);
        lost = do_reap(r)->nlost;
    }
    assert_int_equal(lost, 3);
}

static void a_restart_of_state_gives_the_same_grace(void **state)
{
    rig *r = *state;
    holding(r);
    do_reap(r);
    rig_restart(r, false);
    assert_true(do_counts(r)->open);
    rig_advance(r, stk_sec(60));
    assert_int_equal(do_reap(r)->nlost, 0);
    assert_int_equal(do_heartbeat(r, "wrk-1", "inc-1")->outcome, STK_HEARTBEAT_OK);
    assert_int_equal(do_get(r, "run-2")->row.state, STK_RUN_RUNNING);
}

static void a_cancelled_run_of_a_dead_worker_ends_cancelled(void **state)
{
    rig *r = *state;
    holding(r);
    do_cancel(r, "run-1", "acme");
    do_cancel(r, "run-3", "acme");
    stk_op_join *join = do_join(r, "wrk-1", "inc-2", 4, 8);
    assert_int_equal(join->nlost, 3);
    assert_false(lost_of(join->lost, join->nlost, "run-1")->requeued);
    assert_string_equal(do_get(r, "run-1")->row.reason, "cancelled");
    assert_string_equal(do_get(r, "run-3")->row.reason, "cancelled");
    assert_true(lost_of(join->lost, join->nlost, "run-1")->outbox > 0);
}

static void a_run_that_keeps_killing_its_host_is_counted_in_the_end(void **state)
{
    rig *r = *state;
    char inc[16];
    for (int i = 0; i <= STK_LOSSES_FREE + 1; i++) {
        snprintf(inc, sizeof(inc), "inc-%d", i);
        do_join(r, "wrk-1", inc, 4, 8);
        assert_int_equal(do_queue(r, "run-1", "acme", i)->attempt, i <= STK_LOSSES_FREE ? 0 : 1);
        do_assign(r, "run-1", "asg-1", "wrk-1", inc);
    }
}

static void another_boot_closes_state_until_the_old_runs_are_settled(void **state)
{
    rig *r = *state;
    holding(r);
    do_submit(r, "run-4", "acme", "key", "body", 0);
    do_lane_done(r, 0, "wrk-1", "inc-1", 17);
    char *epoch = do_counts(r)->epoch;
    rig_restart(r, true);
    stk_op_counts *counts = do_counts(r);
    assert_false(counts->open);
    assert_string_not_equal(counts->epoch, epoch);
    assert_int_equal(counts->workers_live, 0);
    assert_int_equal(do_heartbeat(r, "wrk-1", "inc-1")->outcome, STK_HEARTBEAT_ENDED);
    do_join(r, "wrk-2", "inc-2", 4, 8);
    assert_int_equal(do_assign(r, "run-5", "asg-5", "wrk-2", "inc-2")->outcome, STK_ASSIGN_CLOSED);
    assert_int_equal(do_submit(r, "run-6", "acme", NULL, NULL, 0)->outcome, STK_SUBMIT_NEW);
    stk_op_reap *reap = do_reap(r);
    check_settled(r, reap->lost, reap->nlost, 0);
    assert_true(do_counts(r)->open);
    assert_int_equal(do_assign(r, "run-5", "asg-5", "wrk-2", "inc-2")->outcome, STK_ASSIGN_OK);
    assert_int_equal(do_submit(r, "run-9", "acme", "key", "body", 0)->outcome, STK_SUBMIT_SAME);
    assert_int_equal(do_join(r, "wrk-1", "inc-3", 4, 8)->lane_offset, 17);
}

static void a_worker_adopts_what_it_holds(void **state)
{
    rig *r = *state;
    static const struct {
        const char *run, *assignment;
        bool started, ok;
        stk_run_state state;
    } rows[] = {
        {"run-unknown", "asg-1", true, true, STK_RUN_RUNNING},
        {"run-lost", "asg-2", false, true, STK_RUN_ASSIGNED},
        {"run-queued", "asg-3", true, true, STK_RUN_RUNNING},
        {"run-assigned", "asg-4", true, true, STK_RUN_RUNNING},
        {"run-assigned2", "asg-x", true, false, STK_RUN_ASSIGNED},
        {"run-ended", "asg-6", true, false, STK_RUN_FINISHED},
    };
    do_join(r, "wrk-1", "inc-1", 8, 8);
    do_queue(r, "run-queued", "acme", 1);
    do_assign(r, "run-assigned", "asg-4", "wrk-1", "inc-1");
    do_assign(r, "run-assigned2", "asg-5", "wrk-1", "inc-1");
    do_queue(r, "run-ended", "acme", 1);
    do_finish(r, "run-ended", "", "expired");
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        OP(adopt, ADOPT);
        TEXT(op->in.worker, ID("wrk-1"));
        TEXT(op->in.incarnation, ID("inc-1"));
        TEXT(op->in.run, ID(rows[i].run));
        TEXT(op->in.tenant, "acme");
        TEXT(op->in.agent, "coder");
        TEXT(op->in.assignment, ID(rows[i].assignment));
        TEXT(op->in.sandbox, ID("sbx-1"));
        op->in.started = rows[i].started;
        assert_int_equal(CALL_OK(r, op)->ok, rows[i].ok);
        assert_int_equal(do_get(r, rows[i].run)->row.state, rows[i].state);
    }
    assert_int_equal(worker_of(r, "wrk-1")->used, 5);
    OP(adopt, ADOPT);
    TEXT(op->in.worker, ID("wrk-9"));
    TEXT(op->in.incarnation, ID("inc-9"));
    TEXT(op->in.run, ID("run-x"));
    TEXT(op->in.tenant, "acme");
    TEXT(op->in.agent, "coder");
    TEXT(op->in.assignment, ID("asg-9"));
    assert_false(CALL_OK(r, op)->ok);
    assert_int_equal(do_finish(r, "run-unknown", "asg-1", "exited")->outcome, STK_FINISH_WON);
}

/* An adopted run has no stored request: it cannot go back, so losing its holder ends it. */
static void an_adopted_run_of_a_dead_worker_is_lost(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 8, 8);
    OP(adopt, ADOPT);
    TEXT(op->in.worker, ID("wrk-1"));
    TEXT(op->in.incarnation, ID("inc-1"));
    TEXT(op->in.run, ID("run-1"));
    TEXT(op->in.tenant, "acme");
    TEXT(op->in.agent, "coder");
    TEXT(op->in.assignment, ID("asg-1"));
    assert_true(CALL_OK(r, op)->ok);
    stk_op_join *join = do_join(r, "wrk-1", "inc-2", 8, 8);
    assert_int_equal(join->nlost, 1);
    assert_false(join->lost[0].requeued);
    assert_string_equal(do_get(r, "run-1")->row.reason, "worker_lost");
}

static void a_reservation_nobody_published_is_gone_after_a_minute(void **state)
{
    rig *r = *state;
    do_submit(r, "run-1", "acme", "key", "body", 0);
    do_submit(r, "run-2", "acme", NULL, NULL, 0);
    do_submit(r, "run-3", "acme", NULL, NULL, 0);
    do_queue(r, "run-2", "acme", 1);
    OP(published, PUBLISHED);
    TEXT(op->in.run, ID("run-3"));
    op->in.partition = 2;
    op->in.offset = 5;
    CALL_OK(r, op);
    rig_advance(r, stk_sec(59));
    do_reap(r);
    assert_true(do_get(r, "run-1")->found);
    rig_advance(r, stk_sec(2));
    do_reap(r);
    assert_false(do_get(r, "run-1")->found);
    assert_true(do_get(r, "run-2")->found);
    assert_int_equal(do_get(r, "run-3")->row.state, STK_RUN_SUBMITTED);
    assert_int_equal(do_get(r, "run-3")->row.offset, 5);
    assert_int_equal(do_counts(r)->by_state[STK_RUN_SUBMITTED], 1);
    assert_int_equal(do_submit(r, "run-1", "acme", "key", "another body", 0)->outcome, STK_SUBMIT_NEW);
}

static void results_stay_ten_minutes_and_runs_with_their_keys_a_day(void **state)
{
    rig *r = *state;
    do_submit(r, "run-1", "acme", "key", "body", 0);
    do_queue(r, "run-1", "acme", 1);
    do_finish(r, "run-1", "", "expired");
    rig_advance(r, stk_sec(599));
    do_reap(r);
    assert_true(do_get(r, "run-1")->row.result.set);
    rig_advance(r, stk_sec(2));
    do_reap(r);
    assert_false(do_get(r, "run-1")->row.result.set);
    assert_int_equal(do_submit(r, "run-2", "acme", "key", "body", 0)->state, STK_RUN_FINISHED);
    rig_advance(r, stk_sec(86400));
    do_reap(r);
    assert_false(do_get(r, "run-1")->found);
    assert_int_equal(do_counts(r)->by_state[STK_RUN_FINISHED], 0);
    assert_int_equal(do_submit(r, "run-2", "acme", "key", "body", 0)->outcome, STK_SUBMIT_NEW);
}

SUITE(lost, CASE(a_restarted_worker_settles_what_it_held_when_it_joins),
      CASE(a_dead_worker_is_reaped_when_its_lease_ends), CASE(leaving_gives_back_what_did_not_start),
      CASE(the_living_are_not_reaped_when_state_was_away), CASE(after_the_grace_the_dead_are_reaped),
      CASE(a_restart_of_state_gives_the_same_grace), CASE(a_cancelled_run_of_a_dead_worker_ends_cancelled),
      CASE(a_run_that_keeps_killing_its_host_is_counted_in_the_end),
      CASE(another_boot_closes_state_until_the_old_runs_are_settled), CASE(a_worker_adopts_what_it_holds),
      CASE(an_adopted_run_of_a_dead_worker_is_lost),
      CASE(a_reservation_nobody_published_is_gone_after_a_minute),
      CASE(results_stay_ten_minutes_and_runs_with_their_keys_a_day));
