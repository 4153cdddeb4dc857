/* A server that stops, kills, cuts, refuses: nothing is lost, nothing is there twice. */
#include "proto/base/fail.h"
#include "tests/conformance/store/postgres.h"

static served *server_of(world *w)
{
    return w->self;
}

static int count(world *w, const char *sql)
{
    return (int)strtol(served_sql(server_of(w), sql), NULL, 10);
}

static void send_run(world *w, int run, int64_t from, int n, answer *a)
{
    stk_audit_row *rows = stk_xcalloc((size_t)n, sizeof(*rows));
    for (int i = 0; i < n; i++)
        rows[i] = make_row(run, i);
    *a = (answer){0};
    stk_store_append(
        w->store,
        &(stk_store_batch){.topic = AUDIT, .from = from, .to = from + n, .rows = rows, .nrows = (size_t)n},
        on_done, a);
    free(rows);
}

static bool again(const answer *a)
{
    return a->err.code && a->err.code != STK_E_STALE && stk_code_retryable(a->err.code);
}

/* As a consumer does: the same batch until it is stored, or was. */
static answer send_until_stored(world *w, int run, int64_t from, int n)
{
    answer a;
    stk_mono end = stk_mono_add(stk_mono_now(), stk_sec(40));
    do {
        send_run(w, run, from, n, &a);
        spin_until(w, a.done);
        turn_loop(w->loop);
    } while (again(&a) && stk_mono_before(stk_mono_now(), end));
    if (a.err.code && a.err.code != STK_E_STALE)
        fail_msg("%s", a.err.detail);
    assert_int_equal(a.offset, from + n);
    return a;
}

static void wait_ready(world *w, bool want)
{
    spin_until(w, stk_store_ready(w->store) == want);
}

/* Counted by SQL of our own, then by the chain. */
static void nothing_lost_nothing_twice(world *w, int rows)
{
    assert_int_equal(count(w, "SELECT count(*) FROM audit"), rows);
    assert_int_equal(count(w, "SELECT count(DISTINCT id) FROM audit"), rows);
    assert_int_equal(count(w, "SELECT max(seq) FROM audit"), rows);
    assert_int_equal(count(w, "SELECT next FROM offsets WHERE topic = 'stk.audit' AND partition = 0"), rows);
    answer v = ask_verify(w);
    if (!v.report.ok)
        fail_msg("%s at %lld", v.report.why, (long long)v.report.bad_seq);
    assert_int_equal(v.report.rows, rows);
}

static void arm(world *w, const char *points)
{
    stk_err err;
    stk_store_close(w->store);
    stk_store_postgres_close(server_of(w)->pg);
    if (points)
        setenv("STK_FAILPOINTS", points, 1);
    else
        unsetenv("STK_FAILPOINTS");
    assert_int_equal(stk_failpoints_init(&err), 0);
    served_open(server_of(w));
    w->store = factory->open(w->self, w->loop);
}

static void a_server_that_ends_in_mid_batch_loses_nothing_and_doubles_nothing(void **state)
{
    world *w = *state;
    static const char *const ends[] = {"stop", "abort", "kill"};
    enum { ROWS = 500 };
    int64_t from = 0;
    for (size_t i = 0; i < STK_COUNT(ends); i++) {
        answer a;
        arm(w, "store.postgres.before_commit=sleep:4000@2");
        send_until_stored(w, (int)from, from, ROWS);
        from += ROWS;
        send_run(w, (int)from, from, ROWS, &a);
        stk_mono end = stk_mono_add(stk_mono_now(), stk_sec(10));
        while (count(w, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'stockade' AND state "
                        "= 'idle in "
                        "transaction'") == 0)
            assert_true(stk_mono_before(stk_mono_now(), end) && !a.done);
        server_order(ends[i]);
        spin_until(w, a.done);
        assert_int_equal(a.err.code, STK_E_UNAVAILABLE);
        wait_ready(w, false);
        server_order("start");
        answer told = send_until_stored(w, (int)from, from, ROWS);
        assert_int_equal(told.err.code, STK_OK);
        from += ROWS;
    }
    arm(w, NULL);
    nothing_lost_nothing_twice(w, (int)from);
}

