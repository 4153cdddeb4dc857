#include "proto/base/id.h"
#include "tests/unit/base/test.h"

static void a_new_id_is_valid_and_tells_its_time(void **state)
{
    char id[STK_ID_SIZE];
    stk_wall now = {1767323045678912345};
    stk_id_new("run", now, id);
    assert_int_equal(strlen(id), 30);
    assert_true(stk_id_valid("run", stk_str_of(id)));
    assert_int_equal(stk_id_time(stk_str_of(id)).ns, 1767323045678000000);
}

static void ids_sort_by_time_and_never_repeat(void **state)
{
    char last[STK_ID_SIZE] = "run-";
    for (int64_t ms = 0; ms < 5000; ms++) {
        char id[STK_ID_SIZE];
        stk_id_new("run", (stk_wall){(1767323045000 + ms) * 1000000}, id);
        assert_true(strcmp(last, id) < 0);
        memcpy(last, id, sizeof(id));
    }
    char a[STK_ID_SIZE], b[STK_ID_SIZE];
    stk_id_new("run", (stk_wall){0}, a);
    stk_id_new("run", (stk_wall){0}, b);
    assert_string_not_equal(a, b);
}

static void the_same_bytes_give_the_same_id_and_order_is_kept(void **state)
{
    uint8_t zero[16] = {0}, one[16] = {[15] = 1}, ones[16];
    memset(ones, 0xff, sizeof(ones));
    char id[STK_ID_SIZE];
    stk_id_from("aud", zero, id);
    assert_string_equal(id, "aud-00000000000000000000000000");
    stk_id_from("aud", one, id);
    assert_string_equal(id, "aud-00000000000000000000000001");
    stk_id_from("aud", ones, id);
    assert_string_equal(id, "aud-7zzzzzzzzzzzzzzzzzzzzzzzzz");
    assert_true(stk_id_valid("aud", stk_str_of(id)));
}

static void only_ids_of_that_prefix_and_alphabet_are_valid(void **state)
{
    static const char *const bad[] = {
        "",
        "run",
        "run-",
        "run-0000000000000000000000000",
        "run-000000000000000000000000000",
        "sbx-00000000000000000000000000",
        "RUN-00000000000000000000000000",
        "run-0000000000000000000000000I",
        "run-0000000000000000000000000l",
        "run-0000000000000000000000000o",
        "run-0000000000000000000000000u",
        "run-0000000000000000000000000A",
        "run-80000000000000000000000000",
        "run_00000000000000000000000000",
        "run-0000000000000000000000000/",
    };
    for (size_t i = 0; i < STK_COUNT(bad); i++)
        if (stk_id_valid("run", stk_str_of(bad[i])))
            fail_msg("accepted: %s", bad[i]);
    assert_false(stk_id_valid("run", S("run-0000000000000000000000000\0")));
    assert_false(stk_id_valid("run", (stk_str){NULL, 0}));
    assert_int_equal(stk_id_time(S("run-x")).ns, 0);
    assert_int_equal(stk_id_time(S("")).ns, 0);
}

static bool is_label(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n <= 63 && s[0] != '-' && s[n - 1] != '-' &&
           strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

static void a_label_stays_and_other_text_becomes_one(void **state)
{
    char out[64];
    static const char *const same[] = {"a",
                                       "acme",
                                       "a-b-1",
                                       "0",
                                       "x-0123456",
                                       "x-0123456g",
                                       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
    for (size_t i = 0; i < STK_COUNT(same); i++) {
        stk_name_label(stk_str_of(same[i]), out);
        assert_string_equal(out, same[i]);
    }
    static const struct {
        stk_str in;
        const char *front;
    } rows[] = {
        {{"", 0}, "x-"},
        {{"---", 3}, "x-"},
        {{"Acme", 4}, "acme-"},
        {{"a b", 3}, "a-b-"},
        {{"-a", 2}, "a-"},
        {{"a-", 2}, "a-"},
        {{"a\0b", 3}, "a-b-"},
        {{"\xc3\xa9", 2}, "x-"},
        {{"a-01234567", 10}, "a-01234567-"},
        {{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 64}, "aaaa"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_name_label(rows[i].in, out);
        assert_true(is_label(out));
        assert_int_equal(strncmp(out, rows[i].front, strlen(rows[i].front)), 0);
        assert_true(strlen(out) >= 10 && out[strlen(out) - 9] == '-');
    }
}

static void different_names_get_different_labels(void **state)
{
    static const char *const names[] = {"acme",  "Acme",  "ACME", "acme ", " acme", "acme-", "-acme", "ac me",
                                        "ac-me", "ac_me", "",     "-",     "--",    " ",     "x"};
    static char labels[STK_COUNT(names) + 1][64];
    for (size_t i = 0; i < STK_COUNT(names); i++)
        stk_name_label(stk_str_of(names[i]), labels[i]);
    /* What the label of another looks like is itself not taken as it is. */
    stk_name_label(stk_str_of(labels[1]), labels[STK_COUNT(names)]);
    for (size_t i = 0; i < STK_COUNT(labels); i++)
        for (size_t j = i + 1; j < STK_COUNT(labels); j++)
            assert_string_not_equal(labels[i], labels[j]);
}

static void random_bytes_differ(void **state)
{
    uint8_t a[300] = {0}, b[300] = {0};
    stk_random(a, sizeof(a));
    stk_random(b, sizeof(b));
    assert_memory_not_equal(a, b, sizeof(a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_id_is_valid_and_tells_its_time),
        cmocka_unit_test(ids_sort_by_time_and_never_repeat),
        cmocka_unit_test(the_same_bytes_give_the_same_id_and_order_is_kept),
        cmocka_unit_test(only_ids_of_that_prefix_and_alphabet_are_valid),
        cmocka_unit_test(a_label_stays_and_other_text_becomes_one),
        cmocka_unit_test(different_names_get_different_labels),
        cmocka_unit_test(random_bytes_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
