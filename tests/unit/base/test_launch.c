#include "proto/base/fd.h"
#include "tests/unit/base/proc_fixture.h"
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void arguments_arrive_as_they_are(void **state)
{
    char *big STK_AUTO(stk_freep) = stk_xcalloc(1, 100001);
    memset(big, 'x', 100000);
    const char *argv[] = {
        "sh",  "-c", "test \"$1\" = '' -a \"$2\" = \"a b$3\" -a ${#4} -eq 100000 -a $# -eq 4",
        "n",   "",   "a b\n*",
        "\n*", big,  NULL};
    stk_proc_end end = end_of(&(stk_proc_spec){.path = sh, .argv = argv});
    assert_true(end.exited);
    assert_int_equal(end.status, 0);
}

/* A shell would keep descriptors of its own; this program lists those it has and no more. */
static int list_own_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *e;
    while ((e = readdir(dir))) {
        char path[300], to[256];
        snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
        ssize_t n = readlink(path, to, sizeof(to));
        if (e->d_name[0] != '.' && atol(e->d_name) != dirfd(dir))
            printf("%s=%.*s\n", e->d_name, (int)n, to);
    }
    closedir(dir);
    return 0;
}

static bool has_line(const char *text, const char *line)
{
    char want[600];
    snprintf(want, sizeof(want), "\n%s\n", line);
    return strstr(text, want) != NULL;
}

static void the_child_has_exactly_the_descriptors_that_were_named(void **state)
{
    int leak = open("/etc/passwd", O_RDONLY);
    int low = open("/etc/hostname", O_RDONLY | O_CLOEXEC);
    int high = fcntl(low, F_DUPFD_CLOEXEC, 500);
    assert_true(leak >= 0 && low >= 0 && low < 16 && high >= 500);
    const char *argv[] = {"test_base_launch", "--list-descriptors", NULL};
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(4096);
    stk_err err;
    stk_proc_end end;
    stk_proc_spec spec = {.path = "/proc/self/exe", .argv = argv, .nfds = 4};
    char self[4096] = "";
    assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
    spec.path = self;
    /* Crossed over, and onto the launcher's own two. */
    spec.fds[0].child = 3, spec.fds[0].ours = low;
    spec.fds[1].child = 4, spec.fds[1].ours = high;
    spec.fds[2].child = low, spec.fds[2].ours = 2;
    spec.fds[3].child = 15, spec.fds[3].ours = high;
    assert_int_equal(stk_buf_text(&out, "\n"), 0);
    assert_int_equal(stk_proc_run(&spec, stk_sec(patience_s), &end, &out, &err), 0);
    assert_int_equal(end.status, 0);
    int lines = 0;
    for (const char *p = out.p + 1; *p; p++)
        lines += *p == '\n';
    char own[300], line[320];
    snprintf(line, sizeof(line), "/proc/self/fd/2");
    ssize_t n = readlink(line, own, sizeof(own) - 1);
    own[n > 0 ? n : 0] = '\0';
    snprintf(line, sizeof(line), "%d=%s", low, own);
    assert_true(has_line(out.p, "0=/dev/null"));
    assert_true(has_line(out.p, "3=/etc/hostname"));
    assert_true(has_line(out.p, "4=/etc/hostname"));
    assert_true(has_line(out.p, "15=/etc/hostname"));
    assert_true(has_line(out.p, line));
    assert_non_null(strstr(out.p, "\n1=pipe:"));
    assert_non_null(strstr(out.p, "\n2=pipe:"));
    assert_int_equal(lines, 7);
    close(leak);
    close(low);
    close(high);
}

