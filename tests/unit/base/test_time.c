#include "proto/base/time.h"
#include "proto/base/err.h"
#include "proto/base/buf.h"
#include "tests/unit/base/test.h"

static void instants_print_as_rfc_3339(void **state)
{
    static const struct {
        int64_t ns;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {1, "1970-01-01T00:00:00.000Z"},
        {999999999, "1970-01-01T00:00:00.999Z"},
        {1767323045678000000, "2026-01-02T03:04:05.678Z"},
        {1709164800000000000, "2024-02-29T00:00:00.000Z"},
        {-5, "1970-01-01T00:00:00.000Z"},
        {INT64_MAX, "2262-04-11T23:47:16.854Z"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        char out[STK_WALL_TEXT];
        stk_wall_format((stk_wall){rows[i].ns}, out);
        assert_string_equal(out, rows[i].text);
    }
}

static void what_was_printed_is_read_back(void **state)
{
    static const struct {
        const char *text;
        int64_t ns;
    } rows[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2026-01-02T03:04:05.678Z", 1767323045678000000},
        {"2026-01-02T03:04:05.6Z", 1767323045600000000},
        {"2026-01-02T03:04:05.123456789Z", 1767323045123456789},
        {"2024-02-29T23:59:59Z", 1709251199000000000},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_wall t = {-1};
        assert_int_equal(stk_wall_parse(rows[i].text, strlen(rows[i].text), &t), 0);
        assert_int_equal(t.ns, rows[i].ns);
    }
}

static void anything_else_is_refused_and_leaves_the_result_alone(void **state)
{
    static const char *const rows[] = {
        "",
        "2026-01-02",
        "2026-01-02T03:04:05",
        "2026-01-02T03:04:05z",
        "2026-01-02 03:04:05Z",
        "2026-01-02T03:04:05+00:00",
        "2026-01-02T03:04:05.Z",
        "2026-01-02T03:04:05.1234567890Z",
        "2026-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-01-32T00:00:00Z",
        "2026-01-02T24:00:00Z",
        "2026-01-02T03:60:00Z",
        "2026-01-02T03:04:60Z",
        "1969-12-31T23:59:59Z",
        "2263-01-01T00:00:00Z",
        "9999-01-01T00:00:00Z",
        "2026-01-02T03:04:05ZZ",
        "2026-01-02T03:04:0xZ",
        "+026-01-02T03:04:05Z",
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_wall t = {77};
        if (stk_wall_parse(rows[i], strlen(rows[i]), &t) != -STK_E_FIELD || t.ns != 77)
            fail_msg("accepted: %s", rows[i]);
    }
}

static void sums_saturate(void **state)
{
    assert_true(stk_mono_add((stk_mono){5}, STK_SPAN_NEVER).ns == INT64_MAX);
    assert_true(stk_wall_add((stk_wall){INT64_MAX}, stk_ns(1)).ns == INT64_MAX);
    assert_true(stk_wall_add((stk_wall){INT64_MIN + 1}, stk_ns(-5)).ns == INT64_MIN);
    assert_int_equal(stk_mono_add((stk_mono){5}, stk_sec(1)).ns, 1000000005);
    assert_int_equal(stk_mono_sub((stk_mono){5}, (stk_mono){7}).ns, -2);
}

static void a_timer_span_is_never_negative_nor_rounded_down_to_nothing(void **state)
{
    static const struct {
        int64_t ns, sec, usec;
    } rows[] = {{0, 0, 0},        {-1, 0, 0}, {1, 0, 1}, {1000, 0, 1}, {1001, 0, 2}, {1500000000, 1, 500000},
                {INT64_MIN, 0, 0}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        struct timeval tv = stk_span_timeval(stk_ns(rows[i].ns));
        assert_int_equal(tv.tv_sec, rows[i].sec);
        assert_int_equal(tv.tv_usec, rows[i].usec);
    }
    struct timeval never = stk_span_timeval(STK_SPAN_NEVER);
    assert_true(never.tv_sec >= 86400 && never.tv_usec >= 0 && never.tv_usec < 1000000);
}

static void the_clocks_go_forward(void **state)
{
    stk_mono a = stk_mono_now();
    stk_mono b = stk_mono_now();
    assert_false(stk_mono_before(b, a));
    assert_true(stk_wall_now().ns > 1700000000000000000);
}

static void the_boot_id_is_a_uuid_and_stays(void **state)
{
    const char *id = stk_boot_id();
    assert_int_equal(strlen(id), 36);
    assert_int_equal(strspn(id, "0123456789abcdef-"), 36);
    assert_ptr_equal(id, stk_boot_id());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instants_print_as_rfc_3339),
        cmocka_unit_test(what_was_printed_is_read_back),
        cmocka_unit_test(anything_else_is_refused_and_leaves_the_result_alone),
        cmocka_unit_test(sums_saturate),
        cmocka_unit_test(a_timer_span_is_never_negative_nor_rounded_down_to_nothing),
        cmocka_unit_test(the_clocks_go_forward),
        cmocka_unit_test(the_boot_id_is_a_uuid_and_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
