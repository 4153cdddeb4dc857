#include "proto/policy/set.h"
#include "tests/unit/policy/unit.h"
#include <time.h>

static stk_entries *make(const char *const *texts)
{
    stk_strv v = list_of(texts);
    stk_entries *set = NULL;
    stk_err err;
    if (stk_entries_new(&v, &set, &err) < 0)
        fail_msg("%s: %s", err.pointer, err.detail);
    stk_strv_done(&v);
    return set;
}

static void an_empty_set_matches_nothing(void **state)
{
    stk_entries *set STK_AUTO(stk_entries_freep) = make(NULL);
    bool name_only = true;
    assert_null(stk_entries_match(set, "api.x.com", 443, &name_only));
    assert_false(name_only);
    assert_int_equal(stk_entries_count(set), 0);
    assert_null(stk_entries_at(set, 0));
}

static void the_bad_entry_is_pointed_at(void **state)
{
    static const char *const texts[] = {"a.com", "b.com", "*.c.com", "*", "d.com", NULL};
    stk_strv v = list_of(texts);
    stk_entries *set = NULL;
    stk_err err = {.code = STK_OK};
    assert_int_equal(stk_entries_new(&v, &set, &err), -STK_E_FIELD);
    assert_null(set);
    assert_string_equal(err.pointer, "/3");
    stk_strv_done(&v);
}

static void overlapping_and_repeated_entries_load(void **state)
{
    static const char *const texts[] = {"api.x.com",   "*.x.com",       "api.x.com", "API.X.com.",
                                        "*.api.x.com", "api.x.com:443", NULL};
    stk_entries *set STK_AUTO(stk_entries_freep) = make(texts);
    assert_int_equal(stk_entries_count(set), 6);
    assert_non_null(stk_entries_match(set, "api.x.com", 443, NULL));
    assert_non_null(stk_entries_match(set, "a.api.x.com", 80, NULL));
}

static void the_longest_entry_decides(void **state)
{
    static const char *const texts[] = {"*.x.com", "*.b.x.com", "a.b.x.com:443", NULL};
    stk_entries *set STK_AUTO(stk_entries_freep) = make(texts);
    static const struct {
        const char *host;
        uint16_t port;
        size_t entry;
    } rows[] = {{"a.b.x.com", 443, 2},
                {"a.b.x.com", 80, 1},
                {"c.b.x.com", 443, 1},
                {"b.x.com", 443, 0},
                {"z.x.com", 80, 0}};
    for (size_t i = 0; i < STK_COUNT(rows); i++)
        assert_ptr_equal(stk_entries_match(set, rows[i].host, rows[i].port, NULL),
                         stk_entries_at(set, rows[i].entry));
    assert_null(stk_entries_match(set, "x.com", 443, NULL));
}

static void a_known_name_with_another_port_is_told(void **state)
{
    static const char *const texts[] = {"db.x.com:5432", "*.y.com:8443", "z.com", NULL};
    stk_entries *set STK_AUTO(stk_entries_freep) = make(texts);
    bool name_only = false;
    assert_null(stk_entries_match(set, "db.x.com", 443, &name_only));
    assert_true(name_only);
    assert_null(stk_entries_match(set, "a.y.com", 443, &name_only));
    assert_true(name_only);
    assert_null(stk_entries_match(set, "z.com", 22, &name_only));
    assert_true(name_only);
    assert_null(stk_entries_match(set, "other.com", 443, &name_only));
    assert_false(name_only);
    assert_non_null(stk_entries_match(set, "db.x.com", 5432, &name_only));
    assert_false(name_only);
}

