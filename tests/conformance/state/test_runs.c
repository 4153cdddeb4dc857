/* submit, queue, assign, start: a run on its way to running. */
#include "tests/conformance/state/rig.h"

static void a_run_passes_every_state_and_ends_once(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    stk_op_submit *sub = do_submit(r, "run-1", "acme", NULL, NULL, 0);
    assert_int_equal(sub->outcome, STK_SUBMIT_NEW);
    assert_int_equal(sub->state, STK_RUN_SUBMITTED);
    assert_int_equal(do_queue(r, "run-1", "acme", 7)->outcome, STK_QUEUE_OK);
    assert_int_equal(do_get(r, "run-1")->row.state, STK_RUN_QUEUED);
    stk_op_assign *asg = do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1");
    assert_int_equal(asg->outcome, STK_ASSIGN_OK);
    assert_int_equal(asg->lane, 0);
    assert_int_equal(worker_of(r, "wrk-1")->used, 1);
    assert_int_equal(do_start(r, "run-1", "asg-1", "wrk-1", "inc-1")->outcome, STK_START_OK);
    assert_int_equal(do_get(r, "run-1")->row.state, STK_RUN_RUNNING);
    stk_op_finish *fin = do_finish(r, "run-1", "asg-1", "exited");
    assert_int_equal(fin->outcome, STK_FINISH_WON);
    assert_true(fin->outbox > 0);
    stk_op_run_get *get = do_get(r, "run-1");
    assert_int_equal(get->row.state, STK_RUN_FINISHED);
    assert_string_equal(get->row.reason, "exited");
    assert_string_equal(get->row.result.p, "finished run-1 exited");
    assert_int_equal(worker_of(r, "wrk-1")->used, 0);
    assert_int_equal(do_finish(r, "run-1", "asg-1", "timeout")->outcome, STK_FINISH_LOST);
    assert_string_equal(do_get(r, "run-1")->row.reason, "exited");
}

static void a_repeated_key_meets_the_same_run(void **state)
{
    rig *r = *state;
    assert_int_equal(do_submit(r, "run-1", "acme", "key", "body", 0)->outcome, STK_SUBMIT_NEW);
    stk_op_submit *again = do_submit(r, "run-2", "acme", "key", "body", 0);
    assert_int_equal(again->outcome, STK_SUBMIT_SAME);
    assert_string_equal(again->run, ID("run-1"));
    assert_int_equal(again->state, STK_RUN_SUBMITTED);
    do_queue(r, "run-1", "acme", 1);
    assert_int_equal(do_submit(r, "run-2", "acme", "key", "body", 0)->state, STK_RUN_QUEUED);
    stk_op_submit *other = do_submit(r, "run-2", "acme", "key", "another body", 0);
    assert_int_equal(other->outcome, STK_SUBMIT_MISMATCH);
    assert_false(do_get(r, "run-2")->found);
}

static void another_tenants_key_is_another_key(void **state)
{
    rig *r = *state;
    assert_int_equal(do_submit(r, "run-1", "acme", "key", "body", 0)->outcome, STK_SUBMIT_NEW);
    assert_int_equal(do_submit(r, "run-2", "zeta", "key", "body 2", 0)->outcome, STK_SUBMIT_NEW);
}

static void a_run_id_of_another_tenant_is_refused(void **state)
{
    rig *r = *state;
    do_submit(r, "run-1", "acme", NULL, NULL, 0);
    OP(submit, SUBMIT);
    TEXT(op->in.run, ID("run-1"));
    TEXT(op->in.tenant, "zeta");
    TEXT(op->in.agent, "coder");
    assert_int_equal(CALL(r, op)->op.rc, -STK_E_CONFLICT);
    assert_string_equal(do_get(r, "run-1")->row.tenant, "acme");
}

static void the_cap_counts_unfinished_runs_of_the_tenant_alone(void **state)
{
    rig *r = *state;
    do_submit(r, "run-1", "acme", NULL, NULL, 2);
    do_submit(r, "run-2", "acme", NULL, NULL, 2);
    assert_int_equal(do_submit(r, "run-3", "acme", NULL, NULL, 2)->outcome, STK_SUBMIT_OVER_CAP);
    assert_false(do_get(r, "run-3")->found);
    assert_int_equal(do_submit(r, "run-4", "zeta", NULL, NULL, 2)->outcome, STK_SUBMIT_NEW);
    do_queue(r, "run-1", "acme", 1);
    assert_int_equal(do_submit(r, "run-3", "acme", NULL, NULL, 2)->outcome, STK_SUBMIT_OVER_CAP);
    do_cancel(r, "run-1", "acme");
    assert_int_equal(do_submit(r, "run-3", "acme", NULL, NULL, 2)->outcome, STK_SUBMIT_NEW);
}

