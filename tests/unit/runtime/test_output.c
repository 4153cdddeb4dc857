#include "workers/runtime/output.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void feed(stk_output *out, const char *p, size_t n, size_t step)
{
    for (size_t at = 0; at < n;) {
        size_t room;
        char *to = stk_output_room(out, &room);
        assert_true(room > 0);
        size_t take = stk_min(stk_min(room, step), n - at);
        memcpy(to, p + at, take);
        stk_output_added(out, take);
        at += take;
    }
}

static char *pattern(size_t n)
{
    char *p = malloc(n + 1);
    for (size_t i = 0; i < n; i++)
        p[i] = (char)('a' + i % 23);
    return p;
}

static void all_of_it_is_kept_up_to_the_cap(void **state)
{
    static const size_t sizes[] = {0, 1, 7, 8, 9, 15, 16};
    for (size_t i = 0; i < STK_COUNT(sizes); i++)
        for (size_t step = 1; step <= 16; step++) {
            char *p = pattern(sizes[i]);
            stk_output out;
            stk_output_init(&out, 16);
            feed(&out, p, sizes[i], step);
            stk_kept kept = stk_output_finish(&out);
            assert_int_equal(kept.gap, 0);
            assert_int_equal(kept.tail.n, 0);
            assert_int_equal(kept.head.n, sizes[i]);
            assert_memory_equal(kept.head.p, p, sizes[i]);
            stk_output_done(&out);
            free(p);
        }
}

static void above_the_cap_head_and_tail_stay(void **state)
{
    for (size_t n = 17; n < 90; n++)
        for (size_t step = 1; step <= 20; step += 3) {
            char *p = pattern(n);
            stk_output out;
            stk_output_init(&out, 16);
            feed(&out, p, n, step);
            stk_kept kept = stk_output_finish(&out);
            assert_int_equal(kept.total, n);
            assert_int_equal(kept.gap, n - 16);
            assert_int_equal(kept.head.n, 8);
            assert_memory_equal(kept.head.p, p, 8);
            assert_int_equal(kept.tail.n, 8);
            assert_memory_equal(kept.tail.p, p + n - 8, 8);
            stk_output_done(&out);
            free(p);
        }
}

static void size_of_the_writes_makes_no_difference(void **state)
{
    size_t n = 300000;
    char *p = pattern(n);
    stk_output one, many;
    stk_output_init(&one, 65536);
    stk_output_init(&many, 65536);
    feed(&one, p, n, 1);
    feed(&many, p, n, 1 << 20);
    stk_kept a = stk_output_finish(&one), b = stk_output_finish(&many);
    assert_true(stk_str_eq(a.head, b.head));
    assert_true(stk_str_eq(a.tail, b.tail));
    assert_int_equal(a.gap, b.gap);
    stk_output_done(&one);
    stk_output_done(&many);
    free(p);
}

static void cuts_fall_between_characters(void **state)
{
    static const char *const characters[] = {"é", "☹", "😀"};
    for (size_t c = 0; c < STK_COUNT(characters); c++)
        for (size_t shift = 0; shift < 4; shift++) {
            stk_buf text = STK_BUF(4096);
            for (size_t i = 0; i < shift; i++)
                stk_buf_byte(&text, 'x');
            while (text.n < 200)
                stk_buf_text(&text, characters[c]);
            stk_output out;
            stk_output_init(&out, 50);
            feed(&out, text.p, text.n, 7);
            stk_kept kept = stk_output_finish(&out);
            assert_true(stk_utf8_valid(kept.head));
            assert_true(stk_utf8_valid(kept.tail));
            assert_in_range(kept.head.n, 22, 25);
            assert_in_range(kept.tail.n, 22, 25);
            assert_int_equal(kept.head.n + kept.gap + kept.tail.n, text.n);
            stk_output_done(&out);
            stk_buf_done(&text);
        }
}

static void a_live_reader_gets_a_full_head_without_a_cut_character(void **state)
{
    stk_output out;
    stk_output_init(&out, 16);
    stk_output_put(&out, STK_STR("abcdef"));
    assert_int_equal(stk_output_ready(&out), 6);
    stk_output_put(&out, STK_STR("g😀"));
    assert_int_equal(stk_output_ready(&out), 7);
    stk_output_done(&out);
}

static void memory_follows_what_was_written(void **state)
{
    stk_output out;
    stk_output_init(&out, 1 << 20);
    stk_output_put(&out, STK_STR("x"));
    assert_in_range(out.head_size, 1, 4096);
    assert_null(out.tail);
    stk_output_done(&out);
}

static void unfinished_characters_are_told_from_bad_bytes(void **state)
{
    static const struct {
        const char *text;
        size_t n, unfinished;
    } rows[] = {
        {"", 0, 0},
        {"a", 1, 0},
        {"\xc3", 1, 1},
        {"\xc3\xa9", 2, 0},
        {"\xe2\x98", 2, 2},
        {"\xe2\x98\xb9", 3, 0},
        {"\xf0\x9f\x98", 3, 3},
        {"\xff", 1, 0},
        {"\x80\x80", 2, 0},
        {"a\x80", 2, 0},
        {"\xc0", 1, 0},
        {"\xf0\x9f\x98\x80", 4, 0},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++)
        assert_int_equal(stk_utf8_unfinished(stk_str_n(rows[i].text, rows[i].n)), rows[i].unfinished);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_it_is_kept_up_to_the_cap),
        cmocka_unit_test(above_the_cap_head_and_tail_stay),
        cmocka_unit_test(size_of_the_writes_makes_no_difference),
        cmocka_unit_test(cuts_fall_between_characters),
        cmocka_unit_test(a_live_reader_gets_a_full_head_without_a_cut_character),
        cmocka_unit_test(memory_follows_what_was_written),
        cmocka_unit_test(unfinished_characters_are_told_from_bad_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