static void an_answer_that_was_lost_is_learned_from_the_offset(void **state)
{
    world *w = *state;
    arm(w, "store.postgres.after_commit=error@1");
    answer a;
    send_run(w, 1, 0, 100, &a);
    spin_until(w, a.done);
    assert_int_equal(a.err.code, STK_E_INJECTED);
    a = send_until_stored(w, 1, 0, 100);
    assert_int_equal(a.err.code, STK_E_STALE);
    arm(w, NULL);
    nothing_lost_nothing_twice(w, 100);
}

static void cut_connections_come_back(void **state)
{
    world *w = *state;
    for (int i = 0; i < 10; i++) {
        answer a;
        send_run(w, i, i * 200, 200, &a);
        served_sql(server_of(w), "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                                 " WHERE application_name = 'stockade' AND pid <> pg_backend_pid()");
        spin_until(w, a.done);
        if (a.err.code)
            assert_int_equal(a.err.code, STK_E_UNAVAILABLE);
        send_until_stored(w, i, i * 200, 200);
    }
    wait_ready(w, true);
    /* The reader finds out that its own was cut when it asks. */
    for (int i = 0; i < 100 && ask_result(w, "default", "run-00000000000000000000000000").err.code; i++)
        continue;
    nothing_lost_nothing_twice(w, 2000);
}

static void while_the_server_is_away_calls_fail_soon(void **state)
{
    world *w = *state;
    fill(w, 0, 0, 1, 5);
    server_order("stop");
    wait_ready(w, false);
    for (int i = 0; i < 20; i++) {
        answer a, o;
        stk_mono begun = stk_mono_now();
        send_run(w, 1, 5, 5, &a);
        spin_until(w, a.done);
        assert_int_equal(a.err.code, STK_E_UNAVAILABLE);
        o = ask_offset(w, AUDIT, 0);
        assert_int_equal(o.err.code, STK_E_UNAVAILABLE);
        assert_true(stk_span_ms(stk_mono_sub(stk_mono_now(), begun)) < 5000);
    }
    server_order("start");
    wait_ready(w, true);
    assert_int_equal(ask_offset(w, AUDIT, 0).offset, 5);
}

static void a_store_opened_before_its_server_waits_for_it(void **state)
{
    world *w = *state;
    stk_store_close(w->store);
    stk_store_postgres_close(server_of(w)->pg);
    server_order("stop");
    served_open(server_of(w));
    w->store = factory->open(w->self, w->loop);
    assert_int_equal(ask_offset(w, AUDIT, 0).err.code, STK_E_UNAVAILABLE);
    assert_false(stk_store_ready(w->store));
    server_order("start");
    wait_ready(w, true);
    fill(w, 0, 0, 1, 5);
}

static void a_row_the_server_refuses_is_named_and_the_rest_can_be_stored(void **state)
{
    world *w = *state;
    enum { ROWS = 300 };
    static const int bad[] = {0, 1, 57, 255, 299};
    fill(w, 7, 0, 9, 1);
    served_sql(server_of(w),
               "ALTER TABLE audit ADD CONSTRAINT refused CHECK (action <> '" STK_AUDIT_REFUSAL "')");
    for (size_t k = 0; k < STK_COUNT(bad); k++) {
        stk_audit_row rows[ROWS];
        answer a = {0}, other = {0};
        for (int i = 0; i < ROWS; i++)
            rows[i] = make_row(1, i);
        snprintf(rows[bad[k]].action, sizeof(rows[0].action), STK_AUDIT_REFUSAL);
        stk_audit_row fine = make_row(2, (int)k);
        stk_store_append(w->store,
                         &(stk_store_batch){.topic = AUDIT, .to = ROWS, .rows = rows, .nrows = ROWS}, on_done,
                         &a);
        stk_store_append(w->store,
                         &(stk_store_batch){.topic = AUDIT,
                                            .partition = 3,
                                            .from = (int64_t)k,
                                            .to = (int64_t)k + 1,
                                            .rows = &fine,
                                            .nrows = 1},
                         on_done, &other);
        spin_until(w, a.done && other.done);
        assert_int_equal(a.err.code, STK_E_FIELD);
        assert_int_equal(a.bad, bad[k]);
        assert_int_equal(other.err.code, STK_OK);
        assert_int_equal(ask_offset(w, AUDIT, 0).offset, 0);
    }
    assert_int_equal(ask_verify(w).report.rows, 1 + STK_COUNT(bad));
    fill(w, 0, 0, 1, ROWS);
}

static void an_event_the_server_refuses_is_named(void **state)
{
    world *w = *state;
    char run[STK_ID_SIZE];
    run_name(2, run);
    ask_offset(w, EVENTS, 0);
    served_sql(server_of(w), "ALTER TABLE results ADD CONSTRAINT refused CHECK (tenant <> 't1')");
    stk_event events[] = {make_event(0, 1, "finished", "exited"), make_event(2, 2, "finished", "exited"),
                          make_event(1, 3, "finished", "oom"), make_event(4, 4, "finished", "exited")};
    answer a = append_events(w, 0, events, 4);
    assert_int_equal(a.err.code, STK_E_FIELD);
    assert_int_equal(a.bad, 2);
    assert_false(ask_result(w, "", run).found);
    events[2] = make_event(6, 3, "finished", "oom");
    assert_int_equal(append_events(w, 0, events, 4).stored, 4);
    assert_true(ask_result(w, "t0", run).found);
}

/* Two consumers of the same partitions, each sure that it is the only one. */
static void rivals_store_each_row_once(void **state)
{
    world *w = *state;
    enum { RIVALS = 3, BATCHES = 30, ROWS = 20 };
    served *rivals[RIVALS];
    stk_store *stores[RIVALS];
    answer a[RIVALS] = {0};
    int at[RIVALS] = {0}, stored = 0;
    for (int r = 0; r < RIVALS; r++) {
        rivals[r] = (served *)(void *)stk_xmemdup(w->self, sizeof(served));
        served_open(rivals[r]);
        stores[r] = factory->open(rivals[r], w->loop);
    }
    for (bool more = true; more;) {
        for (int r = 0; r < RIVALS; r++) {
            stk_audit_row rows[ROWS];
            for (int i = 0; i < ROWS; i++)
                rows[i] = make_row(at[r] % BATCHES, i);
            a[r] = (answer){0};
            stk_store_append(stores[r],
                             &(stk_store_batch){.topic = AUDIT,
                                                .partition = r == 2, /* the third: the same ids elsewhere */
                                                .from = at[r] * ROWS,
                                                .to = at[r] * ROWS + ROWS,
                                                .rows = rows,
                                                .nrows = ROWS},
                             on_done, &a[r]);
        }
        more = false;
        for (int r = 0; r < RIVALS; r++) {
            spin_until(w, a[r].done);
            assert_true(a[r].err.code == STK_OK || a[r].err.code == STK_E_STALE);
            at[r] = (int)(a[r].offset / ROWS);
            stored += (int)a[r].stored;
            more = more || at[r] < BATCHES;
        }
    }
    assert_int_equal(stored, BATCHES * ROWS);
    assert_int_equal(count(w, "SELECT count(DISTINCT id) FROM audit"), BATCHES * ROWS);
    answer v = ask_verify(w);
    assert_true(v.report.ok);
    assert_int_equal(v.report.rows, BATCHES * ROWS);
    for (int r = 0; r < RIVALS; r++) {
        stk_store_close(stores[r]);
        stk_store_postgres_close(rivals[r]->pg);
        free(rivals[r]);
    }
}

static void many_may_start_at_once(void **state)
{
    world *w = *state;
    enum { MANY = 6 };
    served all[MANY];
    stk_store *stores[MANY];
    served_sql(server_of(w), "CREATE SCHEMA IF NOT EXISTS crowd");
    for (int i = 0; i < MANY; i++) {
        all[i] = *server_of(w);
        snprintf(all[i].conninfo, sizeof(all[i].conninfo), "%s options='-c search_path=crowd'",
                 getenv("STK_PG_CONNINFO"));
        served_open(&all[i]);
        stores[i] = factory->open(&all[i], w->loop);
    }
    for (int i = 0; i < MANY; i++)
        spin_until(w, stk_store_ready(stores[i]));
    assert_string_equal(served_sql(&all[0], "SELECT count(*) FROM schema_version"), "1");
    for (int i = 0; i < MANY; i++) {
        stk_store_close(stores[i]);
        stk_store_postgres_close(all[i].pg);
    }
    served_sql(&all[0], "DROP SCHEMA crowd CASCADE");
}

static void a_newer_schema_is_left_alone(void **state)
{
    world *w = *state;
    fill(w, 0, 0, 1, 3);
    served_sql(server_of(w), "INSERT INTO schema_version(version) VALUES(1000)");
    world_restart(w);
    assert_int_equal(ask_offset(w, AUDIT, 0).err.code, STK_E_NEWER);
    assert_false(stk_store_ready(w->store));
    served_sql(server_of(w), "DELETE FROM schema_version WHERE version = 1000");
    wait_ready(w, true);
}

static void a_reader_without_rights_reads_and_writes_nothing(void **state)
{
    world *w = *state;
    fill(w, 0, 0, 1, 12);
    server_of(w)->read_only = true;
    world_restart(w);
    wait_ready(w, true);
    assert_int_equal(ask_rows(w, &(stk_audit_query){.limit = 100}).n, 12);
    assert_true(ask_verify(w).report.ok);
    stk_audit_row row = make_row(2, 0);
    answer a = append(w, AUDIT, 0, 12, 13, &row, 1);
    assert_int_equal(a.err.code, STK_E_USAGE);
    server_of(w)->read_only = false;
}

static void what_a_connection_string_says_is_used(void **state)
{
    world *w = *state;
    static const struct {
        const char *more;
        bool tls, works;
    } rows[] = {
        {"", true, true},
        {" sslrootcert=/dev/null", true, false},
        {" sslmode=require", false, true},
        {" password=wrong", false, false},
        {" port=1", false, false},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        served s = *server_of(w);
        snprintf(s.conninfo, sizeof(s.conninfo), "%s%s options='-c search_path=%s'",
                 getenv(rows[i].tls ? "STK_PG_CONNINFO_TLS" : "STK_PG_CONNINFO"), rows[i].more, s.schema);
        served_open(&s);
        stk_store *store = factory->open(&s, w->loop);
        answer a = {0};
        stk_store_offset(store, AUDIT, 0, on_done, &a);
        spin_until(w, a.done);
        if ((a.err.code == STK_OK) != rows[i].works)
            fail_msg("row %zu: %s", i, a.err.detail);
        assert_null(strstr(a.err.detail, "password="));
        stk_store_close(store);
        stk_store_postgres_close(s.pg);
    }
    stk_store_pg *pg;
    stk_err err;
    assert_int_equal(
        stk_store_postgres_open(&(stk_store_postgres_spec){.conninfo = "no such=thing"}, &pg, &err),
        -STK_E_CONFIG);
}

const struct CMUnitTest fault_tests[] = {
    CASE(a_server_that_ends_in_mid_batch_loses_nothing_and_doubles_nothing),
    CASE(an_answer_that_was_lost_is_learned_from_the_offset),
    CASE(cut_connections_come_back),
    CASE(while_the_server_is_away_calls_fail_soon),
    CASE(a_store_opened_before_its_server_waits_for_it),
    CASE(a_row_the_server_refuses_is_named_and_the_rest_can_be_stored),
    CASE(an_event_the_server_refuses_is_named),
    CASE(rivals_store_each_row_once),
    CASE(many_may_start_at_once),
    CASE(a_newer_schema_is_left_alone),
    CASE(a_reader_without_rights_reads_and_writes_nothing),
    CASE(what_a_connection_string_says_is_used),
};
const size_t nfault_tests = STK_COUNT(fault_tests);