static void a_repeat_over_the_cap_is_still_the_same_run(void **state)
{
    rig *r = *state;
    do_submit(r, "run-1", "acme", "key", "body", 1);
    assert_int_equal(do_submit(r, "run-2", "acme", "key", "body", 1)->outcome, STK_SUBMIT_SAME);
}

static void malformed_names_are_refused_before_anything_is_written(void **state)
{
    rig *r = *state;
    static const struct {
        const char *run, *tenant, *agent;
    } rows[] = {
        {"run-short", "acme", "coder"}, {NULL, "Acme", "coder"}, {NULL, "acme", ""}, {NULL, "acme", "-x"}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        OP(submit, SUBMIT);
        TEXT(op->in.run, rows[i].run ? rows[i].run : ID("run-1"));
        TEXT(op->in.tenant, rows[i].tenant);
        TEXT(op->in.agent, rows[i].agent);
        assert_int_equal(CALL(r, op)->op.rc, -STK_E_FIELD);
    }
    assert_false(do_get(r, "run-1")->found);
}

static void labels_and_times_come_back_as_they_went_in(void **state)
{
    rig *r = *state;
    OP(submit, SUBMIT);
    TEXT(op->in.run, ID("run-1"));
    TEXT(op->in.tenant, "acme");
    TEXT(op->in.agent, "coder");
    op->in.priority = 9;
    op->in.submitted = (stk_wall){1700000000123456789};
    stk_map_add(&op->in.labels, STK_STR("team"), STK_STR("a \"b\" \xc3\xa9"));
    stk_map_add(&op->in.labels, STK_STR("empty"), STK_STR(""));
    CALL_OK(r, op);
    stk_run_row *row = &do_get(r, "run-1")->row;
    assert_int_equal(row->labels.n, 2);
    assert_string_equal(stk_map_get(&row->labels, STK_STR("team"))->p, "a \"b\" \xc3\xa9");
    assert_int_equal(stk_map_get(&row->labels, STK_STR("empty"))->n, 0);
    assert_int_equal(row->priority, 9);
    assert_int_equal(row->submitted.ns, 1700000000123456789);
    assert_string_equal(row->kind, "run");
    assert_int_equal(row->partition, -1);
    assert_int_equal(row->lane, -1);
}

static void queueing_twice_changes_nothing_and_a_new_place_is_kept(void **state)
{
    rig *r = *state;
    do_submit(r, "run-1", "acme", NULL, NULL, 0);
    assert_int_equal(do_queue(r, "run-1", "acme", 7)->outcome, STK_QUEUE_OK);
    assert_int_equal(do_queue(r, "run-1", "acme", 7)->outcome, STK_QUEUE_OK);
    assert_int_equal(do_queue(r, "run-1", "acme", 90)->outcome, STK_QUEUE_OK);
    stk_run_row *row = &do_get(r, "run-1")->row;
    assert_int_equal(row->partition, 3);
    assert_int_equal(row->offset, 90);
    assert_int_equal(do_counts(r)->by_state[STK_RUN_QUEUED], 1);
}

static void a_request_that_state_does_not_know_is_queued(void **state)
{
    rig *r = *state;
    assert_int_equal(do_queue(r, "run-1", "acme", 7)->outcome, STK_QUEUE_OK);
    assert_int_equal(do_get(r, "run-1")->row.state, STK_RUN_QUEUED);
    assert_int_equal(do_counts(r)->by_state[STK_RUN_SUBMITTED], 0);
}

static void a_request_read_again_gets_the_stored_assignment_until_it_runs(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    do_queue(r, "run-1", "acme", 7);
    do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1");
    stk_op_queue *again = do_queue(r, "run-1", "acme", 7);
    assert_int_equal(again->outcome, STK_QUEUE_ASSIGNED);
    assert_int_equal(again->lane, 0);
    stk_assignment asg = {0};
    assert_int_equal(stk_assignment_decode(stk_bytes_view(&again->assignment), &asg, NULL), 0);
    assert_string_equal(asg.assignment, ID("asg-1"));
    stk_assignment_done(&asg);
    do_start(r, "run-1", "asg-1", "wrk-1", "inc-1");
    assert_int_equal(do_queue(r, "run-1", "acme", 7)->outcome, STK_QUEUE_PASSED);
    do_finish(r, "run-1", "asg-1", "exited");
    assert_int_equal(do_queue(r, "run-1", "acme", 7)->outcome, STK_QUEUE_PASSED);
}

