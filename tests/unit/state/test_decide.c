#include "proto/state/decide.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void submit_knows_repeats_before_caps(void **state)
{
    static const struct {
        stk_submit_facts facts;
        int outcome;
    } rows[] = {
        {{.cap = 0, .unfinished = 1000000}, STK_SUBMIT_NEW},
        {{.cap = 5, .unfinished = 4}, STK_SUBMIT_NEW},
        {{.cap = 5, .unfinished = 5}, STK_SUBMIT_OVER_CAP},
        {{.cap = 5, .unfinished = 9}, STK_SUBMIT_OVER_CAP},
        {{.key_known = true, .body_same = true, .cap = 5, .unfinished = 5}, STK_SUBMIT_SAME},
        {{.key_known = true, .body_same = false}, STK_SUBMIT_MISMATCH},
        {{.key_known = true, .body_same = false, .run_known = true}, STK_SUBMIT_MISMATCH},
        {{.run_known = true, .cap = 1, .unfinished = 1}, STK_SUBMIT_SAME},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++)
        assert_int_equal(stk_decide_submit(&rows[i].facts), rows[i].outcome);
}

static void each_state_has_one_answer(void **state)
{
    static const struct {
        int queue, finish, cancel, requeue, repeat;
    } rows[STK_RUN_STATES] = {
        [STK_RUN_NONE] = {STK_QUEUE_OK, STK_FINISH_LOST, STK_CANCEL_UNKNOWN, STK_REQUEUE_STALE,
                          STK_REQUEUE_STALE},
        [STK_RUN_SUBMITTED] = {STK_QUEUE_OK, STK_FINISH_WON, STK_CANCEL_FINISHED, STK_REQUEUE_STALE,
                               STK_REQUEUE_STALE},
        [STK_RUN_QUEUED] = {STK_QUEUE_OK, STK_FINISH_WON, STK_CANCEL_FINISHED, STK_REQUEUE_STALE,
                            STK_REQUEUE_STALE},
        [STK_RUN_ASSIGNED] = {STK_QUEUE_ASSIGNED, STK_FINISH_WON, STK_CANCEL_ASKED, STK_REQUEUE_OK,
                              STK_REQUEUE_OK},
        [STK_RUN_RUNNING] = {STK_QUEUE_PASSED, STK_FINISH_WON, STK_CANCEL_ASKED, STK_REQUEUE_STALE,
                             STK_REQUEUE_OK},
        [STK_RUN_FINISHED] = {STK_QUEUE_PASSED, STK_FINISH_LOST, STK_CANCEL_PASSED, STK_REQUEUE_STALE,
                              STK_REQUEUE_STALE},
    };
    for (stk_run_state s = STK_RUN_NONE; s < STK_RUN_STATES; s++) {
        assert_int_equal(stk_decide_queue(s), rows[s].queue);
        assert_int_equal(stk_decide_finish(s, true), rows[s].finish);
        assert_int_equal(stk_decide_finish(s, false), STK_FINISH_LOST);
        assert_int_equal(stk_decide_cancel(s, true), rows[s].cancel);
        assert_int_equal(stk_decide_cancel(s, false), STK_CANCEL_UNKNOWN);
        assert_int_equal(stk_decide_requeue(s, true, false), rows[s].requeue);
        assert_int_equal(stk_decide_requeue(s, true, true), rows[s].repeat);
        assert_int_equal(stk_decide_requeue(s, false, true), STK_REQUEUE_STALE);
    }
}

/* What a decision allows, the run machine allows as well. */
static void no_decision_leaves_the_machine(void **state)
{
    for (stk_run_state s = STK_RUN_NONE; s < STK_RUN_STATES; s++) {
        if (stk_decide_finish(s, true) == STK_FINISH_WON || stk_decide_cancel(s, true) == STK_CANCEL_FINISHED)
            assert_int_equal(stk_run_next(s, STK_EV_FINISH), STK_RUN_FINISHED);
        if (stk_decide_requeue(s, true, false) == STK_REQUEUE_OK)
            assert_int_equal(stk_run_next(s, STK_EV_REQUEUE), STK_RUN_QUEUED);
    }
    assert_int_equal(stk_run_next(STK_RUN_RUNNING, STK_EV_REPEAT), STK_RUN_QUEUED);
    assert_int_equal(stk_run_next(STK_RUN_ASSIGNED, STK_EV_START), STK_RUN_RUNNING);
    assert_int_equal(stk_run_next(STK_RUN_QUEUED, STK_EV_ASSIGN), STK_RUN_ASSIGNED);
}

