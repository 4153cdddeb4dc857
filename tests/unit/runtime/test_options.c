#include "workers/runtime/oom.h"
#include "workers/runtime/options.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static int parse(const char *const *args, stk_rt_options *opt, stk_err *err)
{
    char *argv[16] = {(char *)"stockade-runtime"};
    int argc = 1;
    for (; *args; args++)
        argv[argc++] = (char *)*args;
    return stk_rt_options_parse(argc, argv, opt, err);
}
#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void every_flag_is_taken_in_both_spellings(void **state)
{
    stk_rt_options opt;
    stk_err err;
    assert_int_equal(parse(ARGS("--listen", "unix:/a", "--listen=0.0.0.0:8888", "--dial=vsock:5",
                                "--token-fd", "0", "--root=/w", "--relay", "127.0.0.1:3128=unix:/p",
                                "--max-output=2048", "--max-concurrent", "3", "--compat", "upstream"),
                           &opt, &err),
                     0);
    assert_int_equal(opt.nlisten, 2);
    assert_string_equal(opt.listen[1], "0.0.0.0:8888");
    assert_string_equal(opt.dial, "vsock:5");
    assert_int_equal(opt.token_fd, 0);
    assert_string_equal(opt.root, "/w");
    assert_string_equal(opt.relay_from, "127.0.0.1:3128");
    assert_string_equal(opt.relay_to, "unix:/p");
    assert_int_equal(opt.max_output, 2048);
    assert_int_equal(opt.max_concurrent, 3);
    assert_true(opt.compat_upstream);
}

static void defaults_are_those_of_the_usage_text(void **state)
{
    stk_rt_options opt;
    stk_err err;
    assert_int_equal(parse(ARGS("--listen", "unix:/a"), &opt, &err), 0);
    assert_string_equal(opt.root, "/workspace");
    assert_int_equal(opt.max_output, 1048576);
    assert_int_equal(opt.max_concurrent, 8);
    assert_int_equal(opt.token_fd, -1);
    assert_null(opt.relay_to);
    assert_non_null(strstr(stk_rt_usage(), "default 1048576"));
}

static void wrong_command_lines_are_named(void **state)
{
    static const struct {
        const char *args[12];
        const char *says;
    } rows[] = {
        {{"--root", "/w"}, "--listen and --dial"},
        {{"--dial", "unix:/a"}, "needs --token-fd"},
        {{"--dial", "127.0.0.1:1", "--token-fd", "0"}, "--dial takes"},
        {{"--listen"}, "--listen needs a value"},
        {{"--listen", "unix:/a", "--nope"}, "'--nope'"},
        {{"--listen", "unix:/a", "--help=1"}, "'--help=1'"},
        {{"--listen", "unix:/a", "stray"}, "'stray'"},
        {{"--listen", "unix:/a", "--root", "relative"}, "absolute"},
        {{"--listen", "unix:/a", "--max-output", "12"}, "--max-output takes"},
        {{"--listen", "unix:/a", "--max-concurrent", "0"}, "from 1 to 64"},
        {{"--listen", "unix:/a", "--max-concurrent", "-1"}, "from 1 to 64"},
        {{"--listen", "unix:/a", "--relay", "127.0.0.1:3128"}, "--relay takes"},
        {{"--listen", "unix:/a", "--relay", "=unix:/p"}, "--relay takes"},
        {{"--listen", "unix:/a", "--relay", "127.0.0.1:1=127.0.0.1:2"}, "--relay takes"},
        {{"--listen", "unix:/a", "--compat", "other"}, "--compat takes"},
        {{"--listen", "a", "--listen", "a", "--listen", "a", "--listen", "a", "--listen", "a"}, "at most 4"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_rt_options opt = {.root = "untouched"};
        stk_err err = {0};
        assert_int_equal(parse(rows[i].args, &opt, &err), -STK_E_USAGE);
        if (!strstr(err.detail, rows[i].says))
            fail_msg("row %zu says: %s", i, err.detail);
        assert_string_equal(opt.root, "untouched");
    }
}

static void oom_kills_are_found_in_both_cgroup_versions(void **state)
{
    assert_int_equal(stk_oom_parse("low 0\nhigh 0\nmax 4\noom 2\noom_kill 7\noom_group_kill 1\n"), 7);
    assert_int_equal(stk_oom_parse("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"), 3);
    assert_int_equal(stk_oom_parse("oom_kill_disable 1\nunder_oom 0\n"), 0);
    assert_int_equal(stk_oom_parse(""), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_flag_is_taken_in_both_spellings),
        cmocka_unit_test(defaults_are_those_of_the_usage_text),
        cmocka_unit_test(wrong_command_lines_are_named),
        cmocka_unit_test(oom_kills_are_found_in_both_cgroup_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
