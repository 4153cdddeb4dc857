/* What only the embedded store has: a file that others read, faults below it, evidence that is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "proto/base/fail.h"
#include "proto/base/fd.h"
#include "proto/store/store_sqlite.h"
#include "tests/unit/bus/fault_vfs.h"
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

typedef struct bench {
    char folder[64], path[96];
    stk_store_file *file;
    stk_loop *loop;
    stk_store *store;
} bench;

static void open_at(bench *b)
{
    stk_err err = {0};
    if (stk_store_file_open(b->path, FAULT_VFS, &b->file, &err) < 0 || stk_loop_new(&b->loop, &err) < 0 ||
        stk_store_sqlite_new(b->file, b->loop, &b->store, &err) < 0)
        fail_msg("%s", err.detail);
}

static void close_all(bench *b)
{
    stk_store_close(b->store);
    stk_store_file_close(b->file);
    stk_loop_free(b->loop);
}

static int setup(void **state)
{
    bench *b = stk_xcalloc(1, sizeof(*b));
    fault_vfs_reset();
    snprintf(b->folder, sizeof(b->folder), "/tmp/stk-store-XXXXXX");
    assert_non_null(mkdtemp(b->folder));
    snprintf(b->path, sizeof(b->path), "%s/store.db", b->folder);
    open_at(b);
    *state = b;
    return 0;
}

static int teardown(void **state)
{
    bench *b = *state;
    stk_err err;
    close_all(b);
    int rc = stk_rmtree(AT_FDCWD, b->folder, &err);
    free(b);
    return rc;
}

typedef struct answer {
    bool done;
    stk_err err;
    int64_t offset;
    size_t stored;
} answer;

static void on_done(const stk_err *err, int64_t offset, size_t stored, size_t bad, void *arg)
{
    answer *a = arg;
    *a = (answer){.done = true, .offset = offset, .stored = stored};
    if (err)
        a->err = *err;
}

static void until(bench *b, const bool *flag)
{
    stk_mono end = stk_mono_add(stk_mono_now(), stk_sec(20));
    const struct timeval most = {0, 10000};
    while (!*flag && stk_mono_before(stk_mono_now(), end)) {
        event_base_loopexit(stk_loop_base(b->loop), &most);
        event_base_loop(stk_loop_base(b->loop), EVLOOP_ONCE);
    }
    assert_true(*flag);
}

static answer append(bench *b, const char *topic, int64_t from, const stk_audit_row *rows, size_t nrows,
                     const stk_event *events, size_t nevents)
{
    answer a = {0};
    stk_store_batch batch = {.topic = topic,
                             .from = from,
                             .to = from + (int64_t)(nrows + nevents),
                             .rows = rows,
                             .nrows = nrows,
                             .events = events,
                             .nevents = nevents};
    stk_store_append(b->store, &batch, on_done, &a);
    until(b, &a.done);
    return a;
}

static stk_audit_row make_row(int n)
{
    stk_audit_row row = {.v = 1, .time = {1767225600LL * 1000000000 + n * 1000000000LL}};
    snprintf(row.action, sizeof(row.action), STK_AUDIT_CONFIG_UPDATE);
    snprintf(row.tenant, sizeof(row.tenant), "acme");
    snprintf(row.actor, sizeof(row.actor), "admin");
    stk_audit_id(row.time, "agent-sandbox", "", row.action, (uint64_t)n, row.id);
    return row;
}

static answer append_rows(bench *b, int64_t from, int n)
{
    stk_audit_row rows[200];
    for (int i = 0; i < n; i++)
        rows[i] = make_row((int)from + i);
    return append(b, "stk.audit", from, rows, (size_t)n, NULL, 0);
}

static stk_event make_event(uint8_t run, uint8_t assignment, const char *kind)
{
    stk_event ev = {.v = 1,
                    .attempt = 1,
                    .submitted = {1767225600LL * 1000000000},
                    .finished = {1767225601LL * 1000000000}};
    uint8_t bytes[16] = {0};
    snprintf(ev.kind, sizeof(ev.kind), "%s", kind);
    snprintf(ev.tenant, sizeof(ev.tenant), "acme");
    snprintf(ev.agent, sizeof(ev.agent), "a");
    snprintf(ev.reason, sizeof(ev.reason), "exited");
    bytes[15] = run;
    stk_id_from("run", bytes, ev.run);
    bytes[15] = assignment;
    stk_id_from("asg", bytes, ev.assignment);
    stk_id_from("wrk", bytes, ev.worker);
    return ev;
}

static int64_t count(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return n;
}

static void evidence_that_lost_is_kept_as_late(void **state)
{
    bench *b = *state;
    stk_event events[] = {make_event(1, 1, "result"), make_event(1, 2, "result"),
                          make_event(2, 5, "result"), make_event(1, 2, "finished"),
                          make_event(1, 3, "result"), make_event(1, 2, "result")};
    assert_int_equal(append(b, "stk.events", 0, NULL, 0, events, 6).err.code, STK_OK);
    assert_int_equal(count(b->path, "SELECT count(*) FROM results"), 1);
    assert_int_equal(count(b->path, "SELECT count(*) FROM late WHERE NOT pending"), 2);
    assert_int_equal(count(b->path, "SELECT count(*) FROM late WHERE pending"), 1);
}

static void a_file_in_use_can_be_verified(void **state)
{
    bench *b = *state;
    stk_err err = {0};
    stk_chain_report report = {0};
    assert_int_equal(append_rows(b, 0, 100).stored, 100);
    assert_int_equal(stk_store_sqlite_verify_file(b->path, &report, &err), 0);
    assert_true(report.ok);
    assert_int_equal(report.rows, 100);
    assert_int_equal(append_rows(b, 100, 50).stored, 50);
    assert_int_equal(stk_store_sqlite_verify_file(b->path, &report, &err), 0);
    assert_int_equal(report.rows, 150);
    assert_int_equal(count(b->path, "UPDATE audit SET agent = 'x' WHERE seq = 120 RETURNING 1"), 1);
    assert_int_equal(stk_store_sqlite_verify_file(b->path, &report, &err), 0);
    assert_false(report.ok);
    assert_int_equal(report.bad_seq, 120);
    assert_string_equal(report.bad_id, make_row(119).id);
    assert_int_equal(append_rows(b, 150, 10).stored, 10); /* reading has not stopped the writer */
}

