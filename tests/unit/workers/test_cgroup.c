/* Cgroups of this host, whatever their layout: found, counted, removed with what is in them. */
#include "proto/base/fd.h"
#include "tests/unit/workers/unit.h"
#include "workers/backends/oci/oci.h"
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static stk_cgroups here(void)
{
    stk_cgroups cg;
    stk_cgroups_find("stockade", &cg);
    if (!cg.writable)
        skip();
    return cg;
}

static void path_in(const stk_cgroups *cg, size_t i, const char *path, const char *name, char out[512])
{
    snprintf(out, 512, "/sys/fs/cgroup/%s%s%s%s", cg->controllers[i], path, *name ? "/" : "", name);
}

static char parent[64], box[96];

static void names(void)
{
    snprintf(parent, sizeof(parent), "/stk-test-%d", getpid());
    snprintf(box, sizeof(box), "%s/sbx-1", parent);
}

static void make(const stk_cgroups *cg, const char *path)
{
    char dir[512];
    for (size_t i = 0; i < cg->n; i++) {
        path_in(cg, i, path, "", dir);
        assert_true(mkdir(dir, 0755) == 0 || access(dir, F_OK) == 0);
    }
}

static size_t count(const stk_cgroups *cg, const char *path)
{
    size_t n = 0;
    char dir[512];
    for (size_t i = 0; i < cg->n; i++) {
        path_in(cg, i, path, "", dir);
        n += access(dir, F_OK) == 0;
    }
    return n;
}

static void this_hosts_layout_has_its_parts(void **state)
{
    stk_cgroups cg;
    stk_cgroups_find("stockade", &cg);
    assert_true(cg.layout == STK_CGROUP_NONE || cg.n > 0);
    assert_true(cg.layout != STK_CGROUP_V2 || (cg.n == 1 && !*cg.controllers[0]));
    assert_true(cg.writable || *cg.why);
    for (size_t i = 0; i < cg.n; i++)
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(cg.controllers[i], cg.controllers[j]);
}

static void what_is_not_there_is_removed_already(void **state)
{
    stk_cgroups cg = here();
    names();
    assert_true(stk_cgroups_remove(&cg, "/stk-test-nothing/at-all"));
    assert_true(stk_cgroups_remove(&cg, ""));
    assert_int_equal(stk_cgroups_oom_kills(&cg, ""), -1);
    assert_int_equal(stk_cgroups_oom_kills(&cg, "/stk-test-nothing"), -1);
}

static void an_empty_one_is_removed_everywhere_with_its_children(void **state)
{
    stk_cgroups cg = here();
    char child[128];
    names();
    snprintf(child, sizeof(child), "%s/deep", box);
    make(&cg, parent);
    make(&cg, box);
    make(&cg, child);
    assert_true(stk_cgroups_remove(&cg, parent));
    assert_int_equal(count(&cg, parent), 0);
}

static void what_is_in_it_is_killed(void **state)
{
    stk_cgroups cg = here();
    char procs[512], pid[16];
    stk_err err;
    names();
    make(&cg, parent);
    make(&cg, box);
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    snprintf(pid, sizeof(pid), "%d", child);
    for (size_t i = 0; i < cg.n; i++) {
        if (strcmp(cg.controllers[i], "cpuset") == 0)
            continue; /* an empty set of processors takes nobody */
        path_in(&cg, i, box, "cgroup.procs", procs);
        FILE *file = fopen(procs, "w");
        assert_non_null(file);
        fputs(pid, file);
        assert_int_equal(fclose(file), 0);
    }
    int64_t deadline = stk_mono_now().ns + stk_sec(5).ns;
    int status = 0;
    stk_cgroups_remove(&cg, box); /* kills; what it killed has to be reaped before the rest goes */
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    while (!stk_cgroups_remove(&cg, box))
        assert_true(stk_mono_now().ns < deadline);
    assert_int_equal(count(&cg, box), 0);
    stk_cgroups_prune(&cg, parent);
    assert_int_equal(count(&cg, parent), 0);
    (void)err;
}

static void only_empty_ones_are_pruned(void **state)
{
    stk_cgroups cg = here();
    names();
    make(&cg, parent);
    make(&cg, box);
    stk_cgroups_prune(&cg, parent);
    assert_int_equal(count(&cg, box), cg.n);
    stk_cgroups_prune(&cg, box);
    stk_cgroups_prune(&cg, parent);
    assert_int_equal(count(&cg, parent), 0);
}

static void on_child(const char *name, void *arg)
{
    char *told = arg;
    size_t n = strlen(told);
    snprintf(told + n, 256 - n, "%s ", name);
}

static void children_are_told_once_each(void **state)
{
    stk_cgroups cg = here();
    char second[96], told[256] = "";
    names();
    snprintf(second, sizeof(second), "%s/sbx-2", parent);
    make(&cg, parent);
    make(&cg, box);
    char dir[512];
    path_in(&cg, cg.n - 1, second, "", dir); /* in one hierarchy alone */
    assert_int_equal(mkdir(dir, 0755), 0);
    stk_cgroups_each_child(&cg, parent, on_child, told);
    assert_true(strstr(told, "sbx-1 ") && strstr(told, "sbx-2 "));
    assert_int_equal(strlen(told), 12);
    assert_true(stk_cgroups_remove(&cg, parent));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(this_hosts_layout_has_its_parts),
        cmocka_unit_test(what_is_not_there_is_removed_already),
        cmocka_unit_test(an_empty_one_is_removed_everywhere_with_its_children),
        cmocka_unit_test(what_is_in_it_is_killed),
        cmocka_unit_test(only_empty_ones_are_pruned),
        cmocka_unit_test(children_are_told_once_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