static void the_environment_is_built_and_never_inherited(void **state)
{
    setenv("STK_TEST_SECRET", "leaks", 1);
    const char *envp[] = {"A=1", "B=two words", NULL};
    assert_string_equal(output_of((stk_proc_spec){.envp = envp},
                                  "/usr/bin/env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD="),
                        "A=1\nB=two words\n");
    assert_string_equal(
        output_of((stk_proc_spec){0}, "/usr/bin/env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD="),
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n");
    unsetenv("STK_TEST_SECRET");
}

static void signals_mask_session_directory_and_limit_are_reset(void **state)
{
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    const char *text = output_of((stk_proc_spec){.nofile = 77},
                                 "grep -E '^Sig(Blk|Ign)' /proc/self/status; pwd; ulimit -n; umask; "
                                 "test $(cut -d' ' -f6 /proc/$$/stat) = $$ && echo leader");
    sigprocmask(SIG_SETMASK, &before, NULL);
    signal(SIGUSR1, SIG_DFL);
    assert_string_equal(text, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n/\n77\n0022\nleader\n");
    assert_string_equal(output_of((stk_proc_spec){.cwd = "/usr/bin"}, "pwd"), "/usr/bin\n");
}

static void namespaces_are_entered_and_a_mount_is_detached_there_only(void **state)
{
    if (geteuid() != 0)
        skip();
    char ours[64] = "";
    assert_true(readlink("/proc/self/ns/mnt", ours, sizeof(ours) - 1) > 0);
    stk_proc_spec spec = {.unshare_flags = CLONE_NEWNS | CLONE_NEWIPC, .umount = "/proc"};
    assert_string_equal(output_of(spec, "test -e /proc/self || echo detached"), "detached\n");
    assert_int_equal(access("/proc/self", F_OK), 0);
    spec.umount = NULL;
    char *theirs = output_of(spec, "readlink /proc/self/ns/mnt");
    theirs[strcspn(theirs, "\n")] = '\0';
    assert_string_not_equal(theirs, ours);
}

/* Any hierarchy of this machine in which we may make a group. */
static bool make_group(char *path, size_t size)
{
    static const char *const roots[] = {"/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"};
    for (size_t i = 0; i < STK_COUNT(roots); i++) {
        snprintf(path, size, "%s/stk-test-%d", roots[i], (int)getpid());
        char procs[300];
        snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
        if (mkdir(path, 0755) == 0 && access(procs, W_OK) == 0)
            return true;
        rmdir(path);
    }
    return false;
}

static void the_child_is_in_its_cgroup_before_it_runs(void **state)
{
    char path[200];
    if (!make_group(path, sizeof(path)))
        skip();
    const char *groups[] = {path, NULL};
    char script[300];
    snprintf(script, sizeof(script), "grep -c -o stk-test-%d /proc/self/cgroup | head -1", (int)getpid());
    char *text = output_of((stk_proc_spec){.cgroups = groups}, script);
    assert_string_equal(text, "1\n");
    int tries = 0;
    while (rmdir(path) < 0 && tries++ < 1000)
        usleep(1000);
    assert_true(tries < 1000);
}

static void a_child_tied_to_its_parent_dies_with_it(void **state)
{
    int pipes[2];
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    pid_t parent = fork();
    if (parent == 0) {
        stk_loop *own = NULL;
        stk_proc *proc = NULL;
        const char *argv[] = {"sleep", "100", NULL};
        stk_proc_spec spec = {.path = "/bin/sleep",
                              .argv = argv,
                              .fds = {{.child = 1, .ours = pipes[1]}},
                              .nfds = 1,
                              .die_with_parent = true};
        int rc = stk_loop_new(&own, NULL) < 0 || stk_proc_start(own, &spec, on_done, NULL, &proc, NULL) < 0;
        _exit(rc);
    }
    close(pipes[1]);
    int status = -1;
    assert_int_equal(waitpid(parent, &status, 0), parent);
    assert_int_equal(status, 0);
    char byte;
    assert_int_equal(read(pipes[0], &byte, 1), 0); /* the end of the stream: sleep is gone */
    close(pipes[0]);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--list-descriptors") == 0)
        return list_own_descriptors();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arguments_arrive_as_they_are),
        cmocka_unit_test(the_child_has_exactly_the_descriptors_that_were_named),
        cmocka_unit_test(the_environment_is_built_and_never_inherited),
        cmocka_unit_test(signals_mask_session_directory_and_limit_are_reset),
        cmocka_unit_test(namespaces_are_entered_and_a_mount_is_detached_there_only),
        cmocka_unit_test(the_child_is_in_its_cgroup_before_it_runs),
        cmocka_unit_test(a_child_tied_to_its_parent_dies_with_it),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
