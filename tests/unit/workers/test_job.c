/* A run on its way through a worker: the order of its steps, each step's failure, cancels and losses at each
 * of them. Whatever happens: as many teardown rows as launch rows, no sandbox left, the job ends. */
#include "tests/unit/workers/rig.h"

#define EXIT(members) "{\"exit\":{" members "}}\n"
#define EXIT_OF(code, signal, more)                                                                          \
    EXIT("\"exit_code\":" code ",\"signal\":" signal                                                         \
         ",\"truncated\":false,\"duration_ms\":3,\"stdout_bytes\":6,"                                        \
         "\"stderr_bytes\":0," more)
#define PLAIN "\"timed_out\":false,\"oom_killed\":false"

static rig *begin(void)
{
    rig *r = rig_new();
    rig_job(r, "", "never");
    return r;
}

/* The job has ended: what must hold always. */
static void end(rig *r)
{
    rig_until_done(r);
    assert_int_equal(r->jobs_done, 1);
    assert_int_equal(rig_noted(r, "launch"), rig_noted(r, "teardown"));
    assert_int_equal(r->be.made, r->be.destroyed);
    assert_true(rig_noted(r, "execute") <= 1);
    if (rig_noted(r, "execute"))
        assert_true(rig_before(r, "launch", "execute"));
    if (rig_noted(r, "launch"))
        assert_true(rig_before(r, "launch", "teardown"));
    rig_free(r);
}

static void a_run_goes_through_its_steps_in_their_order(void **state)
{
    static const char *const order[] = {"create", "health",        "policy", "launch",  "start",   "execute",
                                        "drain",  "result:exited", "finish", "destroy", "teardown"};
    rig *r = begin();
    rig_until_done(r);
    for (size_t i = 1; i < STK_COUNT(order); i++)
        if (!rig_before(r, order[i - 1], order[i]))
            fail_msg("%s is not before %s: %s", order[i - 1], order[i], rig_story(r));
    assert_true(rig_before(r, "finish", "finished:exited"));
    assert_string_equal(rig_state(r, r->event.run), "finished:exited");
    end(r);
}

static void output_and_exit_status_come_with_the_result(void **state)
{
    rig *r = rig_new();
    stk_result_secret secret = {0};
    stk_err err;
    r->be.answer = "{\"stdout\":\"aGVsbG8K\"}\n{\"stderr\":\"b29wcwo=\"}\n" EXIT_OF("3", "0", PLAIN);
    rig_job(r, "", "never");
    rig_until_done(r);
    assert_int_equal(r->event.exit_code, 3);
    assert_int_equal(stk_event_open(&r->event, r->ring, &secret, &err), 0);
    assert_int_equal(secret.stdout_data.n, 6);
    assert_memory_equal(secret.stdout_data.p, "hello\n", 6);
    assert_memory_equal(secret.stderr_data.p, "oops\n", 5);
    stk_result_secret_done(&secret);
    end(r);
}

static void what_the_runtime_says_becomes_the_reason(void **state)
{
    static const struct {
        const char *answer, *finished;
        int64_t oom, exit_code;
    } rows[] = {
        {EXIT_OF("0", "0", PLAIN), "finished:exited", 0, 0},
        {EXIT_OF("127", "0", PLAIN), "finished:exited", 0, 127},
        {EXIT_OF("139", "11", PLAIN), "finished:signaled", 0, 139},
        {EXIT_OF("137", "9", PLAIN), "finished:signaled", 0, 137},
        {EXIT_OF("137", "9", PLAIN), "finished:oom", 1, 137},
        {EXIT_OF("137", "9", "\"timed_out\":false,\"oom_killed\":true"), "finished:oom", -1, 137},
        {EXIT_OF("1", "0", PLAIN), "finished:exited", 2, 1},
        {EXIT_OF("124", "9", "\"timed_out\":true,\"oom_killed\":false"), "finished:timeout", 0, 124},
        {"", "finished:sandbox_failed", 0, 0},
        {"{\"stdout\":\"aGVsbG8K\"}\n", "finished:sandbox_failed", 0, 0},
        {"{\"stdout\":\"!!\"}\n", "finished:sandbox_failed", 0, 0},
        {"[1]\n", "finished:sandbox_failed", 0, 0},
        {EXIT_OF("999", "0", PLAIN), "finished:sandbox_failed", 0, 0},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        rig *r = rig_new();
        r->be.answer = rows[i].answer;
        r->be.oom = rows[i].oom;
        rig_job(r, "", "never");
        rig_until_done(r);
        if (!rig_noted(r, rows[i].finished))
            fail_msg("row %zu: %s", i, rig_story(r));
        assert_int_equal(r->event.exit_code, rows[i].exit_code);
        assert_true(r->event.oom_killed == (rows[i].oom > 0 || rows[i].oom < 0));
        end(r);
    }
}

/* One thing goes wrong on the way. */
typedef struct failing {
    const char *name;
    fake_act create, health, policy, execute, drain;
    const char *refuse; /* this message, once */
    stk_op_kind fail;   /* this operation, `failures` times */
    int failures;
    const char *state; /* the run's, at the end */
    bool launched, executed;
    const char *retry;
} failing;

