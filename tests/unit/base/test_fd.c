#include "proto/base/fd.h"
#include "tests/unit/base/test.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char dir[] = "/tmp/stk-test-fd-XXXXXX";

static const char *in_dir(const char *name)
{
    static char path[4][300];
    static unsigned next;
    char *p = path[next++ % 4];
    snprintf(p, 300, "%s/%s", dir, name);
    return p;
}

static int read_into(const char *path, size_t cap, stk_buf *out)
{
    *out = STK_BUF(cap);
    return stk_file_read(path, out, NULL);
}

static void a_file_is_replaced_whole_with_its_mode(void **state)
{
    const char *path = in_dir("replaced");
    stk_err err;
    assert_int_equal(stk_file_replace(path, 0640, S("one\0two"), &err), 0);
    assert_int_equal(stk_file_replace(path, 0600, S("three"), &err), 0);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(5);
    assert_int_equal(stk_file_read(path, &out, &err), 0);
    assert_str(stk_buf_view(&out), "three");
    assert_true(stk_file_replace(in_dir("none/x"), 0600, S("x"), &err) < 0);
    assert_int_equal(err.sys, ENOENT);
}

static int entries_in(const char *path)
{
    DIR *d = opendir(path);
    int n = 0;
    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
}

static void a_failed_replace_leaves_what_was_there_and_no_litter(void **state)
{
    assert_int_equal(stk_mkdirs(in_dir("r/busy"), 0700, NULL), 0);
    int before = entries_in(in_dir("r"));
    stk_err err;
    assert_int_equal(stk_file_replace(in_dir("r/busy"), 0600, S("x"), &err), -STK_E_SYSTEM);
    assert_int_equal(err.sys, EISDIR);
    assert_int_equal(entries_in(in_dir("r")), before);
}

static void reading_tells_missing_too_long_and_not_a_file_apart(void **state)
{
    stk_err err;
    assert_int_equal(stk_file_replace(in_dir("five"), 0600, S("12345"), &err), 0);
    assert_int_equal(mkfifo(in_dir("fifo"), 0600), 0);
    const struct {
        const char *path;
        size_t cap;
        int rc;
    } rows[] = {
        {in_dir("five"), 5, 0},
        {in_dir("five"), 4, -STK_E_LIMIT},
        {in_dir("five"), 0, -STK_E_LIMIT},
        {"/nonexistent/x", 5, -STK_E_NOT_FOUND},
        {"/etc/passwd/x", 5, -STK_E_NOT_FOUND},
        {dir, 5, -STK_E_SYSTEM},
        {"/dev/zero", 5, -STK_E_SYSTEM},
        {"/proc/self/status", 100000, 0},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_buf out STK_AUTO(stk_buf_done);
        assert_int_equal(read_into(rows[i].path, rows[i].cap, &out), rows[i].rc);
    }
    stk_buf out STK_AUTO(stk_buf_done);
    assert_int_equal(read_into(in_dir("fifo"), 5, &out), -STK_E_SYSTEM);
}

static void a_long_file_is_read_whole(void **state)
{
    size_t n = 300001;
    char *big STK_AUTO(stk_freep) = stk_xcalloc(1, n);
    for (size_t i = 0; i < n; i++)
        big[i] = (char)(i % 251);
    assert_int_equal(stk_file_replace(in_dir("big"), 0600, stk_str_n(big, n), NULL), 0);
    stk_buf out STK_AUTO(stk_buf_done);
    assert_int_equal(read_into(in_dir("big"), n, &out), 0);
    assert_int_equal(out.n, n);
    assert_memory_equal(out.p, big, n);
}

static void directories_are_made_with_their_parents(void **state)
{
    stk_err err;
    assert_int_equal(stk_mkdirs(in_dir("a/b//c/"), 0700, &err), 0);
    assert_int_equal(stk_mkdirs(in_dir("a/b/c"), 0700, &err), 0);
    assert_int_equal(access(in_dir("a/b/c"), X_OK), 0);
    assert_int_equal(stk_mkdirs("/", 0700, &err), 0);
    assert_int_equal(stk_file_replace(in_dir("a/file"), 0600, S(""), &err), 0);
    assert_int_equal(stk_mkdirs(in_dir("a/file"), 0700, &err), -STK_E_SYSTEM);
    assert_int_equal(stk_mkdirs(in_dir("a/file/b"), 0700, &err), -STK_E_SYSTEM);
    assert_true(stk_mkdirs("", 0700, &err) < 0);
}

