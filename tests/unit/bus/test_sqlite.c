/* What only the embedded bus has: one file, trimming, a bounded queue. */
#include "proto/base/fail.h"
#include "tests/unit/bus/bench.h"
#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

static int64_t count_messages(const bench *b, const char *where)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    char sql[256];
    snprintf(sql, sizeof(sql), "SELECT count(*) FROM messages JOIN topics ON topics.id = topic_id WHERE %s",
             where);
    assert_int_equal(sqlite3_open(b->path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    sqlite3_close(db);
    return n;
}

static void on_message(stk_consumer *consumer, const stk_bus_msg *msg, void *arg)
{
    int *count = arg;
    if ((*count)++ < 4000)
        stk_bus_finish(consumer, msg->partition, msg->offset);
}

static void trimming_stops_at_what_a_group_has_still_to_do(void **state)
{
    bench *b = *state;
    static const stk_consumer_ops ops = {.on_message = on_message};
    ack a = {0};
    for (int i = 0; i < 9000; i++)
        bench_send(b, 0, i, &a);
    bench_until(b, a.done == 9000);
    int count = 0;
    stk_consumer *consumer;
    stk_err err;
    stk_consumer_spec spec = {.topic = "t", .group = "g", .window = 100};
    assert_int_equal(stk_bus_subscribe(b->bus, &spec, &ops, &count, &consumer, &err), 0);
    bench_until(b, count == 4100);
    stk_bus_trim(b->bus, "t", 0, 3000);
    bench_until(b, count_messages(b, "name = 't'") == 6000);
    stk_bus_trim(b->bus, "t", 0, 8000);
    bench_until(b, count_messages(b, "name = 't'") == 5000);
    assert_int_equal(count_messages(b, "offset < 4000"), 0);
    stk_bus_unsubscribe(consumer);
    bench_reopen(b);
    assert_false(bench_has(b, 0, 3999, 3999));
    assert_true(bench_has(b, 0, 4000, 4000));
}

static void offsets_go_on_after_everything_was_trimmed(void **state)
{
    bench *b = *state;
    ack a = {0};
    for (int i = 0; i < 5; i++)
        bench_send(b, 1, i, &a);
    bench_until(b, a.done == 5);
    stk_bus_trim(b->bus, "t", 1, 1000);
    bench_until(b, count_messages(b, "name = 't'") == 0);
    bench_reopen(b);
    bench_send(b, 1, 5, &a);
    bench_until(b, a.done == 6);
    assert_int_equal(a.offset, 5);
}

static void compaction_keeps_the_newest_of_each_key(void **state)
{
    bench *b = *state;
    char value[64];
    for (int i = 0; i < 10; i++) {
        char text[8];
        snprintf(text, sizeof(text), "v%d", i);
        bench_put(b, "c", i % 2 ? "odd" : "even", text);
    }
    bench_put(b, "c", "once", "x");
    stk_bus_trim(b->bus, "c", 0, 100);
    bench_until(b, count_messages(b, "name = 'c'") == 3);
    assert_true(bench_value(b, "c", 0, 8, value));
    assert_string_equal(value, "v8");
    assert_true(bench_value(b, "c", 0, 9, value));
    assert_string_equal(value, "v9");
    assert_true(bench_value(b, "c", 0, 10, value));
    bench_put(b, "c", "odd", "v11");
    stk_bus_trim(b->bus, "c", 0, 9);
    bench_put(b, "c", "done", "");
    assert_int_equal(count_messages(b, "name = 'c' AND key = CAST('odd' AS BLOB)"), 2);
}

static void on_error(stk_consumer *consumer, const stk_err *err, void *arg)
{
    (*(int *)arg)++;
}

static void starting_in_the_trimmed_part_is_an_alarm(void **state)
{
    bench *b = *state;
    static const stk_consumer_ops ops = {.on_message = on_message, .on_error = on_error};
    ack a = {0};
    for (int i = 0; i < 50; i++)
        bench_send(b, 0, i, &a);
    bench_until(b, a.done == 50);
    stk_bus_trim(b->bus, "t", 0, 30);
    bench_until(b, count_messages(b, "name = 't'") == 20);
    int errors = 0;
    int32_t partition = 0;
    int64_t start = 10;
    stk_consumer *consumer;
    stk_err err;
    stk_consumer_spec spec = {.topic = "t", .partitions = &partition, .npartitions = 1, .starts = &start};
    assert_int_equal(stk_bus_subscribe(b->bus, &spec, &ops, &errors, &consumer, &err), 0);
    bench_until(b, errors == 1);
    stk_bus_unsubscribe(consumer);
}

typedef struct reading {
    int64_t next;
    int errors;
    stk_code code;
} reading;

static void on_read(stk_consumer *consumer, const stk_bus_msg *msg, void *arg)
{
    reading *r = arg;
    assert_int_equal(msg->offset, r->next);
    r->next++;
    stk_bus_finish(consumer, msg->partition, msg->offset);
}

static void on_read_error(stk_consumer *consumer, const stk_err *err, void *arg)
{
    reading *r = arg;
    r->errors++;
    r->code = err->code;
}

static void a_damaged_page_is_an_alarm_and_nothing_is_skipped(void **state)
{
    bench *b = *state;
    static const stk_consumer_ops ops = {.on_message = on_read, .on_error = on_read_error};
    ack a = {0};
    for (int i = 0; i < 5000; i++)
        bench_send(b, 0, i, &a);
    bench_until(b, a.done == 5000);
    bench_close(b);
    int fd = open(b->path, O_WRONLY | O_CLOEXEC);
    for (int page = 30; page < 40; page++)
        assert_int_equal(pwrite(fd, "\1\2garbage where a page began", 29, page * 4096), 29);
    close(fd);
    assert_int_equal(bench_open_at(b, b->path, NULL), 0);
    reading r = {0};
    int32_t partition = 0;
    stk_consumer *consumer;
    stk_err err;
    stk_consumer_spec spec = {.topic = "t", .partitions = &partition, .npartitions = 1};
    assert_int_equal(stk_bus_subscribe(b->bus, &spec, &ops, &r, &consumer, &err), 0);
    bench_until(b, r.errors);
    assert_int_equal(r.code, STK_E_CORRUPT);
    assert_true(r.next < 5000);
    bench_send(b, 0, 5000, &a);
    bench_until(b, a.done == 5001);
    assert_int_equal(r.errors, 1);
    stk_bus_unsubscribe(consumer);
}

static void a_full_queue_answers_busy(void **state)
{
    bench *b = *state;
    bench_close(b);
    static const stk_bus_topic topics[] = {{"t", 2, false}, {"c", 1, true}};
    stk_bus_file_spec spec = {.path = b->path, .topics = topics, .ntopics = 2, .queue = 10};
    stk_err err;
    assert_int_equal(stk_bus_file_open(&spec, &b->file, &err), 0);
    assert_int_equal(stk_loop_new(&b->loop, &err), 0);
    assert_int_equal(stk_bus_sqlite_new(b->file, b->loop, &b->bus, &err), 0);
    ack a = {0};
    for (int i = 0; i < 2000; i++)
        bench_send(b, 0, i, &a);
    bench_until(b, a.done == 2000);
    assert_true(a.published >= 10 && a.published < 2000);
    assert_int_equal(a.err.code, STK_E_BUSY);
    assert_int_equal(count_messages(b, "name = 't'"), (int64_t)a.published);
}

static int open_code(const char *path, int32_t partitions)
{
    stk_bus_topic topic = {"t", partitions, false};
    stk_bus_file_spec spec = {.path = path, .topics = &topic, .ntopics = 1};
    stk_bus_file *file = NULL;
    stk_err err = {0};
    int rc = stk_bus_file_open(&spec, &file, &err);
    if (rc == 0)
        stk_bus_file_close(file);
    else if (!strstr(err.detail, rc == -STK_E_CONFIG ? "topic t" : path))
        fail_msg("the error does not name it: %s", err.detail);
    return rc;
}

static void spoil(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void a_file_that_is_not_ours_is_refused(void **state)
{
    bench *b = *state;
    char path[200];
    snprintf(path, sizeof(path), "%s/other.db", b->folder);
    assert_int_equal(open_code(path, 3), 0);
    assert_int_equal(open_code(path, 3), 0);
    assert_int_equal(open_code(path, 4), -STK_E_CONFIG);
    assert_int_equal(open_code(path, 0), -STK_E_CONFIG);
    spoil(path, "PRAGMA user_version = 99");
    assert_int_equal(open_code(path, 3), -STK_E_NEWER);
    spoil(path, "PRAGMA user_version = 1; PRAGMA application_id = 5");
    assert_int_equal(open_code(path, 3), -STK_E_CORRUPT);
    int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
    for (int i = 0; i < 512; i++)
        assert_int_equal(write(fd, "not a database, surely not", 26), 26);
    close(fd);
    assert_int_equal(open_code(path, 3), -STK_E_CORRUPT);
    assert_int_equal(open_code("/nonexistent/bus.db", 3), -STK_E_SYSTEM);
}

static void an_injected_failure_has_the_right_outcome(void **state)
{
    bench *b = *state;
    static const struct {
        const char *points;
        stk_publish_outcome outcome;
        int64_t stored;
    } rows[] = {{"bus.publish.before_commit=error", STK_PUBLISH_REFUSED, 0},
                {"bus.publish.after_commit=error", STK_PUBLISH_UNKNOWN, 1}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_err err;
        setenv("STK_FAILPOINTS", rows[i].points, 1);
        assert_int_equal(stk_failpoints_init(&err), 0);
        ack a = {0};
        bench_send(b, 0, (int)i, &a);
        bench_until(b, a.done);
        assert_int_equal(a.outcome, rows[i].outcome);
        assert_int_equal(a.err.code, STK_E_INJECTED);
        assert_int_equal(count_messages(b, "1"), rows[i].stored);
    }
    unsetenv("STK_FAILPOINTS");
    stk_err err;
    assert_int_equal(stk_failpoints_init(&err), 0);
}

static void the_log_does_not_grow_without_end(void **state)
{
    bench *b = *state;
    char wal[200];
    snprintf(wal, sizeof(wal), "%s-wal", b->path);
    ack a = {0};
    int64_t most = 0;
    for (int i = 0; i < 400; i++) {
        for (int k = 0; k < 10; k++)
            bench_send_big(b, k % 2, 30000, &a);
        bench_until(b, a.done == (size_t)(i + 1) * 10);
        FILE *f = fopen(wal, "rb");
        assert_non_null(f);
        fseek(f, 0, SEEK_END);
        most = ftell(f) > most ? ftell(f) : most;
        fclose(f);
    }
    print_message("120 MB written, the WAL was at most %lld bytes\n", (long long)most);
    assert_true(most < 64 << 20); /* half of it: a sanitizer on a busy machine checkpoints late */
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, bench_setup, bench_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(trimming_stops_at_what_a_group_has_still_to_do),
        CASE(offsets_go_on_after_everything_was_trimmed),
        CASE(starting_in_the_trimmed_part_is_an_alarm),
        CASE(compaction_keeps_the_newest_of_each_key),
        CASE(a_full_queue_answers_busy),
        CASE(a_damaged_page_is_an_alarm_and_nothing_is_skipped),
        CASE(a_file_that_is_not_ours_is_refused),
        CASE(an_injected_failure_has_the_right_outcome),
        CASE(the_log_does_not_grow_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
