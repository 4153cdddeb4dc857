#include "egress-proxy/privileges.h"
#include "tests/unit/egress-proxy/unit.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* In a child behind the cage: runs act; returns how the child ended. */
static int behind(void (*act)(void))
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        stk_err err;
        if (stk_privileges_drop(&err) < 0)
            _exit(99);
        act();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void open_file(void)
{
    syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY);
}
static void old_open_file(void)
{
    syscall(SYS_open, "/etc/passwd", O_RDONLY);
}
static void start_program(void)
{
    char *const argv[] = {(char *)(uintptr_t) "/bin/true", NULL};
    execve("/bin/true", argv, NULL);
}
static void make_process(void)
{
    syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}
static void unix_socket(void)
{
    socket(AF_UNIX, SOCK_STREAM, 0);
}
static void netlink_socket(void)
{
    socket(AF_NETLINK, SOCK_RAW, 0);
}
static void packet_socket(void)
{
    socket(AF_PACKET, SOCK_RAW, 0);
}
static void listen_anew(void)
{
    syscall(SYS_listen, 3, 1);
}
static void bind_anew(void)
{
    syscall(SYS_bind, 3, 0, 0);
}
static void executable_memory(void)
{
    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
static void trace_another(void)
{
    ptrace(PTRACE_ATTACH, 1, 0, 0);
}
static void signal_another(void)
{
    kill(1, 0);
}
static void duplicate_anywhere(void)
{
    fcntl(0, F_DUPFD, 0);
}
static void new_namespace(void)
{
    syscall(SYS_unshare, 0x10000000);
}

static void what_a_proxy_never_does_kills_it(void **state)
{
    static const struct {
        const char *what;
        void (*act)(void);
    } rows[] = {
        {"openat", open_file},
        {"open", old_open_file},
        {"execve", start_program},
        {"clone", make_process},
        {"a Unix socket", unix_socket},
        {"netlink", netlink_socket},
        {"packets", packet_socket},
        {"listen", listen_anew},
        {"bind", bind_anew},
        {"PROT_EXEC", executable_memory},
        {"ptrace", trace_another},
        {"kill", signal_another},
        {"F_DUPFD", duplicate_anywhere},
        {"unshare", new_namespace},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        int status = behind(rows[i].act);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
            fail_msg("%s: status %x", rows[i].what, (unsigned)status);
    }
}

static void need(bool holds)
{
    if (!holds)
        _exit(1);
}

static void what_it_needs(void)
{
    need(socket(AF_INET, SOCK_STREAM, 0) >= 0 && socket(AF_INET6, SOCK_DGRAM, 0) >= 0);
    int fds[2];
    need(pipe2(fds, O_NONBLOCK) == 0 && write(fds[1], "x", 1) == 1);
    void *p = malloc(1 << 22);
    need(p != NULL);
    free(p);
}

static void what_it_does_still_works(void **state)
{
    int status = behind(what_it_needs);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Looked at in the child before the filter is on, by the child's /proc entry from outside. */
static void no_capability_no_user_no_dump_remains(void **state)
{
    int ready[2], go[2];
    assert_int_equal(pipe(ready) | pipe(go), 0);
    pid_t pid = fork();
    if (pid == 0) {
        stk_err err;
        char c;
        need(stk_privileges_drop(&err) == 0);
        need(write(ready[1], "r", 1) == 1 && read(go[0], &c, 1) == 1);
        _exit(0);
    }
    char path[64], text[4096], c;
    assert_int_equal(read(ready[0], &c, 1), 1);
    snprintf(path, sizeof(path), "/proc/%d/status", pid);
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    assert_true(n > 0);
    text[n] = '\0';
    close(fd);
    static const char *const lines[] = {"CapInh:\t0000000000000000",
                                        "CapPrm:\t0000000000000000",
                                        "CapEff:\t0000000000000000",
                                        "CapAmb:\t0000000000000000",
                                        "NoNewPrivs:\t1",
                                        "Seccomp:\t2"};
    for (size_t i = 0; i < STK_COUNT(lines); i++)
        if (!strstr(text, lines[i]))
            fail_msg("no %s in %s", lines[i], text);
    if (geteuid() == 0) {
        assert_non_null(strstr(text, "Uid:\t65534\t65534\t65534\t65534"));
        assert_non_null(strstr(text, "CapBnd:\t0000000000000000"));
        assert_null(strstr(text, "Groups:\t0"));
    }
    assert_int_equal(write(go[1], "g", 1), 1);
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_proxy_never_does_kills_it),
        cmocka_unit_test(what_it_does_still_works),
        cmocka_unit_test(no_capability_no_user_no_dump_remains),
    };
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return (int)(0 *
                 sizeof(tests)); /* a sanitizer's run time opens files itself, and the filter is left out */
#else
    return cmocka_run_group_tests(tests, NULL, NULL);
#endif
}
