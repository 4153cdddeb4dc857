/* finish, cancel, requeue, and the outbox: one arbiter, and what its winner must publish. */
#include "tests/conformance/state/rig.h"

static void running(rig *r, const char *run, const char *assignment, const char *retry)
{
    do_join(r, "wrk-1", "inc-1", 4, 8);
    ASSIGN(r, .run = run, .assignment = assignment, .worker = "wrk-1", .incarnation = "inc-1",
           .retry = retry);
    assert_int_equal(do_start(r, run, assignment, "wrk-1", "inc-1")->outcome, STK_START_OK);
}

static stk_outbox_item *only_item(rig *r)
{
    stk_op_outbox_take *take = do_outbox(r, stk_ns(0), stk_ns(0));
    assert_int_equal(take->items.n, 1);
    return &take->items.v[0];
}

static void the_winner_leaves_one_event_in_the_outbox(void **state)
{
    rig *r = *state;
    running(r, "run-1", "asg-1", NULL);
    stk_op_finish *fin = do_finish(r, "run-1", "asg-1", "exited");
    stk_outbox_item *item = only_item(r);
    assert_int_equal(item->id, fin->outbox);
    assert_string_equal(item->topic, "stk.events");
    assert_string_equal(item->key, ID("run-1"));
    assert_string_equal(item->value.p, "finished run-1 exited");
}

static void a_report_for_another_assignment_is_late(void **state)
{
    rig *r = *state;
    running(r, "run-1", "asg-1", NULL);
    assert_int_equal(do_finish(r, "run-1", "asg-2", "exited")->outcome, STK_FINISH_LOST);
    assert_int_equal(do_finish(r, "run-1", "", "expired")->outcome, STK_FINISH_LOST);
    assert_int_equal(do_finish(r, "run-2", "asg-1", "exited")->outcome, STK_FINISH_LOST);
    assert_int_equal(do_get(r, "run-1")->row.state, STK_RUN_RUNNING);
    assert_int_equal(do_outbox(r, stk_ns(0), stk_ns(0))->items.n, 0);
}

static void a_run_without_assignment_is_finished_by_the_empty_one(void **state)
{
    rig *r = *state;
    do_queue(r, "run-1", "acme", 1);
    assert_int_equal(do_finish(r, "run-1", "asg-1", "expired")->outcome, STK_FINISH_LOST);
    assert_int_equal(do_finish(r, "run-1", "", "expired")->outcome, STK_FINISH_WON);
    assert_string_equal(do_get(r, "run-1")->row.reason, "expired");
}

static void a_plan_keeps_its_answer_and_publishes_nothing(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    ASSIGN(r, .run = "run-1", .assignment = "asg-1", .worker = "wrk-1", .incarnation = "inc-1", .plan = true);
    do_start(r, "run-1", "asg-1", "wrk-1", "inc-1");
    OP(finish, FINISH);
    TEXT(op->in.run, ID("run-1"));
    TEXT(op->in.assignment, ID("asg-1"));
    TEXT(op->in.reason, "exited");
    op->in.plan = true;
    stk_bytes_set(&op->in.result, STK_STR("{\"plan\":1}"));
    op = CALL_OK(r, op);
    assert_int_equal(op->outcome, STK_FINISH_WON);
    assert_int_equal(op->outbox, 0);
    assert_string_equal(do_get(r, "run-1")->row.result.p, "{\"plan\":1}");
    assert_int_equal(do_counts(r)->outbox, 0);
}

static void a_reason_that_is_none_is_refused(void **state)
{
    rig *r = *state;
    running(r, "run-1", "asg-1", NULL);
    OP(finish, FINISH);
    TEXT(op->in.run, ID("run-1"));
    TEXT(op->in.assignment, ID("asg-1"));
    TEXT(op->in.reason, "boredom");
    stk_bytes_set(&op->in.event, STK_STR("x"));
    assert_int_equal(CALL(r, op)->op.rc, -STK_E_FIELD);
    assert_int_equal(do_get(r, "run-1")->row.state, STK_RUN_RUNNING);
}