static const failing failures[] = {
    {"no sandbox can be made", .create = FAKE_BAD, .state = "queued"},
    {"the runtime does not answer its health check", .health = FAKE_DIE, .state = "queued"},
    {"the runtime is unwell", .health = FAKE_BAD, .state = "queued"},
    {"the proxy refuses the policy", .policy = FAKE_BAD, .state = "finished:refused"},
    {"the proxy speaks nonsense", .policy = FAKE_JUNK, .state = "queued"},
    {"the proxy ends instead of taking the policy", .policy = FAKE_DIE, .state = "queued"},
    {"the launch row is refused", .refuse = "launch", .state = "queued"},
    {"state does not take the start", .fail = STK_OP_START, .failures = 1, .state = "queued",
     .launched = true},
    {"the runtime refuses the command", .execute = FAKE_BAD, .state = "finished:refused", .launched = true,
     .executed = true},
    {"the runtime dies with the command", .execute = FAKE_DIE, .state = "finished:sandbox_failed",
     .launched = true, .executed = true},
    {"the runtime dies, and it may be repeated", .execute = FAKE_DIE, .state = "queued", .launched = true,
     .executed = true, .retry = "always"},
    {"the runtime answers nonsense", .execute = FAKE_JUNK, .state = "finished:sandbox_failed",
     .launched = true, .executed = true},
    {"the proxy ends at the drain", .drain = FAKE_DIE, .state = "finished:exited", .launched = true,
     .executed = true},
    {"the result is refused for a while", .refuse = "result:exited", .state = "finished:exited",
     .launched = true, .executed = true},
    {"state does not take the verdict for a while", .fail = STK_OP_FINISH, .failures = 3,
     .state = "finished:exited", .launched = true, .executed = true},
    {"the verdict's event is refused", .refuse = "finished:exited", .state = "finished:exited",
     .launched = true, .executed = true},
    {"the teardown row is refused for a while", .refuse = "teardown", .state = "finished:exited",
     .launched = true, .executed = true},
    {"state does not take it back for a while", .create = FAKE_BAD, .fail = STK_OP_REQUEUE, .failures = 2,
     .state = "queued"},
};

static void each_steps_failure_has_its_end(void **state)
{
    for (size_t i = 0; i < STK_COUNT(failures); i++) {
        const failing *f = &failures[i];
        rig *r = rig_new();
        char run[STK_ID_SIZE];
        r->be.create = f->create;
        r->be.health = f->health;
        r->be.policy = f->policy;
        r->be.execute = f->execute;
        r->be.drain = f->drain;
        snprintf(r->refuse, sizeof(r->refuse), "%s", f->refuse ? f->refuse : "");
        r->refusals = f->refuse != NULL;
        r->fail = f->fail;
        r->failures = f->failures;
        rig_job(r, "", f->retry ? f->retry : "never");
        snprintf(run, sizeof(run), "%s", stk_job_run(r->job));
        rig_until_done(r);
        if (strcmp(rig_state(r, run), f->state) != 0 || (rig_noted(r, "execute") > 0) != f->executed ||
            (rig_noted(r, "launch") > 0) != f->launched)
            fail_msg("%s: %s, %s", f->name, rig_state(r, run), rig_story(r));
        end(r);
    }
}

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
        end(r);
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
        end(r);
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
            end(r);
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
    end(r);
}

static void a_policy_that_is_refused_while_the_command_runs_ends_it(void **state)
{
    char run[STK_ID_SIZE];
    rig *r = at_step(&steps[5], "never", run);
    r->be.policy = FAKE_BAD;
    stk_job_policy_changed(r->job);
    rig_until_done(r);
    assert_string_equal(rig_state(r, run), "finished:refused");
    end(r);
}

static void an_agent_that_was_taken_off_the_list_has_no_network_from_then_on(void **state)
{
    char run[STK_ID_SIZE];
    rig *r = at_step(&steps[5], "never", run);
    assert_non_null(strstr(r->be.policy_text, "pypi.org"));
    r->be.policy_text[0] = '\0';
    r->nnotes = 0;
    rig_config(r, STK_CONF_AGENT_SANDBOX, "{\"enabled\":true,\"agents\":{}}");
    stk_job_policy_changed(r->job);
    rig_until_noted(r, "policy");
    assert_null(strstr(r->be.policy_text, "pypi.org"));
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
    end(r);
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
    end(r);
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
    end(r);
}

/* --- warm sandboxes */

static void on_warm_ready(stk_box *box, const stk_err *err, void *arg)
{
    rig *r = arg;
    assert_null(err);
    r->warm = box;
}

static void on_warm_lost(stk_box *box, bool oom, const char *why, void *arg)
{
    fail_msg("lost: %s", why);
}

static bool is_warm(rig *r, void *arg)
{
    return r->warm != NULL;
}