static void assigning_twice_answers_the_first_record(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    do_join(r, "wrk-2", "inc-2", 4, 8);
    do_queue(r, "run-1", "acme", 7);
    assert_int_equal(do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1")->outcome, STK_ASSIGN_OK);
    stk_op_assign *second = do_assign(r, "run-1", "asg-2", "wrk-2", "inc-2");
    assert_int_equal(second->outcome, STK_ASSIGN_ALREADY);
    assert_int_equal(second->lane, 0);
    assign_args first = {.run = "run-1", .assignment = "asg-1", .worker = "wrk-1", .incarnation = "inc-1"};
    stk_bytes record = {0};
    record_of(&first, &record);
    assert_true(stk_str_eq(stk_bytes_view(&record), stk_bytes_view(&second->record)));
    stk_bytes_done(&record);
    assert_int_equal(worker_of(r, "wrk-2")->used, 0);
    do_start(r, "run-1", "asg-1", "wrk-1", "inc-1");
    assert_int_equal(do_assign(r, "run-1", "asg-3", "wrk-2", "inc-2")->outcome, STK_ASSIGN_PASSED);
}

static void a_run_that_state_lost_can_be_assigned(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    assert_int_equal(do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1")->outcome, STK_ASSIGN_OK);
    stk_run_row *row = &do_get(r, "run-1")->row;
    assert_int_equal(row->state, STK_RUN_ASSIGNED);
    assert_int_equal(row->offset, 7);
    do_submit(r, "run-2", "acme", NULL, NULL, 0);
    assert_int_equal(do_assign(r, "run-2", "asg-2", "wrk-1", "inc-1")->outcome, STK_ASSIGN_OK);
    stk_op_counts *counts = do_counts(r);
    assert_int_equal(counts->by_state[STK_RUN_ASSIGNED], 2);
    assert_int_equal(counts->by_state[STK_RUN_SUBMITTED], 0);
}

static void only_a_live_worker_with_a_free_slot_is_given_a_run(void **state)
{
    rig *r = *state;
    do_queue(r, "run-1", "acme", 1);
    assert_int_equal(do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1")->outcome, STK_ASSIGN_NO_WORKER);
    do_join(r, "wrk-1", "inc-1", 1, 8);
    assert_int_equal(do_assign(r, "run-1", "asg-1", "wrk-1", "inc-9")->outcome, STK_ASSIGN_NO_WORKER);
    rig_advance(r, LEASE);
    assert_int_equal(do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1")->outcome, STK_ASSIGN_NO_WORKER);
    do_join(r, "wrk-1", "inc-1", 1, 8);
    assert_int_equal(do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1")->outcome, STK_ASSIGN_OK);
    assert_int_equal(do_assign(r, "run-2", "asg-2", "wrk-1", "inc-1")->outcome, STK_ASSIGN_NO_WORKER);
    assert_int_equal(ASSIGN(r, .run = "run-3", .assignment = "asg-3", .worker = "wrk-1",
                            .incarnation = "inc-1", .plan = true)
                         ->outcome,
                     STK_ASSIGN_OK);
    assert_int_equal(worker_of(r, "wrk-1")->used, 1);
    do_finish(r, "run-1", "asg-1", "exited");
    assert_int_equal(do_assign(r, "run-2", "asg-2", "wrk-1", "inc-1")->outcome, STK_ASSIGN_OK);
}

static void a_draining_worker_is_given_nothing(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    OP(heartbeat, HEARTBEAT);
    TEXT(op->in.worker, ID("wrk-1"));
    TEXT(op->in.incarnation, ID("inc-1"));
    op->in.lease = LEASE;
    op->in.slots = 4;
    op->in.draining = true;
    assert_int_equal(CALL_OK(r, op)->outcome, STK_HEARTBEAT_OK);
    assert_true(worker_of(r, "wrk-1")->draining);
    assert_int_equal(do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1")->outcome, STK_ASSIGN_NO_WORKER);
    do_heartbeat(r, "wrk-1", "inc-1");
    assert_int_equal(do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1")->outcome, STK_ASSIGN_OK);
}

static void the_running_cap_is_per_tenant(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 8, 8);
#define CAPPED(n, who)                                                                                       \
    ASSIGN(r, .run = "run-" n, .assignment = "asg-" n, .worker = "wrk-1", .incarnation = "inc-1",            \
           .tenant = who, .running_cap = 2)                                                                  \
        ->outcome
    assert_int_equal(CAPPED("1", "acme"), STK_ASSIGN_OK);
    assert_int_equal(CAPPED("2", "acme"), STK_ASSIGN_OK);
    assert_int_equal(CAPPED("3", "acme"), STK_ASSIGN_CAP);
    assert_int_equal(CAPPED("4", "zeta"), STK_ASSIGN_OK);
    do_start(r, "run-1", "asg-1", "wrk-1", "inc-1");
    assert_int_equal(CAPPED("3", "acme"), STK_ASSIGN_CAP);
    do_finish(r, "run-1", "asg-1", "exited");
    assert_int_equal(CAPPED("3", "acme"), STK_ASSIGN_OK);
}

static void start_needs_this_assignment_this_incarnation_and_a_live_lease(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    do_assign(r, "run-1", "asg-1", "wrk-1", "inc-1");
    assert_int_equal(do_start(r, "run-1", "asg-2", "wrk-1", "inc-1")->outcome, STK_START_STALE);
    assert_int_equal(do_start(r, "run-1", "asg-1", "wrk-2", "inc-1")->outcome, STK_START_STALE);
    assert_int_equal(do_start(r, "run-1", "asg-1", "wrk-1", "inc-2")->outcome, STK_START_STALE);
    assert_int_equal(do_start(r, "run-2", "asg-1", "wrk-1", "inc-1")->outcome, STK_START_STALE);
    rig_advance(r, LEASE);
    assert_int_equal(do_start(r, "run-1", "asg-1", "wrk-1", "inc-1")->outcome, STK_START_STALE);
    do_heartbeat(r, "wrk-1", "inc-1");
    assert_int_equal(do_start(r, "run-1", "asg-1", "wrk-1", "inc-1")->outcome, STK_START_OK);
    assert_int_equal(do_start(r, "run-1", "asg-1", "wrk-1", "inc-1")->outcome, STK_START_STALE);
    assert_int_equal(do_get(r, "run-1")->row.started.ns, 1700000002000000000);
}

static void assigning_takes_the_warm_sandbox_once(void **state)
{
    rig *r = *state;
    do_join(r, "wrk-1", "inc-1", 4, 8);
    do_put(r, "sbx-1", "tpl-a", "wrk-1", "inc-1");
#define WARM(n)                                                                                              \
    ASSIGN(r, .run = "run-" n, .assignment = "asg-" n, .worker = "wrk-1", .incarnation = "inc-1",            \
           .sandbox = "sbx-1")
    assert_int_equal(WARM("1")->outcome, STK_ASSIGN_OK);
    assert_string_equal(do_get(r, "run-1")->row.sandbox, ID("sbx-1"));
    assert_int_equal(WARM("2")->outcome, STK_ASSIGN_NO_SANDBOX);
    assert_false(do_get(r, "run-2")->found);
    assert_false(do_take(r, "sbx-1", "")->found);
    assert_int_equal(worker_of(r, "wrk-1")->used, 1);
}

SUITE(runs, CASE(a_run_passes_every_state_and_ends_once), CASE(a_repeated_key_meets_the_same_run),
      CASE(another_tenants_key_is_another_key), CASE(a_run_id_of_another_tenant_is_refused),
      CASE(the_cap_counts_unfinished_runs_of_the_tenant_alone),
      CASE(a_repeat_over_the_cap_is_still_the_same_run),
      CASE(malformed_names_are_refused_before_anything_is_written),
      CASE(labels_and_times_come_back_as_they_went_in),
      CASE(queueing_twice_changes_nothing_and_a_new_place_is_kept),
      CASE(a_request_that_state_does_not_know_is_queued),
      CASE(a_request_read_again_gets_the_stored_assignment_until_it_runs),
      CASE(assigning_twice_answers_the_first_record), CASE(a_run_that_state_lost_can_be_assigned),
      CASE(only_a_live_worker_with_a_free_slot_is_given_a_run), CASE(a_draining_worker_is_given_nothing),
      CASE(the_running_cap_is_per_tenant),
      CASE(start_needs_this_assignment_this_incarnation_and_a_live_lease),
      CASE(assigning_takes_the_warm_sandbox_once));
