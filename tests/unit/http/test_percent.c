#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include "proto/http/server.h"

static const struct {
    stk_str in;
    const char *out; /* NULL: refused */
    size_t n;
} decodings[] = {
    {STK_STR(""), "", 0},         {STK_STR("abc"), "abc", 3},
    {STK_STR("a%20b"), "a b", 3}, {STK_STR("%2e%2E/%2f"), "..//", 4},
    {STK_STR("%252e"), "%2e", 3}, {STK_STR("a+b"), "a+b", 3},
    {STK_STR("%00"), "\0", 1},    {STK_STR("%c3%A9"), "\xc3\xa9", 2},
    {STK_STR("%"), NULL, 0},      {STK_STR("a%2"), NULL, 0},
    {STK_STR("%zz"), NULL, 0},    {STK_STR("%2g"), NULL, 0},
    {STK_STR("%%20"), NULL, 0},   {STK_STR("%-1"), NULL, 0},
};

static void decoding_happens_exactly_once(void **state)
{
    for (size_t i = 0; i < STK_COUNT(decodings); i++) {
        stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(100);
        stk_err err;
        assert_int_equal(stk_buf_text(&out, "x"), 0);
        int rc = stk_percent_decode(decodings[i].in, &out, &err);
        if (!decodings[i].out) {
            assert_int_equal(rc, -STK_E_HTTP);
            assert_int_equal(out.n, 1);
            continue;
        }
        assert_int_equal(rc, 0);
        assert_int_equal(out.n, decodings[i].n + 1);
        assert_memory_equal(out.p + 1, decodings[i].out, decodings[i].n);
    }
}

static void decoding_over_the_cap_is_an_error(void **state)
{
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(2);
    assert_int_equal(stk_percent_decode(STK_STR("abc"), &out, NULL), -STK_E_LIMIT);
}

static void encoding_reads_back_the_same(void **state)
{
    char all[256];
    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(1000), back STK_AUTO(stk_buf_done) = STK_BUF(1000);
    assert_int_equal(stk_percent_encode(stk_str_n(all, 256), false, &text), 0);
    assert_null(memchr(text.p, '/', text.n));
    assert_int_equal(stk_percent_decode(stk_buf_view(&text), &back, NULL), 0);
    assert_int_equal(back.n, 256);
    assert_memory_equal(back.p, all, 256);
    stk_buf_reset(&text);
    assert_int_equal(stk_percent_encode(STK_STR("a b/c"), true, &text), 0);
    assert_true(stk_str_eq(stk_buf_view(&text), STK_STR("a%20b/c")));
}

static const struct {
    stk_str query;
    const char *value; /* NULL: absent */
} queries[] = {
    {STK_STR("a=1&b=2"), "1"}, {STK_STR("b=2&a=1"), "1"},     {STK_STR("a="), ""},
    {STK_STR("a"), ""},        {STK_STR("%61=x%20y"), "x y"}, {STK_STR("a=x+y"), "x+y"},
    {STK_STR("a=1&a=2"), "1"}, {STK_STR("a=b=c"), "b=c"},     {STK_STR("&&a=1"), "1"},
    {STK_STR("ab=1"), NULL},   {STK_STR("b=a"), NULL},        {STK_STR(""), NULL},
    {STK_STR("a=%zz"), NULL},  {STK_STR("A=1"), NULL},
};

static void query_values_are_found_and_decoded(void **state)
{
    for (size_t i = 0; i < STK_COUNT(queries); i++) {
        stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(100);
        bool found = stk_query_get(queries[i].query, "a", &out);
        assert_int_equal(found, queries[i].value != NULL);
        if (found)
            assert_true(stk_str_eq(stk_buf_view(&out), stk_str_of(queries[i].value)));
        else
            assert_int_equal(out.n, 0);
    }
}

static void statuses_have_names(void **state)
{
    assert_string_equal(stk_http_status_name(404), "Not Found");
    assert_string_equal(stk_http_status_name(431), "Request Header Fields Too Large");
    assert_string_equal(stk_http_status_name(499 + 80), "Error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decoding_happens_exactly_once), cmocka_unit_test(decoding_over_the_cap_is_an_error),
        cmocka_unit_test(encoding_reads_back_the_same),  cmocka_unit_test(query_values_are_found_and_decoded),
        cmocka_unit_test(statuses_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
