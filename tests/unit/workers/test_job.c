/* A run on its way through a worker: the order of its steps, each step's failure, cancels and losses at each
 * of them. Whatever happens: as many teardown rows as launch rows, no sandbox left, the job ends. */
#include "tests/unit/workers/rig.h"

static rig *begin(void)
{
    rig *r = rig_new();
    rig_job(r, "", "never");
    return r;
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
    rig_end_job(r);
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
    rig_end_job(r);
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
        rig_end_job(r);
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
        rig_end_job(r);
    }
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
    rig_end_job(r);
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
        rig_end_job(r);
    }
}

static void a_warm_sandbox_that_is_not_here_is_made(void **state)
{
    rig *r = rig_new();
    rig_job(r, "sbx-00000000000000000000000000", "never");
    rig_until_done(r);
    assert_int_equal(r->be.made, 1);
    assert_string_equal(r->event.reason, "exited");
    rig_end_job(r);
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
    rig_end_job(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_goes_through_its_steps_in_their_order),
        cmocka_unit_test(output_and_exit_status_come_with_the_result),
        cmocka_unit_test(what_the_runtime_says_becomes_the_reason),
        cmocka_unit_test(each_steps_failure_has_its_end),
        cmocka_unit_test(a_warm_sandbox_is_asked_again_and_used),
        cmocka_unit_test(a_warm_sandbox_that_is_dead_is_replaced_for_the_same_run),
        cmocka_unit_test(a_warm_sandbox_that_is_not_here_is_made),
        cmocka_unit_test(output_whose_bytes_all_need_escapes_does_not_cost_the_verdict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
