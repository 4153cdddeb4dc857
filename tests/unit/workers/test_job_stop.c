/* Cancels, losses and other ends of a run from outside, at each of its steps. */
#include "tests/unit/workers/rig.h"

/* --- cancels and losses at each step */

typedef struct step {
    const char *name, *noted; /* this was noted last */
    fake_act create, health, policy, execute;
    stk_op_kind hold;
    bool holding;
} step;

static const step steps[] = {
    {"before anything", .noted = NULL},
    {"while it is made", .noted = "create", .create = FAKE_HOLD},
    {"while the runtime is asked", .noted = "health", .health = FAKE_HOLD},
    {"while the policy is on its way", .noted = "policy", .policy = FAKE_HOLD},
    {"while state starts it", .noted = "launch", .hold = STK_OP_START, .holding = true},
    {"while the command runs", .noted = "execute", .execute = FAKE_HOLD},
};

static rig *at_step(const step *s, const char *retry, char run[STK_ID_SIZE])
{
    rig *r = rig_new();
    r->be.create = s->create;
    r->be.health = s->health;
    r->be.policy = s->policy;
    r->be.execute = s->execute;
    r->hold = s->hold;
    r->holding = s->holding;
    rig_job(r, "", retry);
    snprintf(run, STK_ID_SIZE, "%s", stk_job_run(r->job));
    if (s->noted)
        rig_until_noted(r, s->noted);
    return r;
}

static void go_on(rig *r, const step *s)
{
    if (s->create == FAKE_HOLD) {
        r->be.create = FAKE_OK;
        fake_create_now(&r->be);
    }
    if (s->holding)
        rig_release(r);
}

static void a_cancel_at_each_step_ends_it_as_cancelled(void **state)
{
    for (size_t i = 0; i < STK_COUNT(steps); i++) {
        char run[STK_ID_SIZE];
        rig *r = at_step(&steps[i], "never", run);
        if (steps[i].health == FAKE_HOLD) { /* it is not reachable yet: it is seen when it is */
            stk_job_cancel(r->job);
            fake_lose(r->be.first, false);
        } else {
            stk_job_cancel(r->job);
            go_on(r, &steps[i]);
        }
        rig_until_done(r);
        const char *right = steps[i].health == FAKE_HOLD ? "queued" : "finished:cancelled";
        if (strcmp(rig_state(r, run), right) != 0)
            fail_msg("cancelled %s: %s, %s", steps[i].name, rig_state(r, run), rig_story(r));
        rig_end_job(r);
    }
}

static void a_sandbox_that_is_lost_at_each_step_is_repeated_only_before_the_command(void **state)
{
    for (size_t i = 2; i < STK_COUNT(steps); i++) {
        char run[STK_ID_SIZE];
        rig *r = at_step(&steps[i], "never", run);
        fake_lose(r->be.first, false);
        go_on(r, &steps[i]);
        rig_until_done(r);
        const char *right = steps[i].execute == FAKE_HOLD ? "finished:sandbox_failed" : "queued";
        if (strcmp(rig_state(r, run), right) != 0)
            fail_msg("lost %s: %s, %s", steps[i].name, rig_state(r, run), rig_story(r));
        rig_end_job(r);
    }
}

static void an_abandoned_run_is_given_back_or_is_lost(void **state)
{
    for (size_t i = 0; i < STK_COUNT(steps); i++)
        for (int always = 0; always < 2; always++) {
            char run[STK_ID_SIZE];
            rig *r = at_step(&steps[i], always ? "always" : "never", run);
            stk_job_abandon(r->job, "the worker stops");
            go_on(r, &steps[i]);
            if (steps[i].health == FAKE_HOLD)
                fake_lose(r->be.first, false);
            rig_until_done(r);
            bool running = steps[i].execute == FAKE_HOLD;
            if (strcmp(rig_state(r, run), running && !always ? "finished:worker_lost" : "queued") != 0)
                fail_msg("abandoned %s: %s, %s", steps[i].name, rig_state(r, run), rig_story(r));
            rig_end_job(r);
        }
}

static void memory_that_ran_out_in_the_first_process_is_out_of_memory(void **state)
{
    char run[STK_ID_SIZE];
    rig *r = at_step(&steps[5], "never", run);
    fake_lose(r->be.first, true);
    rig_until_done(r);
    assert_string_equal(rig_state(r, run), "finished:oom");
    assert_int_equal(r->event.exit_code, 137);
    assert_int_equal(r->event.signal, 9);
    rig_end_job(r);
}

static void a_policy_that_is_refused_while_the_command_runs_ends_it(void **state)
{
    char run[STK_ID_SIZE];
    rig *r = at_step(&steps[5], "never", run);
    r->be.policy = FAKE_BAD;
    stk_job_policy_changed(r->job);
    rig_until_done(r);
    assert_string_equal(rig_state(r, run), "finished:refused");
    rig_end_job(r);
}

