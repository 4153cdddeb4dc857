/* Runs through the API, from the request to the answer. */
#include "tests/unit/gateway/fixture.h"

#define RUN "/api/admin/platform/agent-sandbox/run"
#define CFG "/api/admin/platform/agent-sandbox"

static int setup(void **state)
{
    fx *f = fx_new(false);
    fx_start(f);
    fleet_start(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fx_free(*state);
    return 0;
}

static void nothing_runs_while_the_feature_is_off(void **state)
{
    fx *f = *state;
    reply *r = fx_expect(f, 409, "POST", RUN, "", "{\"agent\":\"helper\",\"command\":[\"true\"]}");
    assert_string_equal(reply_text(r, "code"), "not_sandboxed");
    assert_non_null(strstr(reply_text(r, "detail"), "nothing changed"));
    assert_non_null(strstr(reply_text(r, "detail"), "PUT " CFG));
    fx_enable(f);
    r = fx_expect(f, 409, "POST", RUN, "", "{\"agent\":\"other\",\"command\":[\"true\"]}");
    assert_string_equal(reply_text(r, "code"), "not_sandboxed");
    fx_expect(f, 202, "POST", "/v1/runs", "", "{\"agent\":\"helper\",\"command\":[\"true\"]}");
    fx_until(f, f->fleet.requests);
    assert_int_equal(f->fleet.requests, 1);
}

static void a_run_is_waited_for_and_answered_with_its_output(void **state)
{
    fx *f = *state;
    f->fleet.out = "hello\n";
    f->fleet.err = "warn\n";
    f->fleet.exit_code = 3;
    fx_enable(f);
    reply *r = fx_expect(f, 200, "POST", RUN, "",
                         "{\"agent\":\"helper\",\"command\":\"echo 'a b'\",\"env\":{\"KEY\":\"v\"}}");
    assert_string_equal(reply_text(r, "reason"), "exited");
    assert_int_equal(reply_int(r, "exit_code"), 3);
    assert_string_equal(reply_text(r, "stdout_tail"), "hello\n");
    assert_string_equal(reply_text(r, "stderr_tail"), "warn\n");
    assert_string_equal(reply_text(r, "egress/0/host"), "evil.example");
    assert_string_equal(reply_text(r, "run_id"), f->fleet.last_run);
    assert_int_equal(f->fleet.secret.command.n, 2);
    assert_string_equal(f->fleet.secret.command.v[1].p, "a b");
    assert_string_equal(f->fleet.last.actor, "local");
    assert_string_equal(f->fleet.last.backend, "auto");
    assert_int_equal(f->fleet.last.config_version, 1);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(nothing_runs_while_the_feature_is_off),
        T(a_run_is_waited_for_and_answered_with_its_output),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
