/* Filters, order, cursors. */
#include "tests/conformance/store/suite.h"

#define START  (1767225600LL * 1000000000)
#define MINUTE (60LL * 1000000000)

static void fill_three_runs(world *w)
{
    for (int run = 0; run < 3; run++)
        fill(w, run, 0, run, 12);
}

static void filters_choose_rows(void **state)
{
    world *w = *state;
    fill_three_runs(w);
    char run1[STK_ID_SIZE];
    run_name(1, run1);
    const struct {
        const char *tenant, *agent, *run, *action;
        int64_t since, until;
        size_t want;
    } rows[] = {
        {"", "", "", "", 0, 0, 36},
        {"t0", "", "", "", 0, 0, 24},
        {"t1", "", "", "", 0, 0, 12},
        {"t9", "", "", "", 0, 0, 0},
        {"", "agent-2", "", "", 0, 0, 12},
        {"t1", "agent-2", "", "", 0, 0, 0},
        {"", "", run1, "", 0, 0, 12},
        {"t1", "", run1, "", 0, 0, 12},
        {"t0", "", run1, "", 0, 0, 0},
        {"", "", "run-none", "", 0, 0, 0},
        {"", "", "", STK_AUDIT_LAUNCH, 0, 0, 9},
        {"", "", "", "agent_sandbox.egress.*", 0, 0, 18},
        {"", "", "", "agent_sandbox.*", 0, 0, 36},
        {"", "", "", "agent_sandbox.egress.", 0, 0, 0},
        {"", "", "", "agent_sandbox.%.*", 0, 0, 0},
        {"t0", "", "", "agent_sandbox.egress.*", 0, 0, 12},
        {"", "", "", "", START + 6 * MINUTE, 0, 18},
        {"", "", "", "", START + 6 * MINUTE + 1, 0, 15},
        {"", "", "", "", 0, START + 6 * MINUTE, 18},
        {"", "", "", "", 0, START + 6 * MINUTE + 1, 21},
        {"t1", "", run1, "", START + MINUTE, START + 3 * MINUTE, 2},
        {"", "", "' OR 1=1 --", "", 0, 0, 0},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_audit_query q = {.limit = 1000, .since = {rows[i].since}, .until = {rows[i].until}};
        snprintf(q.tenant, sizeof(q.tenant), "%s", rows[i].tenant);
        snprintf(q.agent, sizeof(q.agent), "%s", rows[i].agent);
        snprintf(q.run, sizeof(q.run), "%s", rows[i].run);
        snprintf(q.action, sizeof(q.action), "%s", rows[i].action);
        answer a = ask_rows(w, &q);
        assert_int_equal(a.err.code, STK_OK);
        if (a.n != rows[i].want)
            fail_msg("row %zu: %zu, not %zu", i, a.n, rows[i].want);
        assert_string_equal(a.cursor, "");
    }
}

static size_t walk(world *w, stk_audit_query q, int64_t limit, char ids[64][STK_ID_SIZE])
{
    size_t n = 0;
    q.limit = limit;
    for (int pages = 0; pages < 64; pages++) {
        answer a = ask_rows(w, &q);
        assert_int_equal(a.err.code, STK_OK);
        assert_true(a.n <= (size_t)limit && (a.n > 0 || !a.cursor[0]));
        for (size_t i = 0; i < a.n; i++)
            memcpy(ids[n++], a.ids[i], STK_ID_SIZE);
        if (!a.cursor[0])
            return n;
        memcpy(q.cursor, a.cursor, sizeof(q.cursor));
    }
    fail_msg("the cursor does not end");
    return 0;
}

static void a_cursor_walks_all_rows_once_in_order(void **state)
{
    world *w = *state;
    fill_three_runs(w);
    static const int64_t limits[] = {1, 2, 5, 12, 35, 36, 37, 1000};
    char whole[64][STK_ID_SIZE], ids[64][STK_ID_SIZE];
    for (int oldest = 0; oldest < 2; oldest++) {
        assert_int_equal(walk(w, (stk_audit_query){.oldest_first = oldest}, 1000, whole), 36);
        for (size_t i = 0; i < STK_COUNT(limits); i++) {
            assert_int_equal(walk(w, (stk_audit_query){.oldest_first = oldest}, limits[i], ids), 36);
            for (int k = 0; k < 36; k++)
                assert_string_equal(ids[k], whole[k]);
        }
        for (int k = 1; k < 36; k++) {
            int64_t a = stk_id_time(stk_str_of(whole[k - 1])).ns, b = stk_id_time(stk_str_of(whole[k])).ns;
            assert_true(oldest ? a <= b : a >= b);
        }
    }
}

static void a_cursor_stays_right_while_rows_arrive(void **state)
{
    world *w = *state;
    fill(w, 0, 0, 1, 10);
    stk_audit_query q = {.limit = 4};
    answer a = ask_rows(w, &q);
    memcpy(q.cursor, a.cursor, sizeof(q.cursor));
    stk_audit_row newer = make_row(1, 50);
    assert_int_equal(append(w, AUDIT, 0, 10, 11, &newer, 1).err.code, STK_OK);
    char ids[64][STK_ID_SIZE];
    assert_int_equal(walk(w, q, 4, ids), 6);
}

static void a_query_that_makes_no_sense_is_refused(void **state)
{
    world *w = *state;
    static const struct {
        int64_t limit;
        const char *cursor, *pointer;
    } rows[] = {
        {0, "", "/limit"},       {1001, "", "/limit"},      {-1, "", "/limit"},
        {10, "x", "/cursor"},    {10, "12", "/cursor"},     {10, "12.", "/cursor"},
        {10, ".aud", "/cursor"}, {10, "-1.aud", "/cursor"}, {10, "99999999999999999999.aud", "/cursor"}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_audit_query q = {.limit = rows[i].limit};
        snprintf(q.cursor, sizeof(q.cursor), "%s", rows[i].cursor);
        answer a = ask_rows(w, &q);
        assert_int_equal(a.err.code, STK_E_FIELD);
        assert_string_equal(a.err.pointer, rows[i].pointer);
        assert_int_equal(a.n, 0);
    }
}

const struct CMUnitTest query_tests[] = {
    CASE(filters_choose_rows),
    CASE(a_cursor_walks_all_rows_once_in_order),
    CASE(a_cursor_stays_right_while_rows_arrive),
    CASE(a_query_that_makes_no_sense_is_refused),
};
const size_t nquery_tests = STK_COUNT(query_tests);
