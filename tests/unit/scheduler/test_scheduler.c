#include "tests/unit/scheduler/flow.h"

static void a_run_reaches_the_lane_of_a_worker_with_a_free_slot(void **state)
{
    rig *r = *state;
    char run[STK_ID_SIZE];
    hand w = rig_worker(r, 2, OCI, HOUR);
    rig_start(r);
    rig_submit(r, &(ask){0}, run);
    until_assigned(r, 1);
    stk_assignment asg;
    rig_assignment(r, 0, &asg);
    assert_string_equal(asg.kind, "assign");
    assert_string_equal(asg.run, run);
    assert_string_equal(asg.worker, w.id);
    assert_string_equal(asg.incarnation, w.incarnation);
    assert_string_equal(asg.backend, "oci");
    assert_string_equal(asg.sandbox, "");
    assert_int_equal(asg.attempt, 1);
    assert_int_equal(r->assignments.v[0].partition, w.lane);
    assert_int_equal(stk_id_time(stk_str_of(asg.assignment)).ns / 1000000, asg.assigned.ns / 1000000);
    assert_string_equal(rig_state(r, run), "assigned");
    stk_assignment_done(&asg);
}

static void a_warm_sandbox_is_taken_first(void **state)
{
    rig *r = *state;
    char run[STK_ID_SIZE], sandbox[STK_ID_SIZE];
    stk_agent_limits limits;
    rig_worker(r, 8, OCI, HOUR);
    hand warm = rig_worker(r, 2, OCI, HOUR);
    stk_agent_limits_default(&limits);
    stk_id_new("sbx", stk_wall_now(), sandbox);
    rig_pool_put(r, &warm, "t", &limits, sandbox);
    rig_start(r);
    rig_submit(r, &(ask){0}, run);
    until_assigned(r, 1);
    rig_submit(r, &(ask){0}, run);
    until_assigned(r, 2);
    stk_assignment first, second;
    rig_assignment(r, 0, &first);
    rig_assignment(r, 1, &second);
    assert_string_equal(first.sandbox, sandbox);
    assert_string_equal(first.worker, warm.id);
    assert_string_equal(second.sandbox, ""); /* it is used once */
    stk_assignment_done(&first);
    stk_assignment_done(&second);
}

/* It is one of them that was not taken before. */
static bool taken_once(char run[3][STK_ID_SIZE], const char *one)
{
    for (int i = 0; i < 3; i++)
        if (strcmp(run[i], one) == 0) {
            run[i][0] = '\0';
            return true;
        }
    return false;
}

static void what_does_not_fit_waits_for_the_wake_up(void **state)
{
    rig *r = *state;
    char run[3][STK_ID_SIZE];
    hand w = rig_worker(r, 1, OCI, HOUR);
    rig_start(r);
    for (int i = 0; i < 3; i++)
        rig_submit(r, &(ask){0}, run[i]);
    for (size_t i = 0; i < 3; i++) {
        until_assigned(r, i + 1);
        rig_turn(r, stk_ms(20));
        assert_int_equal(r->assignments.n, i + 1); /* one slot, one run */
        stk_assignment asg;
        rig_assignment(r, i, &asg);
        assert_true(taken_once(run, asg.run)); /* their partitions may be read in any order */
        assert_true(rig_begin(r, &w, &asg));
        int64_t ended = stk_mono_now().ns;
        assert_true(rig_end(r, &asg, "t"));
        if (i < 2) {
            until_assigned(r, i + 2);
            assert_true(stk_mono_now().ns - ended < stk_ms(900).ns); /* by the note, not by the sweep */
        }
        stk_assignment_done(&asg);
    }
}

static void a_worker_that_joins_gets_what_waits(void **state)
{
    rig *r = *state;
    char run[STK_ID_SIZE];
    rig_start(r);
    rig_submit(r, &(ask){0}, run);
    until_state(r, run, "queued");
    rig_worker(r, 1, OCI, HOUR);
    until_assigned(r, 1);
}

static void a_lacking_backend_is_refused_with_the_reason(void **state)
{
    rig *r = *state;
    char run[STK_ID_SIZE];
    rig_worker(r, 1, OCI, HOUR);
    rig_start(r);
    rig_submit(r, &(ask){.backend = "docker"}, run);
    until_state(r, run, "finished:refused");
    rig_until(r, event_there, run);
    assert_non_null(strstr(r->events.v[0].value, "backend_unavailable: docker: no docker daemon answers"));
    assert_int_equal(rig_rows(r, STK_AUDIT_REFUSAL, run), 1);
    assert_int_equal(r->assignments.n, 0);
}

static void an_agent_taken_off_while_queued_is_refused(void **state)
{
    rig *r = *state;
    char run[STK_ID_SIZE], kept[STK_ID_SIZE];
    rig_start(r); /* no worker: they wait */
    rig_submit(r, &(ask){0}, run);
    rig_submit(r, &(ask){.agent = "other"}, kept);
    until_state(r, run, "queued");
    until_state(r, kept, "queued");
    rig_config(r, "t", "{\"enabled\":true,\"agents\":{\"other\":{}}}");
    until_state(r, run, "finished:refused");
    rig_until(r, event_there, run);
    assert_int_equal(rig_rows(r, STK_AUDIT_REFUSAL, run), 1);
    assert_string_equal(rig_state(r, kept), "queued");
    rig_config(r, "t", "{\"enabled\":false,\"agents\":{\"other\":{}}}");
    until_state(r, kept, "finished:refused");
}

