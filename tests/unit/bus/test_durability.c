/* What "published" promises: synced before it is said, there after a power cut, and no going on after a
 * failed fsync. */
#include "proto/base/fd.h"
#include "proto/bus/bus_sqlite.h"
#include "tests/unit/bus/bench.h"
#include "tests/unit/bus/fault_vfs.h"
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>

static void an_fsync_lies_between_publish_and_done(void **state)
{
    bench *b = *state;
    for (int i = 0; i < 20; i++) {
        int before = fault_vfs_syncs("-wal");
        ack a = {0};
        bench_send(b, 0, i, &a);
        bench_until(b, a.done);
        assert_int_equal(a.published, 1);
        assert_true(fault_vfs_syncs("-wal") > before);
        assert_int_equal(fault_vfs_unsynced("-wal"), 0);
    }
}

static void many_in_flight_share_an_fsync(void **state)
{
    bench *b = *state;
    int before = fault_vfs_syncs("-wal");
    ack a = {0};
    for (int i = 0; i < 1000; i++)
        bench_send(b, 0, i, &a);
    bench_until(b, a.done == 1000);
    assert_int_equal(a.published, 1000);
    assert_in_range(fault_vfs_syncs("-wal") - before, 1, 100);
}

typedef struct cut {
    char folder[96];
    size_t acknowledged;
} cut;

/* Publishes 3000 messages, 16 in flight, and cuts the power at random moments. */
static size_t run_with_cuts(bench *b, unsigned *seed, cut *cuts, size_t most)
{
    enum { TOTAL = 3000, FLIGHT = 16 };
    size_t ncuts = 0, sent = 0;
    ack a = {0};
    while (a.done < TOTAL) {
        while (sent < TOTAL && sent - a.done < FLIGHT)
            bench_send(b, 0, (int)sent++, &a);
        bench_turn(b);
        assert_int_equal(a.published, a.done);
        if (ncuts < most && rand_r(seed) % 4 == 0) {
            cuts[ncuts].acknowledged = a.done;
            snprintf(cuts[ncuts].folder, sizeof(cuts[ncuts].folder), "%s/cut-%zu", b->folder, ncuts);
            fault_vfs_snapshot(cuts[ncuts].folder, ncuts % 2 ? seed : NULL);
            ncuts++;
        }
    }
    return ncuts;
}

/* How many messages the file has from offset 0 on, each with its own number in it. */
static size_t count_intact(const char *path)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(
            db, "SELECT offset FROM messages WHERE value = CAST('m' || offset AS BLOB) ORDER BY offset", -1,
            &stmt, NULL),
        SQLITE_OK);
    int64_t n = 0;
    while (sqlite3_step(stmt) == SQLITE_ROW && sqlite3_column_int64(stmt, 0) == n)
        n++;
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return (size_t)n;
}

/* How many acknowledged messages the file in `folder` lacks, after the bus has opened it. */
static size_t count_missing(const cut *c)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/bus.db", c->folder);
    bench after = {0};
    if (bench_open_at(&after, path, NULL) < 0)
        return c->acknowledged;
    bench_close(&after);
    size_t intact = count_intact(path);
    return intact < c->acknowledged ? c->acknowledged - intact : 0;
}

static void what_was_acknowledged_survives_a_power_cut(void **state)
{
    bench *b = *state;
    cut cuts[30];
    unsigned seed = 424242;
    print_message("seed %u\n", seed);
    size_t n = run_with_cuts(b, &seed, cuts, STK_COUNT(cuts));
    assert_true(n >= 20);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(count_missing(&cuts[i]), 0);
}

static void without_the_fsync_the_same_check_finds_losses(void **state)
{
    bench *b = *state;
    fault_vfs_plan(&(fault_plan){.lying_sync = true, .full_after = -1});
    cut cuts[10];
    unsigned seed = 424242;
    size_t n = run_with_cuts(b, &seed, cuts, STK_COUNT(cuts)), missing = 0;
    for (size_t i = 0; i < n; i++)
        missing += count_missing(&cuts[i]);
    assert_true(missing > 0);
}

/* In a child: opens a bus whose fsync of `suffix` will fail, and publishes until that ends it. */
static void child(const char *folder, const char *suffix, int at, int err_fd)
{
    dup2(err_fd, 2);
    char path[128];
    snprintf(path, sizeof(path), "%s/child.db", folder);
    fault_vfs_reset();
    bench b = {0};
    if (bench_open_at(&b, path, FAULT_VFS) < 0)
        _exit(3);
    ack a = {0};
    fault_vfs_plan(&(fault_plan){.fail_sync = suffix, .fail_sync_at = at, .full_after = -1});
    for (int i = 0; i < 20000; i++) {
        bench_send_big(&b, 0, 4096, &a);
        bench_until(&b, a.done == (size_t)i + 1);
        if (a.published != a.done)
            _exit(4); /* it went on after the failure */
    }
    _exit(5);
}