static void a_tree_goes_but_what_its_links_point_to_stays(void **state)
{
    stk_err err;
    assert_int_equal(stk_mkdirs(in_dir("keep"), 0700, &err), 0);
    assert_int_equal(stk_file_replace(in_dir("keep/file"), 0600, S("x"), &err), 0);
    assert_int_equal(stk_mkdirs(in_dir("tree/x/y/z"), 0700, &err), 0);
    assert_int_equal(stk_mkdirs(in_dir("tree/.rm-0/q"), 0700, &err), 0);
    assert_int_equal(stk_file_replace(in_dir("tree/.rm-1"), 0600, S("x"), &err), 0);
    assert_int_equal(stk_file_replace(in_dir("tree/x/y/file"), 0000, S("x"), &err), 0);
    assert_int_equal(symlink(in_dir("keep"), in_dir("tree/link")), 0);
    assert_int_equal(symlink(in_dir("keep"), in_dir("tree/x/y/z/link")), 0);
    assert_int_equal(mkfifo(in_dir("tree/x/fifo"), 0600), 0);
    assert_int_equal(chmod(in_dir("tree/x/y"), 0), 0);
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    assert_int_equal(stk_rmtree(fd, "tree", &err), 0);
    assert_int_equal(access(in_dir("tree"), F_OK), -1);
    assert_int_equal(access(in_dir("keep/file"), F_OK), 0);
    assert_int_equal(stk_rmtree(fd, "tree", &err), 0);
    assert_int_equal(symlink(in_dir("keep"), in_dir("link")), 0);
    assert_int_equal(stk_rmtree(fd, "link", &err), 0);
    assert_int_equal(access(in_dir("keep/file"), F_OK), 0);
    close(fd);
}

