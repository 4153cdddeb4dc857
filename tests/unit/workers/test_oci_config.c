/* What the oci backend asks an OCI runtime for: the whole document against a golden file, and what must hold
 * of any. STK_GOLDEN_WRITE=1 writes the golden file anew. */
#include "proto/base/fd.h"
#include "tests/unit/workers/unit.h"
#include "workers/backends/oci/oci.h"

#define GOLDEN STK_SOURCE_DIR "/tests/unit/workers/golden/config.json"

static stk_sandbox_spec spec_of(void)
{
    stk_sandbox_spec spec = {
        .id = "sbx-00000000000000000000000000", .tenant = "t", .agent = "helper", .max_concurrent = 2};
    stk_agent_limits_default(&spec.limits);
    return spec;
}

static stk_oci_paths paths_of(void)
{
    stk_oci_paths paths = {.dir = "/run/stockade/sbx-00000000000000000000000000",
                           .runtime_program = "/usr/bin/stockade-runtime",
                           .root = "/run/stockade/root",
                           .host_usr = true,
                           .cgroup = "/stockade/wrk-1/sbx-00000000000000000000000000"};
    return paths;
}

static cJSON *config_of(stk_oci_kind kind, stk_cgroup_layout layout, bool limits)
{
    stk_sandbox_spec spec = spec_of();
    stk_oci_paths paths = paths_of();
    stk_cgroups cg = {.layout = layout, .swap = layout != STK_CGROUP_V2, .writable = limits};
    if (!limits)
        paths.cgroup[0] = '\0';
    return stk_oci_config(&spec, &paths, &cg, kind, 268435456, 268500992);
}

static void the_whole_document_is_the_golden_one(void **state)
{
    cJSON *config STK_AUTO(stk_tree_freep) = config_of(STK_OCI_RUNC, STK_CGROUP_HYBRID, true);
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(1 << 20), golden STK_AUTO(stk_buf_done) = STK_BUF(1 << 20);
    stk_err err;
    stk_buf pretty STK_AUTO(stk_buf_done) = STK_BUF(1 << 20);
    char *printed = cJSON_Print(config);
    stk_buf_str(&pretty, stk_str_of(printed));
    stk_buf_byte(&pretty, '\n');
    cJSON_free(printed);
    if (getenv("STK_GOLDEN_WRITE"))
        assert_int_equal(stk_file_replace(GOLDEN, 0644, stk_buf_view(&pretty), &err), 0);
    if (stk_file_read(GOLDEN, &golden, &err) < 0)
        fail_msg("%s", err.detail);
    assert_string_equal(pretty.p, golden.p);
}

static cJSON *at(cJSON *tree, const char *name)
{
    cJSON *item = cJSON_GetObjectItemCaseSensitive(tree, name);
    if (!item)
        fail_msg("no %s", name);
    return item;
}

static bool has(const cJSON *list, const char *text)
{
    for (const cJSON *item = list->child; item; item = item->next)
        if (cJSON_IsString(item) && strcmp(item->valuestring, text) == 0)
            return true;
    return false;
}

static void no_privilege_is_left_with_any_runtime(void **state)
{
    for (int kind = STK_OCI_RUNC; kind <= STK_OCI_RUNSC; kind++) {
        cJSON *config STK_AUTO(stk_tree_freep) = config_of((stk_oci_kind)kind, STK_CGROUP_V2, true);
        cJSON *process = at(config, "process"), *user = at(process, "user");
        assert_int_equal(at(user, "uid")->valueint, 65532);
        assert_int_equal(at(user, "gid")->valueint, 65532);
        assert_true(cJSON_IsTrue(at(process, "noNewPrivileges")));
        assert_true(cJSON_IsTrue(at(at(config, "root"), "readonly")));
        for (cJSON *set = at(process, "capabilities")->child; set; set = set->next)
            assert_int_equal(cJSON_GetArraySize(set), 0);
        assert_int_equal(cJSON_GetArraySize(at(process, "capabilities")), 5);
        assert_int_equal(cJSON_GetArraySize(at(at(config, "linux"), "namespaces")), 6);
    }
}

