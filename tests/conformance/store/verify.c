/* The chains. */
#include "tests/conformance/store/suite.h"

static void an_empty_store_is_whole(void **state)
{
    world *w = *state;
    answer a = ask_verify(w);
    assert_true(a.report.ok);
    assert_int_equal(a.report.rows, 0);
    assert_int_equal(a.report.chains, 0);
}

static void each_partition_has_a_chain_and_the_head_covers_all(void **state)
{
    world *w = *state;
    uint8_t head[STK_SHA256] = {0};
    for (int run = 0; run < 4; run++) {
        fill(w, run * 2, 0, run, 100);
        answer a = ask_verify(w);
        assert_true(a.report.ok);
        assert_int_equal(a.report.chains, run + 1);
        assert_int_equal(a.report.rows, 100 * (run + 1));
        assert_memory_not_equal(a.report.head, head, STK_SHA256);
        memcpy(head, a.report.head, STK_SHA256);
    }
    world_restart(w);
    assert_memory_equal(ask_verify(w).report.head, head, STK_SHA256);
}

static void the_first_broken_row_is_named(void **state)
{
    world *w = *state;
    static const struct {
        damage what;
        int64_t seq, bad;
        bool named; /* by id */
    } rows[] = {
        {FLIP_BYTE, 1, 1, true},       {FLIP_BYTE, 57, 57, true}, {FLIP_BYTE, 100, 100, true},
        {FLIP_HASH, 30, 30, true},     {DROP_ROW, 40, 40, false}, {DROP_ROW, 1, 1, false},
        {CHANGE_COLUMN, 77, 77, true},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        for (size_t k = 0; k <= i; k++)
            fill(w, (int32_t)k, 0, (int)k, 100);
        assert_true(ask_verify(w).report.ok);
        stk_audit_row want = make_row((int)i, (int)rows[i].bad - 1);
        factory->hurt(w->self, rows[i].what, (int32_t)i, rows[i].seq);
        answer a = ask_verify(w);
        assert_false(a.report.ok);
        assert_int_equal(a.report.bad_partition, i);
        assert_int_equal(a.report.bad_seq, rows[i].bad);
        assert_string_equal(a.report.bad_id, rows[i].named ? want.id : "");
        assert_true(a.report.why[0]);
        world_renew(w);
    }
}

static void a_chain_that_was_cut_short_is_broken_or_has_another_head(void **state)
{
    world *w = *state;
    fill(w, 0, 0, 1, 50);
    answer before = ask_verify(w);
    factory->hurt(w->self, DROP_ROW, 0, 50);
    answer after = ask_verify(w);
    if (after.report.ok)
        assert_memory_not_equal(after.report.head, before.report.head, STK_SHA256);
    else
        assert_int_equal(after.report.bad_seq, 50);
}

static void a_long_chain_is_checked_whole(void **state)
{
    world *w = *state;
    fill(w, 0, 0, 1, 9000);
    answer a = ask_verify(w);
    assert_true(a.report.ok);
    assert_int_equal(a.report.rows, 9000);
    factory->hurt(w->self, FLIP_BYTE, 0, 8999);
    a = ask_verify(w);
    assert_int_equal(a.report.bad_seq, 8999);
}

const struct CMUnitTest verify_tests[] = {
    CASE(an_empty_store_is_whole),       CASE(each_partition_has_a_chain_and_the_head_covers_all),
    CASE(the_first_broken_row_is_named), CASE(a_chain_that_was_cut_short_is_broken_or_has_another_head),
    CASE(a_long_chain_is_checked_whole),
};
const size_t nverify_tests = STK_COUNT(verify_tests);
