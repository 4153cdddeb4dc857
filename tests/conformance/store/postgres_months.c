/* Months: partitions made on demand, dropped by retention, and what stays provable. */
#include "tests/conformance/store/postgres.h"

#define JANUARY (31 * 24 * 60) /* minutes, as make_row counts */

static int count(world *w, const char *sql)
{
    return (int)strtol(served_sql(w->self, sql), NULL, 10);
}

static void append_minutes(world *w, int32_t partition, int64_t from, int run, const int *minutes, size_t n)
{
    stk_audit_row rows[64];
    for (size_t i = 0; i < n; i++)
        rows[i] = make_row(run, minutes[i]);
    answer a = append(w, AUDIT, partition, from, from + (int64_t)n, rows, n);
    if (a.err.code)
        fail_msg("%s", a.err.detail);
    assert_int_equal(a.stored, n);
}

static void rows_lie_in_the_month_of_their_id(void **state)
{
    world *w = *state;
    static const int minutes[] = {0, JANUARY - 1, JANUARY, JANUARY * 3, -JANUARY * 80, JANUARY * 1000};
    append_minutes(w, 0, 0, 1, minutes, STK_COUNT(minutes));
    assert_int_equal(count(w, "SELECT count(*) FROM audit_2026_01"), 2);
    assert_int_equal(count(w, "SELECT count(*) FROM audit_2026_02"), 1);
    assert_int_equal(count(w, "SELECT count(*) FROM audit_2026_04"), 1);
    assert_int_equal(count(w, "SELECT count(*) FROM audit_before"), 1);
    assert_int_equal(count(w, "SELECT count(*) FROM audit_after"), 1);
    stk_audit_row rows[STK_COUNT(minutes)];
    for (size_t i = 0; i < STK_COUNT(minutes); i++)
        rows[i] = make_row(1, minutes[i]);
    assert_int_equal(append(w, AUDIT, 0, 6, 12, rows, 6).stored, 0);
    answer a = ask_rows(w, &(stk_audit_query){.limit = 10, .oldest_first = true});
    assert_int_equal(a.n, 6);
    assert_string_equal(a.ids[0], rows[4].id);
    assert_string_equal(a.ids[5], rows[5].id);
    assert_true(ask_verify(w).report.ok);
}

static stk_keyring *make_ring(char path[64])
{
    stk_keyring *ring = NULL;
    stk_err err;
    snprintf(path, 64, "/tmp/stk-ring-%d", getpid());
    assert_int_equal(stk_keyring_create(path, &err), 0);
    assert_int_equal(stk_keyring_load(path, &ring, &err), 0);
    return ring;
}

static stk_retained retain(world *w, stk_keyring *ring, int minutes)
{
    served *s = w->self;
    stk_retained r;
    stk_err err;
    stk_store_postgres_spec spec = {.conninfo = s->conninfo, .ring = ring};
    stk_wall before = {1767225600LL * 1000000000 + minutes * 60LL * 1000000000};
    if (stk_store_postgres_retain(&spec, before, &r, &err) < 0)
        fail_msg("%s", err.detail);
    return r;
}

static answer verify_with(world *w, const stk_keyring *ring)
{
    ((served *)w->self)->ring = ring;
    world_restart(w);
    return ask_verify(w);
}

static void fill_around_a_month(world *w)
{
    static const int mixed[] = {JANUARY - 3, JANUARY, JANUARY - 2, JANUARY - 1, JANUARY + 1, JANUARY + 2};
    static const int early[] = {1, 2, 3}, late[] = {JANUARY + 5, JANUARY + 6};
    append_minutes(w, 0, 0, 1, early, STK_COUNT(early));
    append_minutes(w, 0, 3, 1, mixed, STK_COUNT(mixed));
    append_minutes(w, 1, 0, 2, late, STK_COUNT(late));
    append_minutes(w, 2, 0, 3, early, STK_COUNT(early));
}

static void a_dropped_month_leaves_chains_that_still_verify(void **state)
{
    world *w = *state;
    char path[64];
    stk_keyring *ring = make_ring(path);
    fill_around_a_month(w);
    answer whole = ask_verify(w);
    assert_int_equal(retain(w, ring, JANUARY - 1).months, 0);
    stk_retained r = retain(w, ring, JANUARY);
    assert_int_equal(r.months, 1);
    assert_int_equal(r.rows, 9);
    assert_int_equal(count(w, "SELECT count(*) FROM audit"), 5);
    answer a = verify_with(w, ring);
    if (!a.report.ok)
        fail_msg("%s at %d/%lld", a.report.why, a.report.bad_partition, (long long)a.report.bad_seq);
    assert_int_equal(a.report.rows, 5);
    assert_int_equal(a.report.chains, 3);
    assert_memory_equal(a.report.head, whole.report.head, STK_SHA256);
    static const int next[] = {JANUARY + 20};
    append_minutes(w, 0, 9, 1, next, 1);
    append_minutes(w, 2, 3, 3, next, 1);
    assert_true(ask_verify(w).report.ok);
    r = retain(w, ring, JANUARY * 3);
    assert_int_equal(r.rows, 7);
    a = ask_verify(w);
    assert_true(a.report.ok);
    assert_int_equal(a.report.rows, 0);
    stk_keyring_free(ring);
    unlink(path);
}

static void a_checkpoint_is_believed_only_under_its_seal(void **state)
{
    static const char *const lies[] = {
        NULL,
        "DELETE FROM checkpoints WHERE partition = 0 AND first = 6",
        "UPDATE checkpoints SET after = decode(repeat('11', 32), 'hex') WHERE partition = 0 AND first = 6",
        "UPDATE checkpoints SET before = decode(repeat('11', 32), 'hex') WHERE partition = 0 AND first = 6",
        "UPDATE checkpoints SET seal = decode('00', 'hex') WHERE partition = 0 AND first = 6",
        "UPDATE checkpoints SET last = 8 WHERE partition = 0 AND first = 6",
    };
    world *w = *state;
    char path[64];
    stk_keyring *ring = make_ring(path);
    for (size_t i = 0; i < STK_COUNT(lies); i++) {
        fill_around_a_month(w);
        assert_int_equal(retain(w, ring, JANUARY).months, 1);
        if (lies[i])
            assert_string_equal(served_sql(w->self, lies[i]), "1");
        answer a = verify_with(w, lies[i] ? ring : NULL);
        assert_false(a.report.ok);
        assert_int_equal(a.report.bad_partition, 0);
        assert_int_equal(a.report.bad_seq, lies[i] ? 6 : 1);
        world_renew(w);
    }
    stk_keyring_free(ring);
    unlink(path);
}

const struct CMUnitTest month_tests[] = {
    CASE(rows_lie_in_the_month_of_their_id),
    CASE(a_dropped_month_leaves_chains_that_still_verify),
    CASE(a_checkpoint_is_believed_only_under_its_seal),
};
const size_t nmonth_tests = STK_COUNT(month_tests);
