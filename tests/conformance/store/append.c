/* Batches, offsets, duplicates, results. */
#include "tests/conformance/store/suite.h"

static void rows_and_offset_are_stored_together(void **state)
{
    world *w = *state;
    assert_int_equal(ask_offset(w, AUDIT, 0).offset, 0);
    fill(w, 0, 0, 1, 10);
    assert_int_equal(ask_offset(w, AUDIT, 0).offset, 10);
    assert_int_equal(ask_offset(w, AUDIT, 1).offset, 0);
    assert_int_equal(ask_offset(w, EVENTS, 0).offset, 0);
    world_restart(w);
    assert_int_equal(ask_offset(w, AUDIT, 0).offset, 10);
    assert_int_equal(ask_rows(w, &(stk_audit_query){.limit = 100}).n, 10);
}

static void a_batch_may_carry_fewer_rows_than_offsets(void **state)
{
    world *w = *state;
    stk_audit_row row = make_row(1, 0);
    answer a = append(w, AUDIT, 0, 0, 7, &row, 1);
    assert_int_equal(a.err.code, STK_OK);
    assert_int_equal(a.offset, 7);
    assert_int_equal(a.stored, 1);
    a = append(w, AUDIT, 0, 7, 9, NULL, 0);
    assert_int_equal(a.err.code, STK_OK);
    assert_int_equal(ask_offset(w, AUDIT, 0).offset, 9);
}

static void a_zombie_learns_the_offset_and_changes_nothing(void **state)
{
    world *w = *state;
    fill(w, 0, 0, 1, 5);
    answer before = ask_verify(w);
    static const int64_t froms[] = {0, 4, 6, 100};
    for (size_t i = 0; i < STK_COUNT(froms); i++) {
        stk_audit_row row = make_row(2, (int)i);
        answer a = append(w, AUDIT, 0, froms[i], froms[i] + 1, &row, 1);
        assert_int_equal(a.err.code, STK_E_STALE);
        assert_int_equal(a.offset, 5);
        assert_int_equal(a.stored, 0);
    }
    answer after = ask_verify(w);
    assert_int_equal(after.report.rows, 5);
    assert_memory_equal(after.report.head, before.report.head, STK_SHA256);
}

static void duplicates_are_dropped_before_hashing(void **state)
{
    world *w = *state;
    stk_audit_row rows[6];
    static const int n[] = {0, 1, 1, 2, 0, 3};
    for (int i = 0; i < 6; i++)
        rows[i] = make_row(1, n[i]);
    answer a = append(w, AUDIT, 0, 0, 3, rows, 3);
    assert_int_equal(a.stored, 2);
    a = append(w, AUDIT, 0, 3, 6, rows + 3, 3);
    assert_int_equal(a.stored, 2);
    a = append(w, AUDIT, 1, 0, 6, rows, 6); /* repeated on another partition */
    assert_int_equal(a.stored, 0);
    a = ask_verify(w);
    assert_true(a.report.ok);
    assert_int_equal(a.report.rows, 4);
    assert_int_equal(a.report.chains, 1);
}

static void many_batches_may_be_in_flight(void **state)
{
    world *w = *state;
    enum { BATCHES = 50, EACH = 20 };
    answer a[BATCHES] = {0};
    stk_audit_row rows[EACH];
    for (int b = 0; b < BATCHES; b++) {
        for (int i = 0; i < EACH; i++)
            rows[i] = make_row(b, i);
        stk_store_batch batch = {.topic = AUDIT,
                                 .partition = b % 3,
                                 .from = b / 3 * EACH,
                                 .to = b / 3 * EACH + EACH,
                                 .rows = rows,
                                 .nrows = EACH};
        stk_store_append(w->store, &batch, on_done, &a[b]);
        memset(rows, 'x', sizeof(rows));
    }
    for (int b = 0; b < BATCHES; b++) {
        spin_until(w, a[b].done);
        assert_int_equal(a[b].err.code, STK_OK);
        assert_int_equal(a[b].stored, EACH);
    }
    answer v = ask_verify(w);
    assert_true(v.report.ok);
    assert_int_equal(v.report.rows, BATCHES * EACH);
    assert_int_equal(v.report.chains, 3);
}