static void a_result_over_64_kib_is_kept_without_its_sealed_part(void **state)
{
    rig *r = *state;
    stk_event ev = {.v = STK_MESSAGE_VERSION,
                    .kind = "finished",
                    .tenant = "acme",
                    .agent = "coder",
                    .reason = "exited",
                    .attempt = 1,
                    .exit_code = 3,
                    .stdout_bytes = 100000};
    stk_buf text = STK_BUF(STK_RECORD_MAX);
    running(r, "run-1", "asg-1", NULL);
    TEXT(ev.run, ID("run-1"));
    ev.secret = (stk_bytes){calloc(1, 100000), 100000, true};
    assert_int_equal(stk_event_encode(&ev, &text, NULL), 0);
    OP(finish, FINISH);
    TEXT(op->in.run, ID("run-1"));
    TEXT(op->in.assignment, ID("asg-1"));
    TEXT(op->in.reason, "exited");
    stk_bytes_set(&op->in.event, stk_buf_view(&text));
    CALL_OK(r, op);
    assert_int_equal(only_item(r)->value.n, text.n);
    stk_event kept = {0};
    stk_bytes *result = &do_get(r, "run-1")->row.result;
    assert_true(result->n < 65536);
    assert_int_equal(stk_event_decode(stk_bytes_view(result), &kept, NULL), 0);
    assert_int_equal(kept.exit_code, 3);
    assert_int_equal(kept.stdout_bytes, 100000);
    assert_false(kept.secret.set);
    stk_event_done(&kept);
    stk_event_done(&ev);
    stk_buf_done(&text);
}

static void cancelling_what_did_not_start_ends_it_at_once(void **state)
{
    rig *r = *state;
    do_submit(r, "run-1", "acme", NULL, NULL, 0);
    do_queue(r, "run-2", "acme", 1);
    assert_int_equal(do_cancel(r, "run-1", "zeta")->outcome, STK_CANCEL_UNKNOWN);
    assert_int_equal(do_cancel(r, "run-1", "acme")->outcome, STK_CANCEL_FINISHED);
    assert_int_equal(do_cancel(r, "run-2", "acme")->outcome, STK_CANCEL_FINISHED);
    assert_int_equal(do_cancel(r, "run-2", "acme")->outcome, STK_CANCEL_PASSED);
    assert_int_equal(do_cancel(r, "run-9", "acme")->outcome, STK_CANCEL_UNKNOWN);
    assert_string_equal(do_get(r, "run-2")->row.reason, "cancelled");
    assert_int_equal(do_counts(r)->outbox, 2);
    assert_int_equal(do_queue(r, "run-1", "acme", 4)->outcome, STK_QUEUE_PASSED);
}

static void cancel_before_start_wins(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1");
    stk_op_cancel *cancel = do_cancel(r, "run-1", "acme");
    assert_int_equal(cancel->outcome, STK_CANCEL_ASKED);
    assert_int_equal(cancel->lane, 0);
    assert_string_equal(cancel->assignment, ID("asg-1"));
    assert_string_equal(cancel->worker, ID("wrk-1"));
    assert_string_equal(cancel->incarnation, ID("inc-1"));
    assert_int_equal(do_start(r, "run-1", "asg-1", "wrk-1", "inc-1")->outcome, STK_START_CANCELLED);
    assert_int_equal(do_get(r, "run-1")->row.state, STK_RUN_ASSIGNED);
    stk_op_heartbeat *beat = do_heartbeat(r, "wrk-1", "inc-1");
    assert_int_equal(beat->cancels.n, 1);
    assert_string_equal(beat->cancels.v[0].p, ID("asg-1"));
    assert_int_equal(do_finish(r, "run-1", "asg-1", "cancelled")->outcome, STK_FINISH_WON);
    assert_int_equal(do_heartbeat(r, "wrk-1", "inc-1")->cancels.n, 0);
}

