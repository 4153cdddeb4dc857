#include "tests/unit/base/proc_fixture.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

static void an_exit_status_and_a_signal_are_told_apart(void **state)
{
    static const struct {
        const char *script;
        bool exited;
        int status, signal;
    } rows[] = {
        {"exit 0", true, 0, 0},
        {"exit 7", true, 7, 0},
        {"exit 255", true, 255, 0},
        {"kill -TERM $$", false, 0, SIGTERM},
        {"kill -KILL $$", false, 0, SIGKILL},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_proc_end end = end_of_shell(rows[i].script);
        assert_int_equal(end.exited, rows[i].exited);
        assert_int_equal(end.status, rows[i].status);
        assert_int_equal(end.signal, rows[i].signal);
    }
}

static void cpu_time_of_the_child_is_told(void **state)
{
    stk_proc_end end = end_of_shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done");
    assert_true(end.cpu_us > 1000 && end.cpu_us < 20000000);
}

static void what_cannot_start_is_an_error_that_names_the_step(void **state)
{
    static const char *const argv[] = {"x", NULL};
    static const char *const no_cgroup[] = {"/nonexistent/cgroup", NULL};
    static const struct {
        stk_proc_spec spec;
        int sys;
        const char *names;
    } rows[] = {
        {{.path = "/nonexistent/program", .argv = argv}, ENOENT, "execute /nonexistent/program"},
        {{.path = "/etc/passwd", .argv = argv}, EACCES, "execute /etc/passwd"},
        {{.path = "/bin/true", .argv = argv, .cwd = "/nonexistent"}, ENOENT, "enter /nonexistent"},
        {{.path = "/bin/true", .argv = argv, .cgroups = no_cgroup},
         ENOENT,
         "join cgroup /nonexistent/cgroup"},
        {{.path = "/bin/true", .argv = argv, .unshare_flags = 1}, EINVAL, "unshare"},
        {{.path = "/bin/true", .argv = argv, .nofile = INT32_MAX}, EPERM, "limit open files"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_err err;
        ended e = {.n = 0};
        stk_proc *proc = NULL;
        assert_int_equal(stk_proc_start(loop, &rows[i].spec, on_done, &e, &proc, &err), -STK_E_SYSTEM);
        assert_int_equal(err.sys, rows[i].sys);
        assert_non_null(strstr(err.detail, rows[i].names));
        assert_null(proc);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    }
}

static void unwaited_what_cannot_start_ends_with_127(void **state)
{
    static const char *const argv[] = {"x", NULL};
    static const struct {
        const char *path;
        int status;
    } rows[] = {{"/nonexistent/program", 127}, {"/bin/true", 0}, {"/bin/false", 1}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_proc_end end = end_of(&(stk_proc_spec){.path = rows[i].path, .argv = argv, .nowait = true});
        assert_true(end.exited);
        assert_int_equal(end.status, rows[i].status);
    }
}

static void a_relative_path_is_refused_before_anything_starts(void **state)
{
    const char *argv[] = {"true", NULL};
    stk_err err;
    stk_proc *proc = NULL;
    stk_proc_spec spec = {.path = "true", .argv = argv};
    assert_int_equal(stk_proc_start(loop, &spec, on_done, NULL, &proc, &err), -STK_E_INTERNAL);
    spec = (stk_proc_spec){.path = "/bin/true", .argv = argv, .fds = {{.child = 16, .ours = 0}}, .nfds = 1};
    assert_int_equal(stk_proc_start(loop, &spec, on_done, NULL, &proc, &err), -STK_E_INTERNAL);
}

static void too_many_arguments_or_bytes_are_limits(void **state)
{
    static const char *argv[5000];
    for (size_t i = 0; i < 4999; i++)
        argv[i] = "x";
    stk_err err;
    stk_proc *proc = NULL;
    stk_proc_spec spec = {.path = "/bin/true", .argv = argv};
    assert_int_equal(stk_proc_start(loop, &spec, on_done, NULL, &proc, &err), -STK_E_LIMIT);
    char *big STK_AUTO(stk_freep) = stk_xcalloc(1, 3 * 1024 * 1024);
    memset(big, 'x', 3 * 1024 * 1024 - 1);
    const char *one[] = {"true", big, NULL};
    spec.argv = one;
    assert_int_equal(stk_proc_start(loop, &spec, on_done, NULL, &proc, &err), -STK_E_LIMIT);
}

static void a_child_can_be_killed_and_killing_the_dead_is_fine(void **state)
{
    const char *argv[] = {"sleep", "100", NULL};
    stk_err err;
    ended e = {.n = 0};
    stk_proc *proc STK_AUTO(stk_proc_freep) = NULL;
    assert_int_equal(
        stk_proc_start(loop, &(stk_proc_spec){.path = "/bin/sleep", .argv = argv}, on_done, &e, &proc, &err),
        0);
    assert_int_equal(kill(stk_proc_pid(proc), 0), 0);
    stk_proc_kill(proc, SIGINT);
    run_loop();
    assert_false(e.end.exited);
    assert_int_equal(e.end.signal, SIGINT);
    stk_proc_kill(proc, SIGKILL);
    assert_int_equal(e.n, 1);
}

static void stop_loop(void *arg)
{
    stk_loop_stop(loop);
}

static void a_freed_child_is_killed_and_reaped_without_a_callback(void **state)
{
    const char *argv[] = {"sleep", "100", NULL};
    stk_err err;
    ended e = {.n = 0};
    stk_proc *proc = NULL;
    assert_int_equal(
        stk_proc_start(loop, &(stk_proc_spec){.path = "/bin/sleep", .argv = argv}, on_done, &e, &proc, &err),
        0);
    pid_t pid = stk_proc_pid(proc);
    stk_proc_free(proc);
    stk_timer *tick STK_AUTO(stk_timer_freep) = stk_timer_new(loop, stop_loop, NULL);
    for (int i = 0; i < 2000 && kill(pid, 0) == 0; i++) {
        stk_timer_set(tick, stk_ms(1));
        stk_loop_run(loop);
    }
    assert_int_equal(kill(pid, 0), -1);
    assert_int_equal(e.n, 0);
}

enum { MANY = 200 };
static int left;
static int status_of[MANY];

static void on_one_of_many(stk_proc *proc, const stk_proc_end *end, void *arg)
{
    *(int *)arg = end->exited ? end->status : -1;
    stk_proc_free(proc);
    if (--left == 0)
        stk_loop_stop(loop);
}

static void two_hundred_children_at_once_each_end_with_their_own_status(void **state)
{
    left = MANY;
    int hold[2];
    assert_int_equal(pipe2(hold, O_CLOEXEC), 0);
    for (int i = 0; i < MANY; i++) {
        char script[64];
        snprintf(script, sizeof(script), "read line; exit %d", i);
        const char *argv[] = {"sh", "-c", script, NULL};
        stk_proc_spec spec = {.path = sh, .argv = argv, .fds = {{.child = 0, .ours = hold[0]}}, .nfds = 1};
        stk_proc *proc = NULL;
        stk_err err;
        status_of[i] = -2;
        if (stk_proc_start(loop, &spec, on_one_of_many, &status_of[i], &proc, &err) < 0)
            fail_msg("%s", err.detail);
    }
    assert_int_equal(left, MANY);
    close(hold[0]);
    close(hold[1]);
    run_loop();
    for (int i = 0; i < MANY; i++)
        assert_int_equal(status_of[i], i);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void starting_and_reaping_takes_about_a_millisecond(void **state)
{
    const char *argv[] = {"true", NULL};
    enum { N = 200 };
    double ms = 1e9; /* the quickest: the others tell how busy the machine is */
    for (int i = 0; i < N; i++) {
        stk_mono begin = stk_mono_now();
        assert_int_equal(end_of(&(stk_proc_spec){.path = "/bin/true", .argv = argv}).status, 0);
        double took = stk_span_sec(stk_mono_sub(stk_mono_now(), begin)) * 1000;
        ms = took < ms ? took : ms;
    }
    print_message("start to reaped: %.3f ms\n", ms);
    assert_true(ms < 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exit_status_and_a_signal_are_told_apart),
        cmocka_unit_test(cpu_time_of_the_child_is_told),
        cmocka_unit_test(what_cannot_start_is_an_error_that_names_the_step),
        cmocka_unit_test(unwaited_what_cannot_start_ends_with_127),
        cmocka_unit_test(a_relative_path_is_refused_before_anything_starts),
        cmocka_unit_test(too_many_arguments_or_bytes_are_limits),
        cmocka_unit_test(a_child_can_be_killed_and_killing_the_dead_is_fine),
        cmocka_unit_test(a_freed_child_is_killed_and_reaped_without_a_callback),
        cmocka_unit_test(two_hundred_children_at_once_each_end_with_their_own_status),
        cmocka_unit_test(starting_and_reaping_takes_about_a_millisecond),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