static void the_first_reason_against_an_assignment_is_the_answer(void **state)
{
    static const stk_assign_facts good = {.open = true,
                                          .state = STK_RUN_QUEUED,
                                          .worker_live = true,
                                          .slots = 4,
                                          .used = 3,
                                          .running = 1,
                                          .cap = 2,
                                          .wants_sandbox = true,
                                          .sandbox_there = true};
    stk_assign_facts f = good;
    assert_int_equal(stk_decide_assign(&f), STK_ASSIGN_OK);
    f.sandbox_there = false;
    assert_int_equal(stk_decide_assign(&f), STK_ASSIGN_NO_SANDBOX);
    f.running = 2;
    assert_int_equal(stk_decide_assign(&f), STK_ASSIGN_CAP);
    f.used = 4;
    assert_int_equal(stk_decide_assign(&f), STK_ASSIGN_NO_WORKER);
    f.cancel_asked = true;
    assert_int_equal(stk_decide_assign(&f), STK_ASSIGN_CANCELLED);
    f.state = STK_RUN_ASSIGNED;
    assert_int_equal(stk_decide_assign(&f), STK_ASSIGN_ALREADY);
    f.state = STK_RUN_RUNNING;
    assert_int_equal(stk_decide_assign(&f), STK_ASSIGN_PASSED);
    f.open = false;
    assert_int_equal(stk_decide_assign(&f), STK_ASSIGN_CLOSED);

    f = good;
    f.first = true;
    assert_int_equal(stk_decide_assign(&f), STK_ASSIGN_OK);
    f.attempts = 1;
    f.worker_live = false;
    assert_int_equal(stk_decide_assign(&f), STK_ASSIGN_COUNTED);
    f.first = false;
    f.worker_live = true;
    assert_int_equal(stk_decide_assign(&f), STK_ASSIGN_OK);
    f = good;
    f.worker_live = false;
    assert_int_equal(stk_decide_assign(&f), STK_ASSIGN_NO_WORKER);
    f = good;
    f.plan = true;
    f.used = 4;
    f.running = 9;
    assert_int_equal(stk_decide_assign(&f), STK_ASSIGN_OK);
    f = good;
    f.cap = 0;
    f.running = 1000;
    assert_int_equal(stk_decide_assign(&f), STK_ASSIGN_OK);
    f = good;
    f.state = STK_RUN_NONE;
    assert_int_equal(stk_decide_assign(&f), STK_ASSIGN_OK);
}

static void start_wants_everything_at_once(void **state)
{
    for (int bits = 0; bits < 16; bits++) {
        stk_start_facts f = {.state = bits & 1 ? STK_RUN_ASSIGNED : STK_RUN_RUNNING,
                             .ours = bits & 2,
                             .live = bits & 4,
                             .cancel_asked = bits & 8};
        int want = (bits & 7) != 7 ? STK_START_STALE : bits & 8 ? STK_START_CANCELLED : STK_START_OK;
        assert_int_equal(stk_decide_start(&f), want);
    }
}

static void a_lost_run_has_one_fate(void **state)
{
    static const struct {
        stk_run_state state;
        bool cancel, always, request;
        stk_lost_fate fate;
    } rows[] = {
        {STK_RUN_ASSIGNED, false, false, true, STK_LOST_REQUEUE},
        {STK_RUN_ASSIGNED, false, true, true, STK_LOST_REQUEUE},
        {STK_RUN_ASSIGNED, false, true, false, STK_LOST_FINISH},
        {STK_RUN_ASSIGNED, true, true, true, STK_LOST_CANCEL},
        {STK_RUN_RUNNING, false, false, true, STK_LOST_FINISH},
        {STK_RUN_RUNNING, false, true, true, STK_LOST_REPEAT},
        {STK_RUN_RUNNING, false, true, false, STK_LOST_FINISH},
        {STK_RUN_RUNNING, true, true, true, STK_LOST_CANCEL},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++)
        assert_int_equal(stk_decide_lost(rows[i].state, rows[i].cancel, rows[i].always, rows[i].request),
                         rows[i].fate);
}

static void a_loss_counts_when_the_worker_stays_away_or_it_happens_too_often(void **state)
{
    assert_true(stk_decide_loss_counts(false, 0));
    assert_false(stk_decide_loss_counts(true, 0));
    assert_false(stk_decide_loss_counts(true, STK_LOSSES_FREE - 1));
    assert_true(stk_decide_loss_counts(true, STK_LOSSES_FREE));
}

static void what_ended_or_belongs_to_another_is_not_adopted(void **state)
{
    assert_true(stk_decide_adopt(STK_RUN_NONE, false, true));
    assert_true(stk_decide_adopt(STK_RUN_QUEUED, false, true));
    assert_true(stk_decide_adopt(STK_RUN_RUNNING, true, true));
    assert_false(stk_decide_adopt(STK_RUN_RUNNING, false, true));
    assert_false(stk_decide_adopt(STK_RUN_ASSIGNED, false, true));
    assert_false(stk_decide_adopt(STK_RUN_FINISHED, true, true));
    assert_false(stk_decide_adopt(STK_RUN_NONE, false, false));
}

static void a_gap_of_more_than_two_heartbeats_is_forgiven(void **state)
{
    assert_true(stk_decide_grace(-1, 0, stk_sec(2)));
    assert_false(stk_decide_grace(0, stk_sec(4).ns, stk_sec(2)));
    assert_true(stk_decide_grace(0, stk_sec(4).ns + 1, stk_sec(2)));
    assert_false(stk_decide_grace(0, stk_sec(1).ns, stk_ms(100)));
    assert_true(stk_decide_grace(0, STK_REAP_LATE.ns + 1, stk_ms(100)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(submit_knows_repeats_before_caps),
        cmocka_unit_test(each_state_has_one_answer),
        cmocka_unit_test(no_decision_leaves_the_machine),
        cmocka_unit_test(the_first_reason_against_an_assignment_is_the_answer),
        cmocka_unit_test(start_wants_everything_at_once),
        cmocka_unit_test(a_lost_run_has_one_fate),
        cmocka_unit_test(a_loss_counts_when_the_worker_stays_away_or_it_happens_too_often),
        cmocka_unit_test(what_ended_or_belongs_to_another_is_not_adopted),
        cmocka_unit_test(a_gap_of_more_than_two_heartbeats_is_forgiven),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
