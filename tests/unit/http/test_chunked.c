#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "proto/http/head.h"

/* Feeds what is in `in`; collects the body; returns bytes used or -1. */
static ptrdiff_t drain(stk_chunked *dec, stk_str in, stk_buf *body, bool *end)
{
    ptrdiff_t used = 0;
    *end = false;
    while ((size_t)used < in.n && !*end) {
        stk_str data;
        ptrdiff_t n = stk_chunked_feed(dec, stk_str_n(in.p + used, in.n - (size_t)used), &data, end);
        if (n < 0)
            return -1;
        assert_true(n > 0);
        assert_int_equal(stk_buf_str(body, data), 0);
        used += n;
    }
    return used;
}

static const stk_str whole[] = {
    STK_STR("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
    STK_STR("0000000000000005\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"),
    STK_STR("b\r\nhello world\r\n000\r\nX-Sum: 1 2\r\nHost: evil\r\nEmpty:\r\n\r\n"),
    STK_STR("B\r\nhello world\r\n0\r\nContent-Length: 9\r\n\r\n"),
    STK_STR("1\r\nh\r\n1\r\ne\r\n1\r\nl\r\n1\r\nl\r\n1\r\no\r\n6\r\n world\r\n0\r\n\r\n"),
};

static void every_split_in_two_gives_the_same_body(void **state)
{
    for (size_t i = 0; i < STK_COUNT(whole); i++)
        for (size_t cut = 0; cut <= whole[i].n; cut++) {
            stk_chunked dec;
            stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(1000);
            bool end = false;
            stk_chunked_init(&dec);
            assert_int_equal(drain(&dec, stk_str_n(whole[i].p, cut), &body, &end), cut);
            assert_int_equal(end, cut == whole[i].n);
            if (!end)
                assert_int_equal(drain(&dec, stk_str_n(whole[i].p + cut, whole[i].n - cut), &body, &end),
                                 whole[i].n - cut);
            assert_true(end);
            assert_true(stk_str_eq(stk_buf_view(&body), STK_STR("hello world")));
        }
}

static void byte_by_byte_gives_the_same_body(void **state)
{
    for (size_t i = 0; i < STK_COUNT(whole); i++) {
        stk_chunked dec;
        stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(1000);
        bool end = false;
        stk_chunked_init(&dec);
        for (size_t k = 0; k < whole[i].n; k++) {
            assert_false(end);
            assert_int_equal(drain(&dec, stk_str_n(whole[i].p + k, 1), &body, &end), 1);
        }
        assert_true(end);
        assert_true(stk_str_eq(stk_buf_view(&body), STK_STR("hello world")));
    }
}

static void what_follows_is_not_taken(void **state)
{
    stk_chunked dec;
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(1000);
    bool end = false;
    stk_str in = STK_STR("1\r\na\r\n0\r\n\r\nGET / HTTP/1.1\r\n");
    stk_chunked_init(&dec);
    assert_int_equal(drain(&dec, in, &body, &end), 11);
    assert_true(end);
}

static const stk_str odd[] = {
    STK_STR("-1\r\n"),
    STK_STR("+5\r\nhello\r\n0\r\n\r\n"),
    STK_STR("0x5\r\nhello\r\n0\r\n\r\n"),
    STK_STR("5;ext\r\nhello\r\n0\r\n\r\n"),
    STK_STR("5;a\nb\r\nhello\r\n0\r\n\r\n"),
    STK_STR("5 \r\nhello\r\n0\r\n\r\n"),
    STK_STR(" 5\r\nhello\r\n0\r\n\r\n"),
    STK_STR("10000000000000005\r\nhello\r\n0\r\n\r\n"),
    STK_STR("00000000000000005\r\nhello\r\n0\r\n\r\n"),
    STK_STR("8000000000000000\r\n"),
    STK_STR("ffffffffffffffff\r\n"),
    STK_STR("5\nhello\r\n0\r\n\r\n"),
    STK_STR("\r\nhello\r\n0\r\n\r\n"),
    STK_STR("g\r\n"),
    STK_STR("5\rhello\r\n"),
    STK_STR("5\r\nhello0\r\n\r\n"),
    STK_STR("5\r\nhello!\r\n0\r\n\r\n"),
    STK_STR("5\r\nhello\n0\r\n\r\n"),
    STK_STR("5\r\nhello\r0\r\n\r\n"),
    STK_STR("0\r\nX: a\nY: b\r\n\r\n"),
    STK_STR("0\r\nX: a\r\n\n"),
    STK_STR("0\r\nX : a\r\n\r\n"),
    STK_STR("0\r\n X: a\r\n\r\n"),
    STK_STR("0\r\n: a\r\n\r\n"),
    STK_STR("0\r\nGET / HTTP/1.1\r\n\r\n"),
    STK_STR("0\r\nX: a\0\r\n\r\n"),
    STK_STR("0\r\n\rX"),
};

static void odd_framing_is_refused_in_one_piece_and_byte_by_byte(void **state)
{
    for (size_t i = 0; i < STK_COUNT(odd); i++) {
        stk_chunked dec;
        stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(1000);
        bool end = false;
        stk_chunked_init(&dec);
        if (drain(&dec, odd[i], &body, &end) != -1)
            fail_msg("row %zu was taken", i);
        stk_chunked_init(&dec);
        ptrdiff_t n = 0;
        for (size_t k = 0; k < odd[i].n && n >= 0; k++)
            n = drain(&dec, stk_str_n(odd[i].p + k, 1), &body, &end);
        if (n != -1)
            fail_msg("row %zu was taken byte by byte", i);
        stk_str data;
        assert_int_equal(stk_chunked_feed(&dec, STK_STR("0\r\n\r\n"), &data, &end), -1);
    }
}

static void trailers_are_bounded(void **state)
{
    stk_chunked dec;
    stk_str data;
    bool end;
    stk_chunked_init(&dec);
    assert_int_equal(stk_chunked_feed(&dec, STK_STR("0\r\n"), &data, &end), 3);
    ptrdiff_t n = 0;
    int lines = 0;
    for (; lines < 100000 && n >= 0; lines++)
        n = stk_chunked_feed(&dec, STK_STR("a: b\r\n"), &data, &end);
    assert_int_equal(n, -1);
    assert_in_range(lines, 1000, 2000);
}

static void the_largest_chunk_is_counted_right(void **state)
{
    stk_chunked dec;
    stk_str data;
    bool end;
    stk_chunked_init(&dec);
    assert_int_equal(stk_chunked_feed(&dec, STK_STR("7fffffffffffffff\r\nab"), &data, &end), 20);
    assert_int_equal(data.n, 2);
    assert_int_equal(dec.left, INT64_MAX - 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_split_in_two_gives_the_same_body),
        cmocka_unit_test(byte_by_byte_gives_the_same_body),
        cmocka_unit_test(what_follows_is_not_taken),
        cmocka_unit_test(odd_framing_is_refused_in_one_piece_and_byte_by_byte),
        cmocka_unit_test(trailers_are_bounded),
        cmocka_unit_test(the_largest_chunk_is_counted_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