static void cancel_after_start_is_a_wish(void **state)
{
    rig *r = *state;
    running(r, "run-1", "asg-1", NULL);
    assert_int_equal(do_cancel(r, "run-1", "acme")->outcome, STK_CANCEL_ASKED);
    assert_true(do_get(r, "run-1")->row.cancel_asked);
    assert_int_equal(do_finish(r, "run-1", "asg-1", "exited")->outcome, STK_FINISH_WON);
    assert_int_equal(do_cancel(r, "run-1", "acme")->outcome, STK_CANCEL_PASSED);
}

static void a_cancelled_run_that_comes_back_is_not_assigned_again(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1");
    do_cancel(r, "run-1", "acme");
    do_requeue(r, "run-1", "asg-1", false, false);
    assert_true(do_queue(r, "run-1", "acme", 9)->cancel_asked);
    assert_int_equal(do_assign(r, "run-1", "asg-2", "wrk-1", "inc-1")->outcome, STK_ASSIGN_CANCELLED);
}

static void a_first_attempt_is_one_only_while_none_counted(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    stk_op_assign *op = ASSIGN(r, .run = "run-1", .assignment = "asg-1", .worker = "wrk-1",
                               .incarnation = "inc-1", .first = true);
    assert_int_equal(op->outcome, STK_ASSIGN_OK);
    do_requeue(r, "run-1", "asg-1", false, false);
    op = ASSIGN(r, .run = "run-1", .assignment = "asg-2", .worker = "wrk-1", .incarnation = "inc-1",
                .first = true);
    assert_int_equal(op->outcome, STK_ASSIGN_OK);
    do_requeue(r, "run-1", "asg-2", true, false);
    op = ASSIGN(r, .run = "run-1", .assignment = "asg-3", .worker = "wrk-1", .incarnation = "inc-1",
                .first = true);
    assert_int_equal(op->outcome, STK_ASSIGN_COUNTED);
    assert_int_equal(do_assign(r, "run-1", "asg-3", "wrk-1", "inc-1")->outcome, STK_ASSIGN_OK);
}

static void a_requeued_run_waits_with_its_request_in_the_outbox(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1");
    assert_int_equal(do_requeue(r, "run-1", "asg-2", true, false)->outcome, STK_REQUEUE_STALE);
    stk_op_requeue *back = do_requeue(r, "run-1", "asg-1", true, false);
    assert_int_equal(back->outcome, STK_REQUEUE_OK);
    assert_int_equal(back->attempt, 1);
    stk_outbox_item *item = only_item(r);
    assert_int_equal(item->id, back->outbox);
    assert_string_equal(item->topic, "stk.requests");
    assert_string_equal(item->key, ID("run-1"));
    assert_string_equal(item->value.p, "the request");
    stk_run_row *row = &do_get(r, "run-1")->row;
    assert_int_equal(row->state, STK_RUN_QUEUED);
    assert_string_equal(row->assignment, "");
    assert_int_equal(row->offset, 7);
    assert_int_equal(worker_of(r, "wrk-1")->used, 0);
    assert_int_equal(do_start(r, "run-1", "asg-1", "wrk-1", "inc-1")->outcome, STK_START_STALE);
    stk_op_queue *read = do_queue(r, "run-1", "acme", 50);
    assert_int_equal(read->outcome, STK_QUEUE_OK);
    assert_int_equal(read->attempt, 1);
    assert_int_equal(do_assign(r, "run-1", "asg-2", "wrk-1", "inc-1")->outcome, STK_ASSIGN_OK);
    assert_int_equal(do_requeue(r, "run-1", "asg-2", false, false)->attempt, 1);
}

static void a_started_run_comes_back_only_to_be_repeated(void **state)
{
    rig *r = *state;
    running(r, "run-1", "asg-1", "always");
    assert_int_equal(do_requeue(r, "run-1", "asg-1", true, false)->outcome, STK_REQUEUE_STALE);
    assert_int_equal(do_requeue(r, "run-1", "asg-1", true, true)->outcome, STK_REQUEUE_OK);
    assert_int_equal(do_get(r, "run-1")->row.started.ns, 0);
    assert_int_equal(do_finish(r, "run-1", "asg-1", "exited")->outcome, STK_FINISH_LOST);
}