static void a_tree_deeper_than_any_path_goes_with_few_descriptors(void **state)
{
    int top = open(dir, O_RDONLY | O_DIRECTORY);
    assert_int_equal(mkdirat(top, "deep", 0700), 0);
    int at = openat(top, "deep", O_RDONLY | O_DIRECTORY);
    for (int i = 0; i < 1000; i++) {
        char name[200];
        memset(name, 'd', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        assert_int_equal(mkdirat(at, name, 0700), 0);
        int next = openat(at, name, O_RDONLY | O_DIRECTORY);
        assert_true(next >= 0);
        close(at);
        at = next;
    }
    close(at);
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = (struct rlimit){.rlim_cur = 40, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    stk_err err;
    int rc = stk_rmtree(top, "deep", &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    if (rc < 0)
        fail_msg("%s", err.detail);
    assert_int_equal(faccessat(top, "deep", F_OK, 0), -1);
    close(top);
}

static void a_wide_tree_goes(void **state)
{
    int top = open(dir, O_RDONLY | O_DIRECTORY);
    char name[300];
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof(name), "%s/wide/%d/%d/x", dir, i % 10, i);
        assert_int_equal(stk_mkdirs(name, 0700, NULL), 0);
    }
    assert_int_equal(stk_rmtree(top, "wide", NULL), 0);
    assert_int_equal(faccessat(top, "wide", F_OK, 0), -1);
    close(top);
}

static void a_cut_path_is_an_error(void **state)
{
    char out[8];
    stk_err err;
    assert_int_equal(stk_path(out, sizeof(out), &err, "%s/%s", "abc", "def"), 0);
    assert_string_equal(out, "abc/def");
    assert_int_equal(stk_path(out, sizeof(out), &err, "%s/%s", "abc", "defg"), -STK_E_LIMIT);
    assert_string_equal(out, "");
}

static void a_second_lock_names_the_holder_and_a_dead_one_frees_it(void **state)
{
    const char *path = in_dir("lock");
    stk_err err;
    int fds[2];
    char byte;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = -1;
        int rc = stk_lock_file(path, &fd, &err);
        if (write(fds[1], rc == 0 ? "y" : "n", 1) == 1)
            pause();
        _exit(1);
    }
    assert_int_equal(read(fds[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    int fd = -1;
    assert_int_equal(stk_lock_file(path, &fd, &err), -STK_E_CONFLICT);
    assert_int_equal(fd, -1);
    char want[32];
    snprintf(want, sizeof(want), "process %d", (int)pid);
    assert_non_null(strstr(err.detail, want));
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    assert_int_equal(stk_lock_file(path, &fd, &err), 0);
    struct stat st;
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    close(fd);
}

static void malformed_addresses_are_configuration_errors(void **state)
{
    static const char *const rows[] = {
        "",
        ":",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:-1",
        "127.0.0.1:01",
        "localhost:80",
        "127.1:80",
        "0x7f.0.0.1:80",
        "::1:80",
        "[::1]",
        "[::1:80",
        "[127.0.0.1]:80",
        "unix:",
        "unix:/",
        "unix:relative",
        "http://x:80",
        " 127.0.0.1:80",
        "127.0.0.1:80 ",
        "[fe80::1%lo]:80",
        "unix:/"
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaa",
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        int fd = -1;
        stk_err err;
        if (stk_listen(rows[i], 1, &fd, &err) != -STK_E_CONFIG ||
            stk_dial(rows[i], &fd, &err) != -STK_E_CONFIG)
            fail_msg("accepted: %s", rows[i]);
        assert_false(stk_addr_is_loopback(rows[i]));
    }
}

static void loopback_is_told_from_the_rest(void **state)
{
    assert_true(stk_addr_is_loopback("127.0.0.1:80"));
    assert_true(stk_addr_is_loopback("127.255.1.2:0"));
    assert_true(stk_addr_is_loopback("[::1]:80"));
    assert_true(stk_addr_is_loopback("unix:/run/x"));
    assert_false(stk_addr_is_loopback("0.0.0.0:80"));
    assert_false(stk_addr_is_loopback("[::]:80"));
    assert_false(stk_addr_is_loopback("128.0.0.1:80"));
    assert_false(stk_addr_is_loopback("[::ffff:127.0.0.1]:80"));
}

static void check_echo(const char *addr)
{
    int listener = -1, out = -1;
    stk_err err;
    char text[128], byte = 0;
    if (stk_listen(addr, 4, &listener, &err) < 0)
        fail_msg("%s", err.detail);
    stk_listen_text(listener, text);
    assert_int_equal(stk_dial(text, &out, &err), 0);
    assert_true(fcntl(listener, F_GETFD) & FD_CLOEXEC && fcntl(out, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(listener, F_GETFL) & O_NONBLOCK && fcntl(out, F_GETFL) & O_NONBLOCK);
    assert_int_equal(poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, 5000), 1);
    int in = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    assert_int_equal(poll(&(struct pollfd){.fd = out, .events = POLLOUT}, 1, 5000), 1);
    assert_int_equal(write(out, "z", 1), 1);
    assert_int_equal(read(in, &byte, 1), 1);
    assert_int_equal(byte, 'z');
    int second = -1;
    assert_int_equal(stk_listen(text, 4, &second, &err), -STK_E_CONFLICT);
    close(in);
    close(out);
    close(listener);
}

static void listening_and_dialling_meet_over_each_family(void **state)
{
    char addr[400];
    snprintf(addr, sizeof(addr), "unix:%s", in_dir("socket"));
    check_echo(addr);
    check_echo(addr); /* the file that is left is stale and replaced */
    check_echo("127.0.0.1:0");
    check_echo("[::1]:0");
}

static void a_file_that_is_no_socket_is_not_replaced(void **state)
{
    char addr[400];
    int fd = -1;
    stk_err err;
    assert_int_equal(stk_file_replace(in_dir("precious"), 0600, S("x"), NULL), 0);
    snprintf(addr, sizeof(addr), "unix:%s", in_dir("precious"));
    assert_true(stk_listen(addr, 4, &fd, &err) < 0);
    assert_int_equal(access(in_dir("precious"), F_OK), 0);
    snprintf(addr, sizeof(addr), "unix:%s", in_dir("absent"));
    assert_int_equal(stk_dial(addr, &fd, &err), -STK_E_UNAVAILABLE);
    assert_int_equal(err.sys, ENOENT);
}

static void kernel_files_take_one_write_and_no_links(void **state)
{
    stk_err err;
    int fd = open(dir, O_RDONLY | O_DIRECTORY);
    assert_int_equal(stk_file_replace(in_dir("knob"), 0600, S(""), NULL), 0);
    assert_int_equal(stk_file_put(fd, "knob", S("123"), &err), 0);
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(10);
    assert_int_equal(stk_file_read_at(fd, "knob", &out, &err), 0);
    assert_str(stk_buf_view(&out), "123");
    assert_int_equal(symlink("knob", in_dir("alias")), 0);
    assert_int_equal(stk_file_put(fd, "alias", S("1"), &err), -STK_E_SYSTEM);
    assert_int_equal(stk_file_put(fd, "absent", S("1"), &err), -STK_E_SYSTEM);
    assert_int_equal(err.sys, ENOENT);
    close(fd);
}

static int set_up(void **state)
{
    return mkdtemp(dir) ? 0 : -1;
}

static int tear_down(void **state)
{
    return stk_rmtree(AT_FDCWD, dir, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_replaced_whole_with_its_mode),
        cmocka_unit_test(a_failed_replace_leaves_what_was_there_and_no_litter),
        cmocka_unit_test(reading_tells_missing_too_long_and_not_a_file_apart),
        cmocka_unit_test(a_long_file_is_read_whole),
        cmocka_unit_test(directories_are_made_with_their_parents),
        cmocka_unit_test(a_tree_goes_but_what_its_links_point_to_stays),
        cmocka_unit_test(a_tree_deeper_than_any_path_goes_with_few_descriptors),
        cmocka_unit_test(a_wide_tree_goes),
        cmocka_unit_test(a_cut_path_is_an_error),
        cmocka_unit_test(a_second_lock_names_the_holder_and_a_dead_one_frees_it),
        cmocka_unit_test(malformed_addresses_are_configuration_errors),
        cmocka_unit_test(loopback_is_told_from_the_rest),
        cmocka_unit_test(listening_and_dialling_meet_over_each_family),
        cmocka_unit_test(a_file_that_is_no_socket_is_not_replaced),
        cmocka_unit_test(kernel_files_take_one_write_and_no_links),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
