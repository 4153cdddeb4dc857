/* What is the embedded adapter's own: its file, its limits, a full disk, a group that fails. */
#include "proto/state/state_sqlite.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <sqlite3.h>
#include <cmocka.h>
#include "tests/unit/bus/fault_vfs.h"

typedef struct box {
    char folder[64], path[96];
    stk_loop *loop;
    stk_state_file *file;
    stk_state *st;
    int left, failed, busy;
    stk_code code;
} box;

static int box_open(void **state)
{
    box *b = stk_xcalloc(1, sizeof(*b));
    fault_vfs_plan(&(fault_plan){.full_after = -1});
    snprintf(b->folder, sizeof(b->folder), "/tmp/stk-state-XXXXXX");
    assert_non_null(mkdtemp(b->folder));
    snprintf(b->path, sizeof(b->path), "%s/state.db", b->folder);
    assert_int_equal(stk_loop_new(&b->loop, NULL), 0);
    assert_int_equal(stk_state_file_open(b->path, &b->file, NULL), 0);
    assert_int_equal(stk_state_sqlite_new(b->file, b->loop, &b->st, NULL), 0);
    *state = b;
    return 0;
}

static void shut(box *b)
{
    if (!b->file)
        return;
    stk_state_close(b->st);
    event_base_loop(stk_loop_base(b->loop), EVLOOP_NONBLOCK);
    stk_state_file_close(b->file);
    b->st = NULL;
    b->file = NULL;
}

static int box_close(void **state)
{
    box *b = *state;
    static const char *const ends[] = {"", "-wal", "-shm"};
    shut(b);
    stk_loop_free(b->loop);
    for (size_t i = 0; i < STK_COUNT(ends); i++) {
        char path[112];
        snprintf(path, sizeof(path), "%s%s", b->path, ends[i]);
        unlink(path);
    }
    rmdir(b->folder);
    free(b);
    return 0;
}

static void on_done(stk_op *op, void *arg)
{
    box *b = arg;
    b->left--;
    b->failed += op->rc < 0;
    b->busy += op->rc == -STK_E_BUSY;
    if (op->rc < 0)
        b->code = op->err.code;
}

static void wait_all(box *b)
{
    int64_t deadline = stk_mono_now().ns + stk_sec(30).ns;
    while (b->left > 0) {
        assert_true(stk_mono_now().ns < deadline);
        event_base_loop(stk_loop_base(b->loop), EVLOOP_ONCE);
    }
}

static void submit(box *b, unsigned n, const char *label)
{
    stk_op_submit *op = stk_op_new(STK_OP_SUBMIT, on_done, b);
    uint8_t bytes[16] = {0};
    memcpy(bytes, &n, sizeof(n));
    stk_id_from("run", bytes, op->in.run);
    snprintf(op->in.tenant, sizeof(op->in.tenant), "acme");
    snprintf(op->in.agent, sizeof(op->in.agent), "coder");
    if (label)
        stk_map_add(&op->in.labels, STK_STR("pad"), stk_str_of(label));
    b->left++;
    stk_state_call(b->st, op);
}

static void join(box *b, unsigned n)
{
    stk_op_join *op = stk_op_new(STK_OP_JOIN, on_done, b);
    uint8_t bytes[16] = {0};
    memcpy(bytes, &n, sizeof(n));
    stk_id_from("wrk", bytes, op->in.worker);
    stk_id_from("inc", bytes, op->in.incarnation);
    op->in.lanes = 512;
    op->in.lease = stk_sec(9);
    b->left++;
    stk_state_call(b->st, op);
}

static void *bad(box *b)
{
    stk_op_submit *op = stk_op_new(STK_OP_SUBMIT, on_done, b);
    b->left++;
    return op;
}

static void count_note(const char *what, void *arg)
{
    ++*(int *)arg;
}

