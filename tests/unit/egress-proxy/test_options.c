#include "egress-proxy/options.h"
#include "tests/unit/egress-proxy/unit.h"

#define MOST 12

static int parse(const char *const *args, stk_px_options *opt, stk_err *err)
{
    char *argv[MOST + 2] = {(char *)(uintptr_t) "stockade-egress-proxy"};
    int argc = 1;
    for (; args[argc - 1]; argc++)
        argv[argc] = (char *)(uintptr_t)args[argc - 1];
    return stk_px_options_parse(argc, argv, opt, err);
}

static void both_ways_of_writing_a_flag_are_read(void **state)
{
    stk_px_options opt;
    stk_err err;
    const char *const args[] = {"--listen=fd:5",
                                "--control-fd",
                                "3",
                                "--journal-fd=4",
                                "--resolver",
                                "10.0.0.53:53",
                                "--resolver=[2001:db8::1]:5353",
                                NULL};
    assert_int_equal(parse(args, &opt, &err), 0);
    assert_int_equal(stk_px_listen_fd(opt.listen), 5);
    assert_int_equal(opt.control_fd, 3);
    assert_int_equal(opt.journal_fd, 4);
    assert_int_equal(opt.servers.n, 2);
    assert_int_equal(opt.servers.v[0].v4.sin_port, htons(53));
    assert_int_equal(opt.servers.v[1].v6.sin6_port, htons(5353));
}

static void wrong_lines_say_what_is_wrong(void **state)
{
    static const struct {
        const char *args[MOST];
        const char *why;
    } rows[] = {
        {{NULL}, "--listen is missing"},
        {{"--listen", "1:2", NULL}, "--policy is missing"},
        {{"--listen", NULL}, "needs a value"},
        {{"--listen=", NULL}, "is empty"},
        {{"--lisen", "x", NULL}, "unknown argument"},
        {{"x", NULL}, "unknown argument"},
        {{"--listen", "a", "--listen", "b", NULL}, "twice"},
        {{"--listen=fd:x", "--policy=p", NULL}, "descriptor"},
        {{"--listen=fd:3", "--control-fd=x", NULL}, "descriptor"},
        {{"--listen=fd:3", "--control-fd=4", "--policy=p", NULL}, "the worker gives the policy"},
        {{"--listen=fd:3", "--policy=p", "--journal-fd=5", NULL}, "goes with"},
        {{"--listen=a", "--policy=p", "--resolver=dns.example:53", NULL}, "IP:PORT"},
        {{"--listen=a", "--policy=p", "--resolver=1.2.3.4", NULL}, "IP:PORT"},
        {{"--listen=a", "--policy=p", "--resolver=1.2.3.4:0", NULL}, "IP:PORT"},
        {{"--listen=a", "--policy=p", "--resolver=1.2.3.4:1", "--resolver=1.2.3.4:1", "--resolver=1.2.3.4:1",
          "--resolver=1.2.3.4:1", NULL},
         "at most"},
        {{"--explain", "a.example:443", NULL}, "needs --policy"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_px_options opt;
        stk_err err;
        assert_int_equal(parse(rows[i].args, &opt, &err), -STK_E_USAGE);
        if (!strstr(err.detail, rows[i].why))
            fail_msg("row %zu: %s", i, err.detail);
    }
}

static void the_usage_names_every_flag_and_fits_a_screen(void **state)
{
    static const char *const names[] = {"--listen",  "--policy",   "--records",    "--config",
                                        "--explain", "--resolver", "--control-fd", "--journal-fd",
                                        "--help",    "--version"};
    for (size_t i = 0; i < STK_COUNT(names); i++)
        assert_non_null(strstr(stk_px_usage(), names[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways_of_writing_a_flag_are_read),
        cmocka_unit_test(wrong_lines_say_what_is_wrong),
        cmocka_unit_test(the_usage_names_every_flag_and_fits_a_screen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