static void an_agent_that_was_taken_off_the_list_has_no_network_from_then_on(void **state)
{
    char run[STK_ID_SIZE];
    rig *r = at_step(&steps[5], "never", run);
    assert_non_null(strstr(r->be.policy_text, "api.vendor.com"));
    r->be.policy_text[0] = '\0';
    r->nnotes = 0;
    rig_config(r, STK_CONF_AGENT_SANDBOX, "{\"enabled\":true,\"agents\":{}}");
    stk_job_policy_changed(r->job);
    rig_until_noted(r, "policy");
    assert_null(strstr(r->be.policy_text, "api.vendor.com"));
    stk_job_cancel(r->job);
    rig_until_done(r);
    rig_note(r, "launch"); /* that of before the notes were dropped */
    r->notes[r->nnotes - 1][0] = '\0';
    assert_int_equal(rig_noted(r, "teardown"), 1);
    rig_free(r);
}

static void a_list_that_changes_before_the_start_refuses_it(void **state)
{
    char run[STK_ID_SIZE];
    rig *r = at_step(&steps[3], "never", run);
    rig_config(r, STK_CONF_AGENT_SANDBOX, "{\"enabled\":false,\"agents\":{\"helper\":{}}}");
    stk_job_policy_changed(r->job);
    rig_until_done(r);
    assert_string_equal(rig_state(r, run), "finished:refused");
    rig_end_job(r);
}

static void a_lease_that_ends_before_the_command_starts_nothing(void **state)
{
    char run[STK_ID_SIZE];
    rig *r = at_step(&steps[4], "never", run);
    r->ctx.lease_until = stk_mono_now();
    rig_release(r);
    rig_until_done(r);
    assert_string_equal(rig_state(r, run), "queued");
    assert_int_equal(rig_noted(r, "execute"), 0);
    rig_end_job(r);
}

static void an_assignment_that_is_another_workers_by_now_changes_nothing(void **state)
{
    char run[STK_ID_SIZE];
    rig *r = at_step(&steps[4], "never", run);
    stk_op_start *op = (stk_op_start *)r->held;
    snprintf(op->in.assignment, sizeof(op->in.assignment), "asg-%026d", 7);
    rig_release(r);
    rig_until_done(r);
    assert_string_equal(rig_state(r, run), "assigned");
    assert_int_equal(rig_noted(r, "finish") + rig_noted(r, "requeue") + rig_noted(r, "execute"), 0);
    rig_end_job(r);
}

/* --- evidence */

#define RECORD(seq, verdict, reason, more)                                                                   \
    "{\"kind\":\"record\",\"body\":{\"seq\":" seq                                                            \
    ",\"kind\":\"decision\",\"time\":\"2026-01-01T00:00:00.000Z\",\"run\":\"\","                             \
    "\"host\":\"api.vendor.com\",\"port\":443,\"verdict\":\"" verdict "\",\"reason\":\"" reason              \
    "\",\"rule\":\"\","                                                                                      \
    "\"policy_version\":1,\"address\":\"\",\"method\":\"CONNECT\",\"bytes_in\":0,\"bytes_out\":0,"           \
    "\"duration_ms\":0" more "}}\n"

static void every_refusal_and_each_first_allow_is_a_row_and_in_the_result(void **state)
{
    char run[STK_ID_SIZE];
    rig *r = at_step(&steps[5], "never", run);
    fake_proxy_says(r->be.first, RECORD("1", "deny", "host_not_allowed", ""));
    fake_proxy_says(r->be.first, RECORD("2", "allow", "allowed", ",\"first\":true"));
    fake_proxy_says(r->be.first, RECORD("3", "allow", "allowed", ""));
    rig_until_noted(r, "ack");
    fake_command_says(r->be.first, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" EXIT_OF("0", "0", PLAIN));
    rig_until_done(r);
    assert_int_equal(rig_noted(r, "deny"), 1);
    assert_int_equal(rig_noted(r, "allow"), 1);
    assert_int_equal(r->event.egress_allowed, 2);
    assert_int_equal(r->event.egress_denied, 1);
    assert_int_equal(r->event.egress_last_seq, 3);
    rig_end_job(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancel_at_each_step_ends_it_as_cancelled),
        cmocka_unit_test(a_sandbox_that_is_lost_at_each_step_is_repeated_only_before_the_command),
        cmocka_unit_test(an_abandoned_run_is_given_back_or_is_lost),
        cmocka_unit_test(memory_that_ran_out_in_the_first_process_is_out_of_memory),
        cmocka_unit_test(a_policy_that_is_refused_while_the_command_runs_ends_it),
        cmocka_unit_test(an_agent_that_was_taken_off_the_list_has_no_network_from_then_on),
        cmocka_unit_test(a_list_that_changes_before_the_start_refuses_it),
        cmocka_unit_test(a_lease_that_ends_before_the_command_starts_nothing),
        cmocka_unit_test(an_assignment_that_is_another_workers_by_now_changes_nothing),
        cmocka_unit_test(every_refusal_and_each_first_allow_is_a_row_and_in_the_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
