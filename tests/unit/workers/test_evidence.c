/* What a proxy reported: exact counts, a bounded list, gaps seen. */
#include "tests/unit/workers/unit.h"
#include "workers/evidence.h"

static stk_egress_record record(int64_t seq, const char *kind, const char *verdict, int64_t count)
{
    stk_egress_record rec = {.seq = seq, .host = "api.vendor.com", .port = 443, .count = count};
    snprintf(rec.kind, sizeof(rec.kind), "%s", kind);
    snprintf(rec.verdict, sizeof(rec.verdict), "%s", verdict);
    return rec;
}

static void add(stk_evidence *ev, stk_egress_record rec, const char *json)
{
    stk_evidence_add(ev, &rec, stk_str_of(json));
}

static void decisions_are_counted_and_closes_are_not(void **state)
{
    stk_evidence ev;
    stk_event event = {0};
    stk_evidence_init(&ev);
    add(&ev, record(1, "decision", "allow", 0), "{\"a\":1}");
    add(&ev, record(2, "decision", "deny", 0), "{\"a\":2}");
    add(&ev, record(3, "close", "allow", 0), "{\"a\":3}");
    add(&ev, record(4, "summary", "deny", 500), "{\"a\":4}");
    stk_evidence_finish(&ev, &event);
    assert_int_equal(event.egress_allowed, 1);
    assert_int_equal(event.egress_denied, 501);
    assert_int_equal(event.egress_last_seq, 4);
    assert_int_equal(event.egress_dropped, 0);
    assert_string_equal(event.egress.p, "[{\"a\":1},{\"a\":2},{\"a\":3},{\"a\":4}]");
    assert_false(ev.gap);
    stk_event_done(&event);
    stk_evidence_done(&ev);
}

static void nothing_is_an_empty_list(void **state)
{
    stk_evidence ev;
    stk_event event = {0};
    stk_evidence_init(&ev);
    stk_evidence_finish(&ev, &event);
    assert_string_equal(event.egress.p, "[]");
    assert_int_equal(event.egress_last_seq, 0);
    stk_event_done(&event);
    stk_evidence_done(&ev);
}

static void a_missing_number_is_seen(void **state)
{
    stk_evidence ev;
    stk_evidence_init(&ev);
    add(&ev, record(1, "decision", "deny", 0), "{}");
    assert_false(ev.gap);
    add(&ev, record(3, "decision", "deny", 0), "{}");
    assert_true(ev.gap);
    stk_evidence_done(&ev);
}

static void the_list_is_bounded_and_the_counts_are_not(void **state)
{
    stk_evidence ev;
    stk_event event = {0};
    stk_evidence_init(&ev);
    for (int64_t seq = 1; seq <= 10000; seq++)
        add(&ev, record(seq, "decision", "deny", 0), "{}");
    stk_evidence_finish(&ev, &event);
    assert_int_equal(event.egress_denied, 10000);
    assert_int_equal(event.egress_dropped, 10000 - STK_EGRESS_MAX);
    assert_int_equal(event.egress.n, 2 + 2 * STK_EGRESS_MAX + STK_EGRESS_MAX - 1);
    stk_event_done(&event);
    stk_evidence_done(&ev);
}

static void long_records_are_bounded_by_their_bytes(void **state)
{
    static char text[8192];
    stk_evidence ev;
    memset(text, ' ', sizeof(text) - 1);
    text[0] = '{';
    text[sizeof(text) - 2] = '}';
    stk_evidence_init(&ev);
    for (int64_t seq = 1; seq <= STK_EGRESS_MAX; seq++)
        add(&ev, record(seq, "decision", "deny", 0), text);
    assert_true(ev.list.n <= 512 << 10);
    assert_true(ev.dropped > 0);
    assert_int_equal(ev.denied, STK_EGRESS_MAX);
    stk_evidence_done(&ev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(decisions_are_counted_and_closes_are_not),
                                       cmocka_unit_test(nothing_is_an_empty_list),
                                       cmocka_unit_test(a_missing_number_is_seen),
                                       cmocka_unit_test(the_list_is_bounded_and_the_counts_are_not),
                                       cmocka_unit_test(long_records_are_bounded_by_their_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