static void every_mount_but_workspace_and_tmp_is_read_only_or_of_the_kernel(void **state)
{
    cJSON *config STK_AUTO(stk_tree_freep) = config_of(STK_OCI_CRUN, STK_CGROUP_V1, true);
    for (cJSON *mount = at(config, "mounts")->child; mount; mount = mount->next) {
        const char *type = at(mount, "type")->valuestring;
        cJSON *options = at(mount, "options");
        assert_true(has(options, "nosuid"));
        assert_true(has(options, "nodev") || strcmp(at(mount, "destination")->valuestring, "/dev") == 0);
        if (strcmp(type, "bind") == 0)
            assert_true(has(options, "ro"));
        else
            assert_true(strcmp(type, "tmpfs") == 0 || strcmp(type, "proc") == 0);
    }
}

static void limits_are_those_of_the_agent(void **state)
{
    cJSON *config STK_AUTO(stk_tree_freep) = config_of(STK_OCI_RUNC, STK_CGROUP_V1, true);
    cJSON *resources = at(at(config, "linux"), "resources");
    assert_true(at(at(resources, "memory"), "limit")->valuedouble == 512.0 * 1048576);
    assert_true(at(at(resources, "memory"), "swap")->valuedouble == 512.0 * 1048576); /* no swap on top */
    assert_int_equal(at(at(resources, "pids"), "limit")->valueint, 128 + 8);
    assert_int_equal(at(at(resources, "cpu"), "period")->valueint, 20000);
    assert_int_equal(at(at(resources, "cpu"), "quota")->valueint, 20000);
    assert_true(cJSON_IsFalse(at(at(resources, "devices")->child, "allow")));
}

static cJSON *rlimit(cJSON *config, const char *type)
{
    for (cJSON *limit = at(at(config, "process"), "rlimits")->child; limit; limit = limit->next)
        if (strcmp(at(limit, "type")->valuestring, type) == 0)
            return limit;
    return NULL;
}

static void without_cgroups_processes_are_limited_all_the_same(void **state)
{
    cJSON *config STK_AUTO(stk_tree_freep) = config_of(STK_OCI_CRUN, STK_CGROUP_V2, false);
    assert_null(cJSON_GetObjectItemCaseSensitive(at(config, "linux"), "resources"));
    assert_null(cJSON_GetObjectItemCaseSensitive(at(config, "linux"), "cgroupsPath"));
    cJSON *limit = rlimit(config, "RLIMIT_NPROC");
    assert_non_null(limit);
    assert_int_equal(at(limit, "hard")->valueint, 128 + 8);
    cJSON *with STK_AUTO(stk_tree_freep) = config_of(STK_OCI_CRUN, STK_CGROUP_V2, true);
    assert_null(rlimit(with, "RLIMIT_NPROC"));
    assert_int_equal(at(rlimit(with, "RLIMIT_CORE"), "hard")->valueint, 0);
}

static void the_least_processor_share_is_one_the_kernel_takes(void **state)
{
    stk_sandbox_spec spec = spec_of();
    stk_oci_paths paths = paths_of();
    stk_cgroups cg = {.layout = STK_CGROUP_V2};
    spec.limits.cpu_millis = 50;
    cJSON *config STK_AUTO(stk_tree_freep) = stk_oci_config(&spec, &paths, &cg, STK_OCI_RUNC, 1, 1);
    assert_true(at(at(at(at(config, "linux"), "resources"), "cpu"), "quota")->valueint >= 1000);
}

static void an_ordinary_users_containers_have_that_user_as_their_root(void **state)
{
    stk_sandbox_spec spec = spec_of();
    stk_oci_paths paths = paths_of();
    stk_cgroups cg = {.layout = STK_CGROUP_V2};
    paths.user = 1000;
    paths.group = 100;
    cJSON *config STK_AUTO(stk_tree_freep) = stk_oci_config(&spec, &paths, &cg, STK_OCI_RUNC, 200000, 300000);
    cJSON *maps = at(at(config, "linux"), "gidMappings");
    assert_int_equal(cJSON_GetArraySize(maps), 2);
    assert_int_equal(at(maps->child, "hostID")->valueint, 100);
    assert_int_equal(at(maps->child, "size")->valueint, 1);
    assert_int_equal(at(maps->child->next, "containerID")->valueint, 1);
    assert_int_equal(at(maps->child->next, "hostID")->valueint, 300000);
    assert_int_equal(at(maps->child->next, "size")->valueint, 65535); /* 65532 is in it */
}