static void an_item_is_handed_to_one_sweeper_for_a_while(void **state)
{
    rig *r = *state;
    running(r, "run-1", "asg-1", NULL);
    int64_t id = do_finish(r, "run-1", "asg-1", "exited")->outbox;
    assert_int_equal(do_outbox(r, stk_sec(5), stk_sec(10))->items.n, 0);
    rig_advance(r, stk_sec(5));
    assert_int_equal(do_outbox(r, stk_sec(5), stk_sec(10))->items.n, 1);
    assert_int_equal(do_outbox(r, stk_sec(5), stk_sec(10))->items.n, 0);
    rig_advance(r, stk_sec(10));
    assert_int_equal(do_outbox(r, stk_sec(5), stk_sec(10))->items.n, 1);
    do_outbox_done(r, id);
    do_outbox_done(r, id);
    rig_advance(r, stk_sec(10));
    assert_int_equal(do_outbox(r, stk_sec(5), stk_sec(10))->items.n, 0);
    assert_int_equal(do_counts(r)->outbox, 0);
}

static void the_winner_takes_his_own_item_whatever_its_age(void **state)
{
    rig *r = *state;
    running(r, "run-1", "asg-1", NULL);
    int64_t id = do_finish(r, "run-1", "asg-1", "exited")->outbox;
    for (int turn = 0; turn < 2; turn++) {
        OP(outbox_take, OUTBOX_TAKE);
        op->in.id = id;
        op->in.older = stk_sec(3600);
        op->in.hold = stk_sec(10);
        op = CALL_OK(r, op);
        assert_int_equal(op->items.n, turn == 0 ? 1 : 0);
    }
}

static void ids_in_the_outbox_are_never_used_again(void **state)
{
    rig *r = *state;
    running(r, "run-1", "asg-1", NULL);
    int64_t first = do_finish(r, "run-1", "asg-1", "exited")->outbox;
    do_outbox_done(r, first);
    running(r, "run-2", "asg-2", NULL);
    int64_t second = do_finish(r, "run-2", "asg-2", "exited")->outbox;
    assert_true(second > first);
    do_outbox_done(r, first);
    assert_int_equal(do_counts(r)->outbox, 1);
}

static void a_sweep_takes_the_oldest_first_and_no_more_than_asked(void **state)
{
    rig *r = *state;
    static const char *const runs[] = {"run-1", "run-2", "run-3"};
    for (size_t i = 0; i < 3; i++) {
        do_queue(r, runs[i], "acme", 1);
        do_finish(r, runs[i], "", "expired");
    }
    OP(outbox_take, OUTBOX_TAKE);
    op->in.most = 2;
    op->in.hold = stk_sec(10);
    op = CALL_OK(r, op);
    assert_int_equal(op->items.n, 2);
    assert_string_equal(op->items.v[0].key, ID("run-1"));
    assert_string_equal(op->items.v[1].key, ID("run-2"));
    assert_string_equal(only_item(r)->key, ID("run-3"));
}

SUITE(ends, CASE(the_winner_leaves_one_event_in_the_outbox), CASE(a_report_for_another_assignment_is_late),
      CASE(a_run_without_assignment_is_finished_by_the_empty_one),
      CASE(a_plan_keeps_its_answer_and_publishes_nothing), CASE(a_reason_that_is_none_is_refused),
      CASE(a_result_over_64_kib_is_kept_without_its_sealed_part),
      CASE(cancelling_what_did_not_start_ends_it_at_once), CASE(cancel_before_start_wins),
      CASE(cancel_after_start_is_a_wish), CASE(a_cancelled_run_that_comes_back_is_not_assigned_again),
      CASE(a_first_attempt_is_one_only_while_none_counted),
      CASE(a_requeued_run_waits_with_its_request_in_the_outbox),
      CASE(a_started_run_comes_back_only_to_be_repeated), CASE(an_item_is_handed_to_one_sweeper_for_a_while),
      CASE(the_winner_takes_his_own_item_whatever_its_age), CASE(ids_in_the_outbox_are_never_used_again),
      CASE(a_sweep_takes_the_oldest_first_and_no_more_than_asked));