static int64_t count_of(box *b, const char *sql)
{
    sqlite3 *db;
    sqlite3_stmt *stmt;
    assert_int_equal(sqlite3_open_v2(b->path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return n;
}

static void what_was_answered_is_there_after_a_reopen(void **state)
{
    box *b = *state;
    for (unsigned i = 0; i < 1000; i++)
        submit(b, i, NULL);
    wait_all(b);
    assert_int_equal(b->failed, 0);
    shut(b);
    assert_int_equal(count_of(b, "SELECT count(*) FROM runs"), 1000);
    assert_int_equal(stk_state_file_open(b->path, &b->file, NULL), 0);
    assert_int_equal(stk_state_sqlite_new(b->file, b->loop, &b->st, NULL), 0);
    submit(b, 1, NULL);
    wait_all(b);
    assert_int_equal(count_of(b, "SELECT count(*) FROM runs"), 1000);
}

static void a_file_of_another_kind_is_refused_by_name(void **state)
{
    box *b = *state;
    stk_state_file *file = NULL;
    stk_err err = {0};
    char path[112];
    snprintf(path, sizeof(path), "%s/other.db", b->folder);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    char noise[8192];
    memset(noise, 'x', sizeof(noise));
    assert_int_equal(write(fd, noise, sizeof(noise)), sizeof(noise));
    close(fd);
    assert_int_equal(stk_state_file_open(path, &file, &err), -STK_E_CORRUPT);
    assert_non_null(strstr(err.detail, "other.db"));
    assert_null(file);
    unlink(path);
    assert_true(stk_state_file_open("/nonexistent/state.db", &file, NULL) < 0);
}

static void more_than_the_queue_holds_is_busy_and_the_rest_is_done(void **state)
{
    box *b = *state;
    enum { MANY = 150000 };
    for (unsigned i = 0; i < MANY; i++) {
        stk_op_outbox_done *op = stk_op_new(STK_OP_OUTBOX_DONE, on_done, b);
        b->left++;
        stk_state_call(b->st, op);
    }
    wait_all(b);
    assert_int_equal(b->failed, b->busy);
    assert_true(b->busy < MANY);
}

/* Everything of the adapter writes through the fault VFS, which is the default one here. */
static void a_full_disk_fails_operations_loses_nothing_and_recovers(void **state)
{
    box *b = *state;
    char label[128];
    memset(label, 'l', sizeof(label) - 1);
    label[sizeof(label) - 1] = '\0';
    for (unsigned i = 0; i < 50; i++)
        submit(b, i, label);
    wait_all(b);
    assert_true(stk_state_ready(b->st));
    fault_vfs_plan(&(fault_plan){.full_after = 500000});
    for (unsigned i = 50; i < 150; i++) {
        submit(b, i, label);
        wait_all(b);
    }
    assert_true(b->failed > 0 && b->failed < 100);
    assert_int_equal(b->code, STK_E_NO_SPACE);
    assert_false(stk_state_ready(b->st));
    fault_vfs_plan(&(fault_plan){.full_after = -1});
    assert_int_equal(count_of(b, "SELECT count(*) FROM runs"), 150 - b->failed);
    assert_int_equal(count_of(b, "SELECT s1 FROM tenants"), 150 - b->failed);
    b->failed = 0;
    for (unsigned i = 0; i < 150; i++)
        submit(b, i, label);
    wait_all(b);
    assert_int_equal(b->failed, 0);
    assert_true(stk_state_ready(b->st));
    assert_int_equal(count_of(b, "SELECT count(*) FROM runs"), 150);
}

/* Operations that share a commit share its fate: none of them may have happened when it fails, and no note
 * may have been sent. */
static void a_group_whose_commit_fails_did_not_happen(void **state)
{
    box *b = *state;
    int notes = 0;
    submit(b, 0, NULL);
    wait_all(b);
    stk_state_watch(b->st, "capacity", count_note, &notes);
    fault_vfs_plan(&(fault_plan){.full_after = 0});
    for (unsigned i = 1; i < 200; i++) {
        submit(b, i, NULL);
        join(b, i);
    }
    wait_all(b);
    fault_vfs_plan(&(fault_plan){.full_after = -1});
    assert_int_equal(b->failed, 398);
    assert_int_equal(notes, 0);
    assert_int_equal(count_of(b, "SELECT count(*) FROM runs"), 1);
    assert_int_equal(count_of(b, "SELECT count(*) FROM workers"), 0);
    join(b, 1);
    wait_all(b);
    assert_int_equal(b->failed, 398);
}

static void on_told(stk_op *op, void *arg)
{
    char one = 1;
    if (op->rc < 0 || write(*(int *)arg, &one, 1) != 1)
        _exit(1);
}

/* In a child: submits without end and says after each answer that it came. */
static void submit_until_killed(const char *path, int pipe_fd)
{
    stk_loop *loop = NULL;
    box b = {0};
    if (stk_loop_new(&loop, NULL) < 0 || stk_state_file_open(path, &b.file, NULL) < 0 ||
        stk_state_sqlite_new(b.file, loop, &b.st, NULL) < 0)
        _exit(1);
    for (;;) {
        stk_op_submit *op = stk_op_new(STK_OP_SUBMIT, on_told, &pipe_fd);
        stk_id_new("run", stk_wall_now(), op->in.run);
        snprintf(op->in.tenant, sizeof(op->in.tenant), "acme");
        snprintf(op->in.agent, sizeof(op->in.agent), "coder");
        stk_state_call(b.st, op);
        event_base_loop(stk_loop_base(loop), EVLOOP_NONBLOCK);
    }
}

static int64_t read_and_kill(pid_t child, int fd, int64_t enough)
{
    char buf[512];
    int64_t told = 0;
    ssize_t n;
    bool killed = false;
    while ((n = read(fd, buf, sizeof(buf))) > 0) {
        told += n;
        if (told >= enough && !killed) {
            kill(child, SIGKILL);
            killed = true;
        }
    }
    waitpid(child, NULL, 0);
    return told;
}

static void what_was_answered_survives_a_kill(void **state)
{
    box *b = *state;
    int64_t told = 0;
    shut(b);
    for (int round = 0; round < 5; round++) {
        int fds[2];
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0)
            submit_until_killed(b->path, fds[1]);
        close(fds[1]);
        told += read_and_kill(child, fds[0], 50 + round * 137);
        close(fds[0]);
        assert_int_equal(stk_state_file_open(b->path, &b->file, NULL), 0);
        assert_int_equal(stk_state_sqlite_new(b->file, b->loop, &b->st, NULL), 0);
        shut(b);
        assert_true(count_of(b, "SELECT count(*) FROM runs") >= told);
        assert_int_equal(count_of(b, "SELECT s1 FROM tenants"), count_of(b, "SELECT count(*) FROM runs"));
    }
}

static void one_bad_operation_leaves_its_neighbours_alone(void **state)
{
    box *b = *state;
    for (unsigned i = 0; i < 300; i++) {
        submit(b, i, NULL);
        if (i % 3 == 0)
            stk_state_call(b->st, bad(b));
    }
    wait_all(b);
    assert_int_equal(b->failed, 100);
    assert_int_equal(b->code, STK_E_FIELD);
    assert_int_equal(count_of(b, "SELECT count(*) FROM runs"), 300);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, box_open, box_close)
    const struct CMUnitTest tests[] = {
        CASE(what_was_answered_is_there_after_a_reopen),
        CASE(a_file_of_another_kind_is_refused_by_name),
        CASE(a_full_disk_fails_operations_loses_nothing_and_recovers),
        CASE(a_group_whose_commit_fails_did_not_happen),
        CASE(what_was_answered_survives_a_kill),
        CASE(one_bad_operation_leaves_its_neighbours_alone),
        CASE(more_than_the_queue_holds_is_busy_and_the_rest_is_done),
    };
    fault_vfs_reset();
    sqlite3_vfs_register(sqlite3_vfs_find(FAULT_VFS), 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