static bool allowed(cJSON *profile, const char *name, bool *ret_conditional)
{
    for (cJSON *rule = at(profile, "syscalls")->child; rule; rule = rule->next)
        if (has(at(rule, "names"), name)) {
            *ret_conditional = cJSON_GetObjectItemCaseSensitive(rule, "args") != NULL;
            return strcmp(at(rule, "action")->valuestring, "SCMP_ACT_ALLOW") == 0;
        }
    return false;
}

static void system_calls_are_allowed_by_name_and_all_others_are_not_there(void **state)
{
    static const char *const never[] = {"mount",
                                        "umount2",
                                        "pivot_root",
                                        "chroot",
                                        "unshare",
                                        "setns",
                                        "clone3",
                                        "bpf",
                                        "ptrace",
                                        "keyctl",
                                        "add_key",
                                        "request_key",
                                        "userfaultfd",
                                        "perf_event_open",
                                        "io_uring_setup",
                                        "io_uring_enter",
                                        "kexec_load",
                                        "init_module",
                                        "finit_module",
                                        "reboot",
                                        "process_vm_readv",
                                        "process_vm_writev",
                                        "pidfd_getfd",
                                        "open_by_handle_at",
                                        "name_to_handle_at",
                                        "fsopen",
                                        "fsmount",
                                        "open_tree",
                                        "move_mount",
                                        "mount_setattr",
                                        "swapon",
                                        "syslog",
                                        "iopl",
                                        "ioperm",
                                        "modify_ldt",
                                        "settimeofday",
                                        "clock_settime",
                                        "adjtimex",
                                        "sethostname",
                                        "setdomainname",
                                        "quotactl",
                                        "acct",
                                        "fanotify_init",
                                        "lookup_dcookie",
                                        "vhangup",
                                        "kcmp",
                                        "memfd_secret"};
    static const char *const needed[] = {"openat2", "execve",      "fork",       "futex", "mmap",     "read",
                                         "write",   "close_range", "pidfd_open", "rseq",  "getrandom"};
    static const char *const conditional[] = {"clone", "ioctl", "personality", "prlimit64", "socket"};
    cJSON *profile STK_AUTO(stk_tree_freep) = stk_oci_seccomp();
    bool args;
    assert_string_equal(at(profile, "defaultAction")->valuestring, "SCMP_ACT_ERRNO");
    assert_int_equal(at(profile, "defaultErrnoRet")->valueint, 38);
    assert_int_equal(cJSON_GetArraySize(at(profile, "architectures")), 1);
    for (size_t i = 0; i < STK_COUNT(never); i++)
        if (allowed(profile, never[i], &args))
            fail_msg("%s is allowed", never[i]);
    for (size_t i = 0; i < STK_COUNT(needed); i++)
        assert_true(allowed(profile, needed[i], &args) && !args);
    for (size_t i = 0; i < STK_COUNT(conditional); i++)
        assert_true(allowed(profile, conditional[i], &args) && args);
}

static void gvisor_gets_no_profile_it_would_refuse(void **state)
{
    cJSON *config STK_AUTO(stk_tree_freep) = config_of(STK_OCI_RUNSC, STK_CGROUP_V2, true);
    assert_null(cJSON_GetObjectItemCaseSensitive(at(config, "linux"), "seccomp"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_whole_document_is_the_golden_one),
        cmocka_unit_test(no_privilege_is_left_with_any_runtime),
        cmocka_unit_test(every_mount_but_workspace_and_tmp_is_read_only_or_of_the_kernel),
        cmocka_unit_test(limits_are_those_of_the_agent),
        cmocka_unit_test(without_cgroups_processes_are_limited_all_the_same),
        cmocka_unit_test(an_ordinary_users_containers_have_that_user_as_their_root),
        cmocka_unit_test(the_least_processor_share_is_one_the_kernel_takes),
        cmocka_unit_test(system_calls_are_allowed_by_name_and_all_others_are_not_there),
        cmocka_unit_test(gvisor_gets_no_profile_it_would_refuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
