#include "proto/base/fd.h"
#include "tests/unit/base/proc_fixture.h"
#include <signal.h>

typedef struct collected {
    stk_proc_end end;
    bool timed_out;
    size_t out_n, err_n;
    char out[64], errout[64];
} collected;

static void on_collected(const stk_proc_end *end, bool timed_out, stk_str out, stk_str errout, void *arg)
{
    collected *c = arg;
    c->end = *end;
    c->timed_out = timed_out;
    c->out_n = out.n;
    c->err_n = errout.n;
    snprintf(c->out, sizeof(c->out), "%.*s", (int)stk_min(out.n, 60), out.n ? out.p : "");
    snprintf(c->errout, sizeof(c->errout), "%.*s", (int)stk_min(errout.n, 60), errout.n ? errout.p : "");
    stk_loop_stop(loop);
}

static collected collect(const char *script, stk_str input, stk_span limit)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    collected c = {.out_n = 0};
    stk_err err;
    assert_int_equal(stk_proc_collect(loop, &(stk_proc_spec){.path = sh, .argv = argv}, input, 1000, limit,
                                      on_collected, &c, &err),
                     0);
    run_loop();
    return c;
}

static void both_outputs_are_collected_and_input_is_given(void **state)
{
    collected c = collect("cat; echo oops >&2; exit 3", S("hello\n"), stk_sec(patience_s));
    assert_int_equal(c.end.status, 3);
    assert_false(c.timed_out);
    assert_string_equal(c.out, "hello\n");
    assert_string_equal(c.errout, "oops\n");
}

static void output_past_the_cap_is_dropped_and_does_not_block_the_child(void **state)
{
    collected c = collect("head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; exit 4", S(""),
                          stk_sec(patience_s));
    assert_int_equal(c.end.status, 4);
    assert_int_equal(c.out_n, 1000);
    assert_int_equal(c.err_n, 1000);
}

static void input_that_nobody_reads_does_no_harm(void **state)
{
    char *big STK_AUTO(stk_freep) = stk_xcalloc(1, 1000000);
    collected c = collect("exit 5", stk_str_n(big, 1000000), stk_sec(patience_s));
    assert_int_equal(c.end.status, 5);
}

static void a_deadline_kills_the_child_and_its_group(void **state)
{
    collected c = collect("sleep 100 & echo $!; wait", S(""), stk_ms(100));
    assert_true(c.timed_out);
    assert_false(c.end.exited);
    assert_int_equal(c.end.signal, SIGKILL);
    pid_t grandchild = atoi(c.out);
    assert_true(grandchild > 0);
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)grandchild);
    for (int i = 0; i < 5000; i++) {
        stk_buf stat STK_AUTO(stk_buf_done) = STK_BUF(4096);
        /* Gone, or a zombie that init has not collected yet. */
        if (stk_file_read(path, &stat, NULL) < 0 || strstr(stat.p, ") Z "))
            return;
        usleep(1000);
    }
    fail_msg("the grandchild lives");
}

static void a_descendant_that_holds_the_pipe_is_not_waited_for(void **state)
{
    stk_mono begin = stk_mono_now();
    collected c = collect("sleep 5 & echo $!", S(""), stk_sec(patience_s));
    assert_true(stk_span_sec(stk_mono_sub(stk_mono_now(), begin)) < 4);
    assert_int_equal(c.end.status, 0);
    assert_true(atoi(c.out) > 1);
    kill(atoi(c.out), SIGKILL);
}

static void the_blocking_form_says_timeout_and_limit(void **state)
{
    stk_err err;
    stk_proc_end end;
    const char *argv[] = {"sleep", "100", NULL};
    assert_int_equal(
        stk_proc_run(&(stk_proc_spec){.path = "/bin/sleep", .argv = argv}, stk_ms(50), &end, NULL, &err),
        -STK_E_TIMEOUT);
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(4);
    const char *echo[] = {"echo", "12345", NULL};
    assert_int_equal(stk_proc_run(&(stk_proc_spec){.path = "/bin/echo", .argv = echo}, stk_sec(patience_s),
                                  &end, &out, &err),
                     -STK_E_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_outputs_are_collected_and_input_is_given),
        cmocka_unit_test(output_past_the_cap_is_dropped_and_does_not_block_the_child),
        cmocka_unit_test(input_that_nobody_reads_does_no_harm),
        cmocka_unit_test(a_deadline_kills_the_child_and_its_group),
        cmocka_unit_test(a_descendant_that_holds_the_pipe_is_not_waited_for),
        cmocka_unit_test(the_blocking_form_says_timeout_and_limit),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
