/* A loop with a guard, and ways to run a shell on it, for the tests of child processes. */
#ifndef STK_TESTS_UNIT_BASE_PROC_FIXTURE_H
#define STK_TESTS_UNIT_BASE_PROC_FIXTURE_H

#include "proto/base/proc.h"
#include "tests/unit/base/test.h"

static stk_loop *loop;
static const char *const sh = "/bin/sh";

/* Enough for every test here; whoever waits longer has hung. */
static const int64_t patience_s = 20;

typedef struct ended {
    int n;
    stk_proc_end end;
} ended;

static void on_done(stk_proc *proc, const stk_proc_end *end, void *arg)
{
    ended *e = arg;
    e->n++;
    e->end = *end;
    stk_loop_stop(loop);
}

static void too_long(void *arg)
{
    fail_msg("the test took too long");
}

static void run_loop(void)
{
    stk_timer *guard STK_AUTO(stk_timer_freep) = stk_timer_new(loop, too_long, NULL);
    stk_timer_set(guard, stk_sec(patience_s));
    stk_loop_run(loop);
}

static stk_proc_end end_of(const stk_proc_spec *spec)
{
    stk_err err;
    ended e = {.n = 0};
    stk_proc *proc STK_AUTO(stk_proc_freep) = NULL;
    if (stk_proc_start(loop, spec, on_done, &e, &proc, &err) < 0)
        fail_msg("%s", err.detail);
    run_loop();
    assert_int_equal(e.n, 1);
    return e.end;
}

static stk_proc_end end_of_shell(const char *script)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    return end_of(&(stk_proc_spec){.path = sh, .argv = argv});
}

/* Standard output of a shell script under the given spec. */
static char *output_of(stk_proc_spec spec, const char *script)
{
    static char text[8192];
    const char *argv[] = {"sh", "-c", script, NULL};
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(sizeof(text) - 1);
    stk_err err;
    stk_proc_end end;
    spec.path = sh;
    spec.argv = argv;
    if (stk_proc_run(&spec, stk_sec(patience_s), &end, &out, &err) < 0)
        fail_msg("%s", err.detail);
    assert_true(stk_str_copy(stk_buf_view(&out), text, sizeof(text)));
    return text;
}

static int set_up(void **state)
{
    return stk_loop_new(&loop, NULL);
}

static int tear_down(void **state)
{
    stk_loop_free(loop);
    return 0;
}

#endif