/* Without a bench of its own: the fork must not meet another thread inside a lock. */
static void a_failing_fsync_ends_the_process(void **state)
{
    char folder[] = "/tmp/stk-bus-XXXXXX";
    assert_non_null(mkdtemp(folder));
    static const struct {
        const char *suffix;
        int at;
    } rows[] = {{"-wal", 1}, {"-wal", 5}, {"child.db", 1}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        int pipes[2];
        assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0)
            child(folder, rows[i].suffix, rows[i].at, pipes[1]);
        close(pipes[1]);
        char said[1024];
        size_t n = 0;
        for (ssize_t k; (k = read(pipes[0], said + n, sizeof(said) - 1 - n)) > 0;)
            n += (size_t)k;
        close(pipes[0]);
        said[n] = '\0';
        int status = 0;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 70);
        assert_non_null(strstr(said, "fsync failed"));
        assert_non_null(strstr(said, "child.db"));
        assert_ptr_equal(strchr(said, '\n'), said + n - 1);
    }
    stk_err err;
    assert_int_equal(stk_rmtree(AT_FDCWD, folder, &err), 0);
}

/* In a child: publishes from number `next` on, 32 in flight, and says after each turn how many were
 * acknowledged. */
static void publish_until_killed(const char *path, size_t next, int out_fd)
{
    bench b = {0};
    ack a = {0};
    if (bench_open_at(&b, path, NULL) < 0)
        _exit(3);
    for (size_t sent = 0;;) {
        while (sent - a.done < 32)
            bench_send(&b, 0, (int)(next + sent++), &a);
        bench_turn(&b);
        if (a.published != a.done || write(out_fd, &a.done, sizeof(a.done)) != sizeof(a.done))
            _exit(4);
    }
}

static void killing_the_process_loses_nothing_acknowledged(void **state)
{
    char folder[] = "/tmp/stk-bus-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/bus.db", folder);
    unsigned seed = 99;
    size_t have = 0;
    print_message("seed %u\n", seed);
    for (int round = 0; round < 10; round++) {
        int pipes[2], status = 0;
        assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
        pid_t pid = fork();
        if (pid == 0)
            publish_until_killed(path, have, pipes[1]);
        close(pipes[1]);
        size_t said, acknowledged = 0, turns = 1 + (size_t)rand_r(&seed) % 60;
        while (turns-- > 0 && read(pipes[0], &said, sizeof(said)) == sizeof(said))
            acknowledged = said;
        kill(pid, SIGKILL);
        while (read(pipes[0], &said, sizeof(said)) == sizeof(said))
            acknowledged = said;
        close(pipes[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        size_t now = count_intact(path);
        assert_true(now >= have + acknowledged);
        have = now;
    }
    assert_true(have > 0);
    stk_err err;
    assert_int_equal(stk_rmtree(AT_FDCWD, folder, &err), 0);
}

static void a_full_disk_refuses_and_recovers_by_itself(void **state)
{
    bench *b = *state;
    ack before = {0}, full = {0}, after = {0};
    for (int i = 0; i < 10; i++)
        bench_send(b, 0, i, &before);
    bench_until(b, before.done == 10);
    fault_vfs_plan(&(fault_plan){.full_after = 10000});
    for (int i = 0; i < 500; i++)
        bench_send(b, 0, 100000 + i, &full);
    bench_until(b, full.done == 500);
    assert_int_equal(full.outcome, STK_PUBLISH_REFUSED);
    assert_int_equal(full.err.code, STK_E_NO_SPACE);
    assert_false(stk_bus_ready(b->bus));
    fault_vfs_plan(&(fault_plan){.full_after = -1});
    bench_until(b, stk_bus_ready(b->bus));
    bench_send(b, 0, 77, &after);
    bench_until(b, after.done);
    assert_int_equal(after.outcome, STK_PUBLISHED);
    assert_int_equal(after.offset, 10 + (int64_t)full.published);
    bench_reopen(b);
    for (int i = 0; i < 10; i++)
        assert_true(bench_has(b, 0, i, i));
    assert_true(bench_has(b, 0, after.offset, 77));
    assert_false(bench_has(b, 0, after.offset + 1, 0));
}

static void a_failed_write_refuses_and_leaves_nothing(void **state)
{
    bench *b = *state;
    ack bad = {0}, good = {0};
    fault_vfs_plan(&(fault_plan){.fail_write = true, .full_after = -1});
    for (int i = 0; i < 20; i++)
        bench_send(b, 0, 1000 + i, &bad);
    bench_until(b, bad.done == 20);
    assert_int_equal(bad.published, 0);
    assert_int_equal(bad.outcome, STK_PUBLISH_REFUSED);
    assert_int_equal(bad.err.code, STK_E_UNAVAILABLE);
    fault_vfs_plan(&(fault_plan){.full_after = -1});
    bench_send(b, 0, 5, &good);
    bench_until(b, good.done);
    assert_int_equal(good.outcome, STK_PUBLISHED);
    assert_int_equal(good.offset, 0);
    bench_reopen(b);
    assert_true(bench_has(b, 0, 0, 5));
    assert_false(bench_has(b, 0, 1, 1000));
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, bench_setup_faulty, bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(an_fsync_lies_between_publish_and_done),
        CASE(many_in_flight_share_an_fsync),
        CASE(what_was_acknowledged_survives_a_power_cut),
        CASE(without_the_fsync_the_same_check_finds_losses),
        cmocka_unit_test(a_failing_fsync_ends_the_process),
        cmocka_unit_test(killing_the_process_loses_nothing_acknowledged),
        CASE(a_full_disk_refuses_and_recovers_by_itself),
        CASE(a_failed_write_refuses_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
