/* The consumer on the embedded bus and store in a directory of its own. */
#include "audit-consumer/audit_consumer.h"
#include "proto/base/fd.h"
#include "proto/bus/bus_sqlite.h"
#include "proto/store/store_sqlite.h"
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

typedef struct world {
    char dir[64];
    stk_loop *loop;
    stk_bus_file *bus_file;
    stk_store_file *store_file;
    stk_bus *bus;
    stk_store *store;
    stk_auditor *auditor;
    size_t published, found;
    bool answered;
    stk_chain_report report;
} world;

static void must(int rc, const stk_err *err)
{
    if (rc < 0)
        fail_msg("%s", err->detail);
}

static void world_open(world *w)
{
    static const stk_bus_topic topics[] = {
        {STK_TOPIC_AUDIT, 2, false}, {STK_TOPIC_EVENTS, 1, false}, {STK_TOPIC_DEAD, 1, false}};
    char path[128];
    stk_err err;
    must(stk_loop_new(&w->loop, &err), &err);
    snprintf(path, sizeof(path), "%s/bus.db", w->dir);
    stk_bus_file_spec spec = {.path = path, .topics = topics, .ntopics = STK_COUNT(topics)};
    must(stk_bus_file_open(&spec, &w->bus_file, &err), &err);
    must(stk_bus_sqlite_new(w->bus_file, w->loop, &w->bus, &err), &err);
    snprintf(path, sizeof(path), "%s/audit.db", w->dir);
    must(stk_store_file_open(path, NULL, &w->store_file, &err), &err);
    must(stk_store_sqlite_new(w->store_file, w->loop, &w->store, &err), &err);
    stk_auditor_spec audit = {.loop = w->loop, .bus = w->bus, .store = w->store};
    must(stk_auditor_new(&audit, &w->auditor, &err), &err);
}

static void world_close(world *w)
{
    stk_auditor_free(w->auditor);
    stk_store_close(w->store);
    stk_store_file_close(w->store_file);
    stk_bus_close(w->bus);
    stk_bus_file_close(w->bus_file);
    stk_loop_free(w->loop);
}

static void stop(void *arg)
{
    stk_loop_stop(arg);
}

/* Runs the loop until the condition holds; a test fails after ten seconds. */
static void until(world *w, bool (*holds)(world *w))
{
    stk_mono deadline = stk_mono_add(stk_mono_now(), stk_sec(10));
    while (!holds(w)) {
        assert_true(stk_mono_before(stk_mono_now(), deadline));
        stk_timer *tick = stk_timer_new(w->loop, stop, w->loop);
        stk_timer_set(tick, stk_ms(5));
        stk_loop_run(w->loop);
        stk_timer_free(tick);
    }
}

static int setup(void **state)
{
    world *w = stk_xcalloc(1, sizeof(*w));
    snprintf(w->dir, sizeof(w->dir), "/tmp/stk-audit-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    world_open(w);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    world *w = *state;
    stk_err err;
    world_close(w);
    must(stk_rmtree(AT_FDCWD, w->dir, &err), &err);
    free(w);
    return 0;
}

static void on_published(stk_publish_outcome outcome, int32_t partition, int64_t offset, const stk_err *err,
                         void *arg)
{
    world *w = arg;
    assert_int_equal(outcome, STK_PUBLISHED);
    w->published++;
}

static void publish(world *w, const char *key, stk_str value)
{
    stk_bus_out out = {.topic = STK_TOPIC_AUDIT, .partition = -1, .key = stk_str_of(key), .value = value};
    stk_bus_publish(w->bus, &out, on_published, w);
}

static void publish_row(world *w, uint64_t n)
{
    stk_audit_row row = {
        .v = 1, .time = stk_wall_now(), .action = STK_AUDIT_LAUNCH, .actor = "test", .tenant = "default"};
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(4096);
    char key[32];
    stk_err err;
    stk_audit_id((stk_wall){1700000000000000000}, "subject", "assignment", STK_AUDIT_LAUNCH, n, row.id);
    must(stk_audit_encode(&row, &text, &err), &err);
    snprintf(key, sizeof(key), "key-%llu", (unsigned long long)n);
    publish(w, key, stk_buf_view(&text));
}

static bool all_taken(world *w)
{
    stk_auditor_stats s = stk_auditor_stats_get(w->auditor);
    return s.stored + s.repeated + s.dead >= w->published && w->published && s.waiting == 0;
}

static bool published_500(world *w)
{
    return w->published == 500 && all_taken(w);
}

static void on_verified(const stk_err *err, const stk_chain_report *report, void *arg)
{
    world *w = arg;
    assert_null(err);
    w->report = *report;
    w->answered = true;
}

static bool answered(world *w)
{
    return w->answered;
}

static void verify(world *w, int64_t rows)
{
    w->answered = false;
    stk_store_verify(w->store, on_verified, w);
    until(w, answered);
    assert_true(w->report.ok);
    assert_int_equal(w->report.rows, rows);
}

static void every_row_is_stored_once_and_the_chain_is_whole(void **state)
{
    world *w = *state;
    for (uint64_t n = 0; n < 500; n++)
        publish_row(w, n);
    until(w, published_500);
    assert_int_equal(stk_auditor_stats_get(w->auditor).stored, 500);
    verify(w, 500);
}

static bool published_4(world *w)
{
    return w->published == 4 && all_taken(w);
}

static void a_repeated_row_is_dropped_and_garbage_goes_to_the_dead(void **state)
{
    world *w = *state;
    publish_row(w, 1);
    publish_row(w, 1);
    publish(w, "key-1", STK_STR("not a row"));
    publish_row(w, 2);
    until(w, published_4);
    stk_auditor_stats s = stk_auditor_stats_get(w->auditor);
    assert_int_equal(s.stored, 2);
    assert_int_equal(s.dead, 1);
    verify(w, 2);
}

static bool published_20(world *w)
{
    return w->published == 20 && all_taken(w);
}

static bool quiet(world *w)
{
    return stk_auditor_quiet(w->auditor);
}

static void a_restart_stores_nothing_twice_and_skips_nothing(void **state)
{
    world *w = *state;
    for (uint64_t n = 0; n < 20; n++)
        publish_row(w, n);
    until(w, published_20);
    until(w, quiet);
    world_close(w);
    world_open(w);
    w->published = 0;
    for (uint64_t n = 20; n < 40; n++)
        publish_row(w, n);
    until(w, published_20);
    verify(w, 40);
}

static bool newer_seen(world *w)
{
    return stk_auditor_stats_get(w->auditor).newer;
}

static void a_newer_versions_row_pauses_and_is_not_buried(void **state)
{
    world *w = *state;
    publish(w, "key-1", STK_STR("{\"v\":2,\"id\":\"whatever\"}"));
    until(w, newer_seen);
    assert_int_equal(stk_auditor_stats_get(w->auditor).dead, 0);
    verify(w, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_row_is_stored_once_and_the_chain_is_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(a_repeated_row_is_dropped_and_garbage_goes_to_the_dead, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_restart_stores_nothing_twice_and_skips_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_newer_versions_row_pauses_and_is_not_buried, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
