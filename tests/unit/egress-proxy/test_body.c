#include "egress-proxy/body.h"
#include "tests/unit/egress-proxy/unit.h"

static const struct row {
    stk_framing in;
    uint64_t length;
    stk_framing out;
    const char *from, *to;
    const char *rest;
} rows[] = {
    {STK_FRAMING_LENGTH, 5, STK_FRAMING_LENGTH, "hello", "hello", ""},
    {STK_FRAMING_LENGTH, 5, STK_FRAMING_LENGTH, "helloGET /", "hello", "GET /"},
    {STK_FRAMING_CHUNKED, 0, STK_FRAMING_CLOSE, "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\nGET", "hello!", "GET"},
    {STK_FRAMING_CHUNKED, 0, STK_FRAMING_CLOSE, "0005\r\nhello\r\n0\r\nX-Trailer: y\r\n\r\n", "hello", ""},
    {STK_FRAMING_NONE, 0, STK_FRAMING_NONE, "GET /", "", "GET /"},
};

/* Fed in pieces of every size, the content and the rest are the same. */
static void a_body_is_the_same_however_it_arrives(void **state)
{
    for (size_t i = 0; i < STK_COUNT(rows); i++)
        for (size_t piece = 1; piece < 40; piece++) {
            const struct row *row = &rows[i];
            stk_body body;
            stk_buf to STK_AUTO(stk_buf_done) = STK_BUF(4096);
            stk_str from = stk_str_of(row->from);
            stk_body_init(&body, row->in, row->length, row->out);
            while (from.n && !body.done) {
                ptrdiff_t used = stk_body_feed(&body, stk_str_n(from.p, stk_min(piece, from.n)), &to);
                assert_true(used >= 0);
                from = stk_str_n(from.p + used, from.n - (size_t)used);
            }
            assert_true(body.done);
            assert_true(stk_str_eq(stk_buf_view(&to), stk_str_of(row->to)));
            assert_true(stk_str_eq(from, stk_str_of(row->rest)));
            assert_int_equal(body.bytes, strlen(row->to));
        }
}

static void chunks_out_are_our_own(void **state)
{
    stk_body body;
    stk_buf to STK_AUTO(stk_buf_done) = STK_BUF(4096);
    stk_body_init(&body, STK_FRAMING_CHUNKED, 0, STK_FRAMING_CHUNKED);
    assert_int_equal(stk_body_feed(&body, STK_STR("00A\r\n0123456789\r\n0\r\nA: b\r\n\r\n"), &to), 28);
    assert_string_equal(to.p, "a\r\n0123456789\r\n0\r\n\r\n");
    stk_buf_reset(&to);
    stk_body_init(&body, STK_FRAMING_CLOSE, 0, STK_FRAMING_CHUNKED);
    assert_int_equal(stk_body_feed(&body, STK_STR("abc"), &to), 3);
    assert_true(stk_body_eof(&body, &to));
    assert_string_equal(to.p, "3\r\nabc\r\n0\r\n\r\n");
}

static void a_broken_chunk_ends_it_and_is_not_passed_on(void **state)
{
    static const char *const bad[] = {"10000000000000005\r\nhello",
                                      "5\nhello\r\n",
                                      "5;a\nb\r\nhello",
                                      "5;a=b\r\nhello\r\n",
                                      "+5\r\nhello\r\n",
                                      "0x5\r\nhello",
                                      "5\r\nhelloX",
                                      " 5\r\nhello",
                                      "\r\n",
                                      "5\r\nhello\r\n0\r\nBad Trailer: x\r\n\r\n"};
    for (size_t i = 0; i < STK_COUNT(bad); i++) {
        stk_body body;
        stk_buf to STK_AUTO(stk_buf_done) = STK_BUF(4096);
        stk_body_init(&body, STK_FRAMING_CHUNKED, 0, STK_FRAMING_CHUNKED);
        if (stk_body_feed(&body, stk_str_of(bad[i]), &to) != -1)
            fail_msg("%s passed", bad[i]);
        assert_false(body.done);
    }
}

static void an_early_end_is_no_end(void **state)
{
    static const stk_framing framings[] = {STK_FRAMING_LENGTH, STK_FRAMING_CHUNKED};
    for (size_t i = 0; i < STK_COUNT(framings); i++) {
        stk_body body;
        stk_buf to STK_AUTO(stk_buf_done) = STK_BUF(4096);
        stk_body_init(&body, framings[i], 10, framings[i]);
        assert_true(stk_body_feed(&body, STK_STR("5\r\nhel"), &to) > 0);
        assert_false(stk_body_eof(&body, &to));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_is_the_same_however_it_arrives),
        cmocka_unit_test(chunks_out_are_our_own),
        cmocka_unit_test(a_broken_chunk_ends_it_and_is_not_passed_on),
        cmocka_unit_test(an_early_end_is_no_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
