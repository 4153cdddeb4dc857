#include "proto/base/launch_spec.h"
#include "tests/unit/base/test.h"

static int decode(stk_str text, stk_launch **ret)
{
    stk_launch *l = stk_xcalloc(1, sizeof(*l));
    int rc = stk_launch_decode(text.p, text.n, l);
    if (ret)
        *ret = l;
    else
        free(l);
    return rc;
}

static void a_spec_comes_back_as_it_was_encoded(void **state)
{
    stk_launch *in STK_AUTO(stk_freep) = stk_xcalloc(1, sizeof(*in));
    *in = (stk_launch){.path = "/bin/x",
                       .cwd = "/tmp",
                       .umount = "/sys/fs/cgroup/unified",
                       .unshare_flags = 0x20000,
                       .nofile = 1024,
                       .parent = 77};
    in->args[in->n_args++] = "x";
    in->args[in->n_args++] = "";
    in->args[in->n_args++] = "a\nb=c";
    in->env[in->n_env++] = "A=1";
    in->cgroups[in->n_cgroups++] = "/sys/fs/cgroup/a b";
    in->fds[in->n_fds].child = 15, in->fds[in->n_fds++].at = 1023;
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(10000);
    assert_int_equal(stk_launch_encode(&text, in), 0);
    stk_launch *out STK_AUTO(stk_freep) = NULL;
    assert_int_equal(decode(stk_buf_view(&text), &out), 0);
    assert_string_equal(out->path, in->path);
    assert_string_equal(out->cwd, in->cwd);
    assert_string_equal(out->umount, in->umount);
    assert_int_equal(out->n_args, 3);
    assert_string_equal(out->args[1], "");
    assert_string_equal(out->args[2], "a\nb=c");
    assert_null(out->args[3]);
    assert_int_equal(out->n_env, 1);
    assert_string_equal(out->env[0], "A=1");
    assert_string_equal(out->cgroups[0], "/sys/fs/cgroup/a b");
    assert_int_equal(out->n_fds, 1);
    assert_int_equal(out->fds[0].child, 15);
    assert_int_equal(out->fds[0].at, 1023);
    assert_int_equal(out->unshare_flags, 0x20000);
    assert_int_equal(out->nofile, 1024);
    assert_int_equal(out->parent, 77);
}

#define GOOD "v1\0p/x\0d/\0ax\0"

static void malformed_specs_are_refused(void **state)
{
    static const stk_str rows[] = {
        S(""),
        S("v1\0"),
        S("v2\0p/x\0d/\0ax\0"),
        S("p/x\0d/\0ax\0"),
        S("v1\0px\0d/\0ax\0"),
        S("v1\0p/x\0ax\0"),
        S("v1\0p/x\0d/\0"),
        S("v1\0p/x\0d/\0ax"),
        S(GOOD "\0"),
        S(GOOD "zz\0"),
        S(GOOD "f1\0"),
        S(GOOD "f16:20\0"),
        S(GOOD "f1:15\0"),
        S(GOOD "f-1:20\0"),
        S(GOOD "f1:99999999999\0"),
        S(GOOD "u-1\0"),
        S(GOOD "u\0"),
        S(GOOD "n2147483648\0"),
        S(GOOD "m\0"),
        S(GOOD "f1:20\0f2:20\0f3:20\0f4:20\0f5:20\0f6:20\0f7:20\0f8:20\0f9:20\0"),
    };
    stk_launch *out STK_AUTO(stk_freep) = NULL;
    assert_int_equal(decode(S(GOOD), &out), 0);
    for (size_t i = 0; i < STK_COUNT(rows); i++)
        if (decode(rows[i], NULL) != -STK_E_PROTOCOL)
            fail_msg("accepted row %zu", i);
}

static void lists_are_bounded(void **state)
{
    static const struct {
        char key;
        size_t most;
    } rows[] = {{'a', STK_LAUNCH_ARGS - 1}, {'e', STK_LAUNCH_ENV}, {'c', STK_LAUNCH_CGROUPS}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(100000);
        assert_int_equal(stk_buf_str(&text, S(GOOD)), 0);
        for (size_t n = 0; n < rows[i].most; n++)
            assert_int_equal(stk_buf_add(&text, (char[]){rows[i].key, 'x', '\0'}, 3), 0);
        assert_int_equal(decode(stk_buf_view(&text), NULL), 0);
        assert_int_equal(stk_buf_add(&text, (char[]){rows[i].key, 'x', '\0'}, 3), 0);
        assert_int_equal(decode(stk_buf_view(&text), NULL), -STK_E_PROTOCOL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spec_comes_back_as_it_was_encoded),
        cmocka_unit_test(malformed_specs_are_refused),
        cmocka_unit_test(lists_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
