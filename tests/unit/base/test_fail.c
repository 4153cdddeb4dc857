#include "proto/base/fail.h"
#include "proto/base/fd.h"
#include "proto/base/time.h"
#include "tests/unit/base/test.h"
#include <signal.h>
#include <sys/wait.h>

static void arm(const char *points, const char *log)
{
    if (points)
        setenv("STK_FAILPOINTS", points, 1);
    else
        unsetenv("STK_FAILPOINTS");
    if (log)
        setenv("STK_FAILPOINT_LOG", log, 1);
    else
        unsetenv("STK_FAILPOINT_LOG");
    stk_err err;
    if (stk_failpoints_init(&err) < 0)
        fail_msg("%s", err.detail);
}

static void unarmed_points_do_nothing(void **state)
{
    stk_err err = {.code = STK_OK};
    arm(NULL, NULL);
    assert_int_equal(stk_failpoint("a.b", &err), 0);
    arm("", NULL);
    assert_int_equal(stk_failpoint("a.b", &err), 0);
    arm("a.c=error", NULL);
    assert_int_equal(stk_failpoint("a.b", &err), 0);
    assert_int_equal(err.code, STK_OK);
}

static void an_error_comes_at_every_hit_or_at_the_nth_only(void **state)
{
    stk_err err;
    arm("a=error,b=error@3", NULL);
    for (int i = 1; i <= 5; i++) {
        assert_int_equal(stk_failpoint("a", &err), -STK_E_INJECTED);
        assert_non_null(strstr(err.detail, "a"));
        assert_int_equal(stk_failpoint("b", &err), i == 3 ? -STK_E_INJECTED : 0);
    }
}

static void a_malformed_list_is_a_configuration_error_that_quotes_it(void **state)
{
    static const char *const rows[] = {
        "a",
        "a=",
        "=kill",
        "a=boom",
        "a=kill@",
        "a=kill@0",
        "a=kill@x",
        "a=sleep",
        "a=sleep:",
        "a=sleep:1s",
        "a=kill,,b=kill",
        "a=kill@99999999999",
        "a=kil",
        "a=error@-1",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=kill",
        "a=kill,a=kill,a=kill,a=kill,a=kill,a=kill,a=kill,a=kill,a=kill,a=kill,a=kill,a=kill,a=kill,a=kill,a="
        "kill,a=kill,a=kill",
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_err err;
        setenv("STK_FAILPOINTS", rows[i], 1);
        if (stk_failpoints_init(&err) != -STK_E_CONFIG)
            fail_msg("accepted: %s", rows[i]);
        assert_false(stk__failpoints_armed);
        assert_int_equal(strncmp(err.detail, "STK_FAILPOINTS: '", 17), 0);
    }
}

static void kill_and_stop_act_and_the_log_was_written_before(void **state)
{
    char log[] = "/tmp/stk-test-fail-XXXXXX";
    int fd = mkstemp(log);
    pid_t pid = fork();
    if (pid == 0) {
        arm("before=stop,here=kill@2", log);
        (void)!stk_failpoint("before", NULL);
        (void)!stk_failpoint("here", NULL);
        (void)!stk_failpoint("here", NULL);
        _exit(0);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
    kill(pid, SIGCONT);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    char want[200];
    snprintf(want, sizeof(want), "before 1 %d\nhere 1 %d\nhere 2 %d\n", (int)pid, (int)pid, (int)pid);
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(1000);
    assert_int_equal(stk_file_read(log, &out, NULL), 0);
    assert_string_equal(out.p, want);
    close(fd);
    unlink(log);
}

static void sleep_takes_its_time_and_goes_on(void **state)
{
    arm("a=sleep:30", NULL);
    stk_mono begin = stk_mono_now();
    assert_int_equal(stk_failpoint("a", NULL), 0);
    assert_true(stk_mono_sub(stk_mono_now(), begin).ns >= 30 * 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unarmed_points_do_nothing),
        cmocka_unit_test(an_error_comes_at_every_hit_or_at_the_nth_only),
        cmocka_unit_test(a_malformed_list_is_a_configuration_error_that_quotes_it),
        cmocka_unit_test(kill_and_stop_act_and_the_log_was_written_before),
        cmocka_unit_test(sleep_takes_its_time_and_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