static void the_hashed_answers_are_those_of_a_plain_walk(void **state)
{
    static const char *const labels[] = {"a", "b", "xa", "com", "x-a"};
    srandom(20260102);
    for (int round = 0; round < 300; round++) {
        stk_strv v = {.v = NULL};
        char text[STK_NAME_MAX];
        for (int i = 0; i < 12; i++) {
            int n = snprintf(text, sizeof(text), "%s%s.%s", random() % 2 ? "*." : "", labels[random() % 5],
                             labels[random() % 5]);
            if (random() % 2)
                n += snprintf(text + n, sizeof(text) - (size_t)n, ".%s", labels[random() % 5]);
            if (random() % 3 == 0)
                snprintf(text + n, sizeof(text) - (size_t)n, ":%d", random() % 2 ? 443 : 22);
            stk_strv_add(&v, stk_str_of(text));
        }
        stk_entries *set STK_AUTO(stk_entries_freep) = NULL;
        assert_int_equal(stk_entries_new(&v, &set, NULL), 0);
        for (int i = 0; i < 60; i++) {
            char host[64];
            snprintf(host, sizeof(host), "%s.%s.%s.%s", labels[random() % 5], labels[random() % 5],
                     labels[random() % 5], labels[random() % 5]);
            const char *from = random() % 2 ? host : strchr(host, '.') + 1;
            uint16_t port = (uint16_t)(random() % 2 ? 443 : 22);
            bool plain = false;
            for (size_t k = 0; k < stk_entries_count(set); k++)
                plain |= stk_entry_matches(stk_entries_at(set, k), from, port);
            if (plain != (stk_entries_match(set, from, port, NULL) != NULL))
                fail_msg("round %d: %s:%u", round, from, port);
        }
        for (size_t a = 0; a < stk_entries_count(set); a++)
            assert_non_null(stk__entries_cover(set, stk_entries_at(set, a), STK_PORTLESS_WEB));
        stk_strv_done(&v);
    }
}

static double seconds_to_match(size_t n)
{
    stk_strv v = {.v = NULL};
    char text[64];
    for (size_t i = 0; i < n; i++) {
        snprintf(text, sizeof(text), i % 2 ? "*.host%zu.example.com" : "host%zu.example.com", i);
        stk_strv_add(&v, stk_str_of(text));
    }
    stk_entries *set STK_AUTO(stk_entries_freep) = NULL;
    assert_int_equal(stk_entries_new(&v, &set, NULL), 0);
    stk_strv_done(&v);
    double best = 1e9;
    for (int round = 0; round < 7; round++) {
        struct timespec a, b;
        size_t hits = 0;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
        for (int i = 0; i < 40000; i++)
            hits += stk_entries_match(set, i % 2 ? "www.host7.example.com" : "missing.example.org", 443,
                                      NULL) != NULL;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
        assert_int_equal(hits, 20000);
        double took = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
        best = took < best ? took : best;
    }
    return best;
}

static void ten_thousand_entries_cost_no_more_than_ten(void **state)
{
    double few = seconds_to_match(10), many = seconds_to_match(10000);
    print_message("10 entries: %.1f ns, 10,000: %.1f ns a match\n", few / 40000 * 1e9, many / 40000 * 1e9);
    assert_true(many < 3 * few);
}

static void too_many_entries_are_refused(void **state)
{
    stk_strv v = {.v = NULL};
    for (size_t i = 0; i <= STK_ENTRIES_MAX; i++)
        stk_strv_add(&v, STK_STR("a.com"));
    stk_entries *set = NULL;
    assert_int_equal(stk_entries_new(&v, &set, NULL), -STK_E_FIELD);
    stk_strv_done(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_set_matches_nothing),
        cmocka_unit_test(the_bad_entry_is_pointed_at),
        cmocka_unit_test(overlapping_and_repeated_entries_load),
        cmocka_unit_test(the_longest_entry_decides),
        cmocka_unit_test(a_known_name_with_another_port_is_told),
        cmocka_unit_test(the_hashed_answers_are_those_of_a_plain_walk),
        cmocka_unit_test(ten_thousand_entries_cost_no_more_than_ten),
        cmocka_unit_test(too_many_entries_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