static void warm_up(rig *r)
{
    static const stk_box_ops ops = {.on_ready = on_warm_ready, .on_lost = on_warm_lost};
    stk_sandbox_spec spec = {.max_concurrent = 1};
    stk_box *box;
    stk_err err;
    stk_id_new("sbx", stk_wall_now(), spec.id);
    assert_int_equal(stk_box_new(r->loop, r->ctx.syncer, &r->be.be, &spec, stk_sec(5), &ops, r, &box, &err),
                     0);
    rig_until(r, is_warm, NULL);
}

static void a_warm_sandbox_is_asked_again_and_used(void **state)
{
    rig *r = rig_new();
    warm_up(r);
    rig_job(r, "sbx-00000000000000000000000000", "never");
    rig_until_done(r);
    assert_true(r->event.warm);
    assert_int_equal(r->be.made, 1);
    assert_int_equal(rig_noted(r, "health"), 2);
    end(r);
}

static void a_warm_sandbox_that_is_dead_is_replaced_for_the_same_run(void **state)
{
    static const fake_act ways[] = {FAKE_DIE, FAKE_BAD, FAKE_JUNK};
    for (size_t i = 0; i < STK_COUNT(ways); i++) {
        rig *r = rig_new();
        warm_up(r);
        if (i == 2) {
            r->be.policy = FAKE_DIE;
        } else {
            r->be.health = ways[i];
        }
        rig_job(r, "sbx-00000000000000000000000000", "never");
        rig_until_noted(r, "destroy");
        r->be.health = r->be.policy = FAKE_OK;
        rig_until_done(r);
        assert_int_equal(r->be.made, 2);
        assert_false(r->event.warm);
        assert_string_equal(r->event.reason, "exited");
        end(r);
    }
}

static void a_warm_sandbox_that_is_not_here_is_made(void **state)
{
    rig *r = rig_new();
    rig_job(r, "sbx-00000000000000000000000000", "never");
    rig_until_done(r);
    assert_int_equal(r->be.made, 1);
    assert_string_equal(r->event.reason, "exited");
    end(r);
}

/* --- evidence */

#define RECORD(seq, verdict, reason, more)                                                                   \
    "{\"kind\":\"record\",\"body\":{\"seq\":" seq                                                            \
    ",\"kind\":\"decision\",\"time\":\"2026-01-01T00:00:00.000Z\",\"run\":\"\","                             \
    "\"host\":\"pypi.org\",\"port\":443,\"verdict\":\"" verdict "\",\"reason\":\"" reason                    \
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
    end(r);
}

static void output_whose_bytes_all_need_escapes_does_not_cost_the_verdict(void **state)
{
    static char answer[2 * 700000];
    size_t n = 0;
    for (int stream = 0; stream < 2; stream++)
        for (int block = 0; block < 8; block++) { /* 32 KiB of NUL each */
            n += (size_t)snprintf(answer + n, sizeof(answer) - n, "{\"%s\":\"", stream ? "stderr" : "stdout");
            memset(answer + n, 'A', 43688);
            n += 43688;
            n += (size_t)snprintf(answer + n, sizeof(answer) - n, "\"}\n");
        }
    snprintf(answer + n, sizeof(answer) - n, "%s", EXIT_OF("0", "0", PLAIN));
    rig *r = rig_new();
    r->be.answer = answer;
    rig_job(r, "", "never");
    rig_until_done(r);
    assert_string_equal(rig_state(r, r->event.run), "finished:exited");
    end(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_goes_through_its_steps_in_their_order),
        cmocka_unit_test(output_and_exit_status_come_with_the_result),
        cmocka_unit_test(what_the_runtime_says_becomes_the_reason),
        cmocka_unit_test(each_steps_failure_has_its_end),
        cmocka_unit_test(a_cancel_at_each_step_ends_it_as_cancelled),
        cmocka_unit_test(a_sandbox_that_is_lost_at_each_step_is_repeated_only_before_the_command),
        cmocka_unit_test(an_abandoned_run_is_given_back_or_is_lost),
        cmocka_unit_test(memory_that_ran_out_in_the_first_process_is_out_of_memory),
        cmocka_unit_test(a_policy_that_is_refused_while_the_command_runs_ends_it),
        cmocka_unit_test(an_agent_that_was_taken_off_the_list_has_no_network_from_then_on),
        cmocka_unit_test(a_list_that_changes_before_the_start_refuses_it),
        cmocka_unit_test(a_lease_that_ends_before_the_command_starts_nothing),
        cmocka_unit_test(an_assignment_that_is_another_workers_by_now_changes_nothing),
        cmocka_unit_test(a_warm_sandbox_is_asked_again_and_used),
        cmocka_unit_test(a_warm_sandbox_that_is_dead_is_replaced_for_the_same_run),
        cmocka_unit_test(a_warm_sandbox_that_is_not_here_is_made),
        cmocka_unit_test(every_refusal_and_each_first_allow_is_a_row_and_in_the_result),
        cmocka_unit_test(output_whose_bytes_all_need_escapes_does_not_cost_the_verdict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