static void a_file_that_is_no_store_is_an_error(void **state)
{
    bench *b = *state;
    stk_err err = {0};
    stk_chain_report report = {0};
    char path[200];
    struct stat st;
    snprintf(path, sizeof(path), "%s/none.db", b->folder);
    assert_int_equal(stk_store_sqlite_verify_file(path, &report, &err), -STK_E_SYSTEM);
    assert_true(stat(path, &st) < 0);
    assert_non_null(strstr(err.detail, path));
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    assert_true(stk_store_sqlite_verify_file(path, &report, &err) < 0);
}

static void rows_are_synced_before_they_are_acknowledged(void **state)
{
    bench *b = *state;
    for (int i = 0; i < 10; i++) {
        int before = fault_vfs_syncs("-wal");
        assert_int_equal(append_rows(b, i * 10, 10).stored, 10);
        assert_true(fault_vfs_syncs("-wal") > before);
        assert_int_equal(fault_vfs_unsynced("-wal"), 0);
    }
    char folder[100], path[120];
    snprintf(folder, sizeof(folder), "%s/cut", b->folder);
    snprintf(path, sizeof(path), "%s/store.db", folder);
    fault_vfs_snapshot(folder, NULL);
    assert_int_equal(count(path, "SELECT count(*) FROM audit"), 100);
    assert_int_equal(count(path, "SELECT next FROM offsets"), 100);
}

static void a_full_disk_stores_nothing_and_recovers_by_itself(void **state)
{
    bench *b = *state;
    assert_int_equal(append_rows(b, 0, 10).stored, 10);
    fault_vfs_plan(&(fault_plan){.full_after = 3000});
    answer a = append_rows(b, 10, 200);
    assert_int_equal(a.err.code, STK_E_NO_SPACE);
    assert_int_equal(a.stored, 0);
    assert_false(stk_store_ready(b->store));
    fault_vfs_plan(&(fault_plan){.full_after = -1});
    stk_mono end = stk_mono_add(stk_mono_now(), stk_sec(20));
    while (!stk_store_ready(b->store) && stk_mono_before(stk_mono_now(), end))
        usleep(1000);
    assert_true(stk_store_ready(b->store));
    assert_int_equal(append_rows(b, 10, 200).stored, 200);
    stk_chain_report report;
    stk_err err;
    assert_int_equal(stk_store_sqlite_verify_file(b->path, &report, &err), 0);
    assert_true(report.ok);
    assert_int_equal(report.rows, 210);
}

static void a_lost_answer_is_found_again_by_its_offset(void **state)
{
    bench *b = *state;
    stk_err err;
    setenv("STK_FAILPOINTS", "store.append.after_commit=error@1", 1);
    assert_int_equal(stk_failpoints_init(&err), 0);
    answer a = append_rows(b, 0, 10);
    assert_int_equal(a.err.code, STK_E_INJECTED);
    unsetenv("STK_FAILPOINTS");
    assert_int_equal(stk_failpoints_init(&err), 0);
    a = append_rows(b, 0, 10);
    assert_int_equal(a.err.code, STK_E_STALE);
    assert_int_equal(a.offset, 10);
    assert_int_equal(count(b->path, "SELECT count(*) FROM audit"), 10);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(evidence_that_lost_is_kept_as_late),
        CASE(a_file_in_use_can_be_verified),
        CASE(a_file_that_is_no_store_is_an_error),
        CASE(rows_are_synced_before_they_are_acknowledged),
        CASE(a_full_disk_stores_nothing_and_recovers_by_itself),
        CASE(a_lost_answer_is_found_again_by_its_offset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