static void a_row_that_can_not_be_stored_is_named_and_nothing_is_stored(void **state)
{
    world *w = *state;
    stk_audit_row rows[3] = {make_row(1, 0), make_row(1, 1), make_row(1, 2)};
    snprintf(rows[1].action, sizeof(rows[1].action), "no.such.action");
    answer a = append(w, AUDIT, 0, 0, 3, rows, 3);
    assert_int_equal(a.err.code, STK_E_FIELD);
    assert_int_equal(a.bad, 1);
    rows[1] = make_row(1, 1);
    rows[2].details = (stk_bytes){(char *)"{\"lone\":\"\\ud800\"}", 17, true};
    a = append(w, AUDIT, 0, 0, 3, rows, 3);
    assert_int_equal(a.err.code, STK_E_FIELD);
    assert_int_equal(a.bad, 2);
    assert_int_equal(ask_offset(w, AUDIT, 0).offset, 0);
    assert_int_equal(ask_verify(w).report.rows, 0);

    stk_event events[2] = {make_event(1, 1, "result", "exited"), make_event(1, 1, "finished", "because")};
    a = append_events(w, 0, events, 2);
    assert_int_equal(a.err.code, STK_E_FIELD);
    assert_int_equal(a.bad, 1);
    assert_int_equal(ask_offset(w, EVENTS, 0).offset, 0);
}

static void odd_content_is_kept_as_it_was(void **state)
{
    world *w = *state;
    static const char *const details[] = {
        "{\"nul\":\"\\u0000\",\"bell\":\"\\u0007\",\"del\":\"\x7f\"}",
        "{\"surrogate\":\"\\\\ud800\",\"pair\":\"\\ud83d\\ude00\"}",
        "{\"sql\":\"'; DROP TABLE audit; --\",\"percent\":\"%s%n\"}",
        "{\"utf8\":\"\xc3\xa9\xe2\x80\xa8\xf0\x9f\x98\x80\",\"big\":123456789012345678901234567890}",
    };
    stk_audit_row rows[4];
    for (int i = 0; i < 4; i++) {
        rows[i] = make_row(1, i);
        rows[i].details = (stk_bytes){(char *)details[i], strlen(details[i]), true};
    }
    assert_int_equal(append(w, AUDIT, 0, 0, 4, rows, 4).err.code, STK_OK);
    world_restart(w);
    answer a = ask_rows(w, &(stk_audit_query){.limit = 10, .oldest_first = true});
    assert_int_equal(a.n, 4);
    for (int i = 0; i < 4; i++)
        assert_string_equal(a.details[i], details[i]);
    assert_true(ask_verify(w).report.ok);
}

static void the_first_finished_is_the_result(void **state)
{
    world *w = *state;
    char run[STK_ID_SIZE], other[STK_ID_SIZE];
    run_name(1, run);
    run_name(2, other);
    assert_false(ask_result(w, "t1", run).found);
    stk_event events[] = {make_event(1, 7, "result", "exited"), make_event(1, 8, "result", "timeout")};
    assert_int_equal(append_events(w, 0, events, 2).err.code, STK_OK);
    assert_false(ask_result(w, "t1", run).found);
    stk_event won[] = {make_event(1, 8, "finished", "timeout"), make_event(1, 8, "finished", "timeout")};
    assert_int_equal(append_events(w, 2, won, 2).stored, 1);
    stk_event after[] = {make_event(1, 9, "result", "oom"), make_event(1, 7, "finished", "exited")};
    assert_int_equal(append_events(w, 4, after, 2).err.code, STK_OK);
    world_restart(w);
    answer a = ask_result(w, "t1", run);
    assert_true(a.found);
    assert_string_equal(a.reason, "timeout");
    assert_string_equal(a.assignment, won[0].assignment);
    assert_true(ask_result(w, "", run).found);
    assert_false(ask_result(w, "t0", run).found);
    assert_false(ask_result(w, "t1", other).found);
    assert_int_equal(ask_result(w, "t1", other).err.code, STK_OK);
}

static void closing_completes_what_is_in_flight(void **state)
{
    world *w = *state;
    answer a = {0}, v = {0};
    stk_store *second = factory->open(w->self, w->loop);
    stk_audit_row row = make_row(1, 0);
    stk_store_append(second, &(stk_store_batch){.topic = AUDIT, .to = 1, .rows = &row, .nrows = 1}, on_done,
                     &a);
    stk_store_offset(second, AUDIT, 0, on_done, &v);
    stk_store_close(second);
    assert_int_equal(a.done, 1);
    assert_int_equal(v.done, 1);
    assert_int_equal(a.err.code, STK_OK);
    assert_int_equal(ask_offset(w, AUDIT, 0).offset, 1);
}

const struct CMUnitTest append_tests[] = {
    CASE(rows_and_offset_are_stored_together),
    CASE(a_batch_may_carry_fewer_rows_than_offsets),
    CASE(a_zombie_learns_the_offset_and_changes_nothing),
    CASE(duplicates_are_dropped_before_hashing),
    CASE(many_batches_may_be_in_flight),
    CASE(a_row_that_can_not_be_stored_is_named_and_nothing_is_stored),
    CASE(odd_content_is_kept_as_it_was),
    CASE(the_first_finished_is_the_result),
    CASE(closing_completes_what_is_in_flight),
};
const size_t nappend_tests = STK_COUNT(append_tests);