static void a_run_accepted_under_a_newer_configuration_waits_for_it(void **state)
{
    rig *r = *state;
    char run[STK_ID_SIZE];
    rig_worker(r, 1, OCI, HOUR);
    rig_start(r);
    rig_submit(r, &(ask){.agent = "late", .config_version = r->config_version + 1}, run);
    until_state(r, run, "queued");
    rig_turn(r, stk_ms(50));
    assert_string_equal(rig_state(r, run), "queued");
    rig_config(r, "t", "{\"enabled\":true,\"agents\":{\"late\":{}}}");
    until_assigned(r, 1);
}

static void a_deadline_passes_in_the_queue(void **state)
{
    rig *r = *state;
    char run[STK_ID_SIZE];
    rig_start(r);
    rig_submit(r, &(ask){.deadline = stk_ms(150)}, run);
    until_state(r, run, "finished:expired");
    rig_until(r, event_there, run);
    assert_int_equal(rig_rows(r, STK_AUDIT_REFUSAL, run) + rig_rows(r, STK_AUDIT_FAILURE, run), 0);
}

static void a_run_cancelled_in_the_queue_is_never_assigned(void **state)
{
    rig *r = *state;
    char run[STK_ID_SIZE], next[STK_ID_SIZE];
    rig_start(r);
    rig_submit(r, &(ask){0}, run);
    until_state(r, run, "queued");
    stk_op_cancel *op = stk_op_new(STK_OP_CANCEL, NULL, NULL);
    memcpy(op->in.run, run, sizeof(op->in.run));
    op->in.now = stk_wall_now();
    op = rig_call(r, op);
    assert_int_equal(op->outcome, STK_CANCEL_FINISHED);
    stk_op_free(&op->op);
    rig_submit(r, &(ask){0}, next);
    rig_worker(r, 2, OCI, HOUR);
    until_assigned(r, 1);
    rig_turn(r, stk_ms(30));
    assert_int_equal(rig_count(&r->assignments, run), 0);
    assert_int_equal(rig_count(&r->assignments, next), 1);
}

static void a_repeated_request_publishes_the_same_assignment_again(void **state)
{
    rig *r = *state;
    char run[STK_ID_SIZE];
    hand w = rig_worker(r, 4, OCI, HOUR);
    rig_start(r);
    char *text = rig_request(&(ask){0}, run);
    rig_publish(r, STK_TOPIC_REQUESTS, run, stk_str_of(text));
    until_assigned(r, 1);
    rig_publish(r, STK_TOPIC_REQUESTS, run, stk_str_of(text));
    until_assigned(r, 2);
    assert_string_equal(r->assignments.v[0].value, r->assignments.v[1].value);
    stk_assignment asg;
    rig_assignment(r, 0, &asg);
    assert_true(rig_begin(r, &w, &asg));
    rig_publish(r, STK_TOPIC_REQUESTS, run, stk_str_of(text)); /* from running on it is dropped */
    rig_turn(r, stk_ms(50));
    assert_int_equal(r->assignments.n, 2);
    stk_assignment_done(&asg);
    free(text);
}

static void a_restarted_scheduler_goes_on_where_the_other_stopped(void **state)
{
    rig *r = *state;
    char run[2][STK_ID_SIZE];
    rig_start(r);
    rig_submit(r, &(ask){0}, run[0]);
    until_state(r, run[0], "queued");
    rig_stop(r);
    rig_submit(r, &(ask){0}, run[1]);
    rig_worker(r, 4, OCI, HOUR);
    rig_start(r);
    until_assigned(r, 2);
    assert_int_equal(rig_count(&r->assignments, run[0]), 1);
    assert_int_equal(rig_count(&r->assignments, run[1]), 1);
    rig_stop(r);
    rig_start(r); /* and nothing is read twice */
    rig_turn(r, stk_ms(50));
    assert_int_equal(r->assignments.n, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_run_reaches_the_lane_of_a_worker_with_a_free_slot, setup, teardown),
        cmocka_unit_test_setup_teardown(a_warm_sandbox_is_taken_first, setup, teardown),
        cmocka_unit_test_setup_teardown(what_does_not_fit_waits_for_the_wake_up, setup, teardown),
        cmocka_unit_test_setup_teardown(a_worker_that_joins_gets_what_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(a_lacking_backend_is_refused_with_the_reason, setup, teardown),
        cmocka_unit_test_setup_teardown(an_agent_taken_off_while_queued_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_accepted_under_a_newer_configuration_waits_for_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_deadline_passes_in_the_queue, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_cancelled_in_the_queue_is_never_assigned, setup, teardown),
        cmocka_unit_test_setup_teardown(a_repeated_request_publishes_the_same_assignment_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_restarted_scheduler_goes_on_where_the_other_stopped, setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
