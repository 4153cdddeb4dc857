#include "proto/base/buf.h"
#include "tests/unit/base/test.h"

static void slices_compare_by_length_and_bytes(void **state)
{
    assert_true(stk_str_eq(S("a\0b"), S("a\0b")));
    assert_false(stk_str_eq(S("a\0b"), S("a\0c")));
    assert_false(stk_str_eq(S("a"), S("ab")));
    assert_true(stk_str_eq((stk_str){NULL, 0}, S("")));
    assert_true(stk_str_ieq(S("Host-@Z"), S("hOST-@z")));
    assert_false(stk_str_ieq(S("@"), S("`")));
    assert_true(stk_str_starts(S("abc"), S("ab")));
    assert_false(stk_str_starts(S("a"), S("ab")));
    assert_true(stk_str_starts((stk_str){NULL, 0}, S("")));
    assert_true(stk_str_ends(S("abc"), S("bc")));
    assert_true(stk_str_ends(S("abc"), S("")));
    assert_false(stk_str_ends(S("c"), S("bc")));
}

static void a_copy_that_does_not_fit_or_holds_nul_is_refused(void **state)
{
    char out[4] = "xyz";
    assert_true(stk_str_copy(S("abc"), out, sizeof(out)));
    assert_string_equal(out, "abc");
    assert_false(stk_str_copy(S("abcd"), out, sizeof(out)));
    assert_string_equal(out, "");
    assert_false(stk_str_copy(S("a\0b"), out, sizeof(out)));
    assert_string_equal(out, "");
    assert_true(stk_str_copy((stk_str){NULL, 0}, out, sizeof(out)));
}

static void only_plain_decimal_numbers_are_read(void **state)
{
    static const struct {
        stk_str in;
        uint64_t max;
        bool ok;
        uint64_t want;
    } rows[] = {
        {S("0"), 10, true, 0},
        {S("18446744073709551615"), UINT64_MAX, true, UINT64_MAX},
        {S("18446744073709551616"), UINT64_MAX, false, 0},
        {S("99999999999999999999999"), UINT64_MAX, false, 0},
        {S("11"), 10, false, 0},
        {S("10"), 10, true, 10},
        {S(""), 10, false, 0},
        {S("01"), 10, false, 0},
        {S("+1"), 10, false, 0},
        {S("-1"), 10, false, 0},
        {S(" 1"), 10, false, 0},
        {S("1\0"), 10, false, 0},
        {S("0x1"), 10, false, 0},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        uint64_t n = 77;
        assert_int_equal(stk_str_u64(rows[i].in, rows[i].max, &n), rows[i].ok);
        assert_int_equal(n, rows[i].ok ? rows[i].want : 77);
    }
}

static void a_buffer_stops_at_its_cap_and_stays_stopped(void **state)
{
    stk_buf b STK_AUTO(stk_buf_done) = STK_BUF(5);
    assert_int_equal(stk_buf_text(&b, "abc"), 0);
    assert_int_equal(stk_buf_text(&b, "def"), -STK_E_LIMIT);
    assert_true(b.over);
    assert_int_equal(stk_buf_byte(&b, 'd'), -STK_E_LIMIT);
    assert_int_equal(stk_buf_fmt(&b, "%d", 1), -STK_E_LIMIT);
    assert_null(stk_buf_room(&b, 0));
    assert_str(stk_buf_view(&b), "abc");
    assert_int_equal(b.p[3], 0);
    stk_buf_reset(&b);
    assert_int_equal(stk_buf_text(&b, "12345"), 0);
    assert_str(stk_buf_view(&b), "12345");
    assert_int_equal(b.p[5], 0);
}

static void formatting_fits_exactly_or_adds_nothing(void **state)
{
    stk_buf b STK_AUTO(stk_buf_done) = STK_BUF(100);
    assert_int_equal(stk_buf_fmt(&b, "%s-%d", "x", 42), 0);
    assert_str(stk_buf_view(&b), "x-42");
    assert_int_equal(stk_buf_fmt(&b, "%*s", 96, "end"), 0);
    assert_int_equal(b.n, 100);
    stk_buf_reset(&b);
    stk_buf_text(&b, "keep");
    assert_int_equal(stk_buf_fmt(&b, "%*s", 97, "end"), -STK_E_LIMIT);
    assert_string_equal(b.p, "keep");
}

static void a_huge_addition_does_not_wrap_around(void **state)
{
    stk_buf b STK_AUTO(stk_buf_done) = STK_BUF(SIZE_MAX);
    stk_buf_byte(&b, 'x');
    assert_null(stk_buf_room(&b, SIZE_MAX - 1));
    assert_null(stk_buf_room(&b, SIZE_MAX));
    assert_true(b.over);
}

static void taking_gives_the_bytes_and_empties_the_buffer(void **state)
{
    stk_buf b STK_AUTO(stk_buf_done) = STK_BUF(10);
    size_t n = 7;
    char *none STK_AUTO(stk_freep) = stk_buf_take(&b, &n);
    assert_int_equal(n, 0);
    assert_string_equal(none, "");
    stk_buf_text(&b, "abcdef");
    stk_buf_drop(&b, 2);
    stk_buf_drop(&b, 0);
    char *p STK_AUTO(stk_freep) = stk_buf_take(&b, &n);
    assert_int_equal(n, 4);
    assert_string_equal(p, "cdef");
    assert_int_equal(b.n, 0);
    assert_int_equal(b.cap, 10);
    stk_buf_drop(&b, 99);
    assert_int_equal(stk_buf_text(&b, "0123456789"), 0);
    stk_buf_drop(&b, 99);
    assert_int_equal(b.n, 0);
}

/* RFC 4648, section 10. */
static void base64_gives_the_vectors_of_the_rfc_and_reads_them_back(void **state)
{
    static const char *const rows[][2] = {{"", ""},
                                          {"f", "Zg=="},
                                          {"fo", "Zm8="},
                                          {"foo", "Zm9v"},
                                          {"foob", "Zm9vYg=="},
                                          {"fooba", "Zm9vYmE="},
                                          {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_buf b STK_AUTO(stk_buf_done) = STK_BUF(100);
        assert_int_equal(stk_base64_encode(&b, stk_str_of(rows[i][0])), 0);
        assert_string_equal(b.p, rows[i][1]);
        stk_buf_reset(&b);
        assert_int_equal(stk_base64_decode(&b, stk_str_of(rows[i][1])), 0);
        assert_string_equal(b.p, rows[i][0]);
    }
}

static void base64_that_is_not_canonical_is_refused_and_leaves_the_buffer(void **state)
{
    static const char *const rows[] = {"Z",    "Zg",       "Zg=",    "Zh==",     "Zm9=", "====",   "=Zg=",
                                       "Z===", "Zg==Zg==", "Zm9v\n", "Zm 9v===", "Zm-_", "Zm9\xff"};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_buf b STK_AUTO(stk_buf_done) = STK_BUF(100);
        stk_buf_text(&b, "keep");
        assert_int_equal(stk_base64_decode(&b, stk_str_of(rows[i])), -STK_E_FIELD);
        assert_string_equal(b.p, "keep");
    }
}

static void base64_respects_the_cap(void **state)
{
    stk_buf b STK_AUTO(stk_buf_done) = STK_BUF(3);
    assert_int_equal(stk_base64_encode(&b, S("f")), -STK_E_LIMIT);
    stk_buf_reset(&b);
    assert_int_equal(stk_base64_decode(&b, S("Zm9vYg==")), -STK_E_LIMIT);
    stk_buf_reset(&b);
    assert_int_equal(stk_base64_decode(&b, S("Zm9v")), 0);
}

static void every_byte_survives_base64_and_hex(void **state)
{
    unsigned char all[256], back[256];
    char text[513];
    for (size_t i = 0; i < 256; i++)
        all[i] = (unsigned char)i;
    for (size_t n = 0; n <= 256; n++) {
        stk_buf b STK_AUTO(stk_buf_done) = STK_BUF(1000), d STK_AUTO(stk_buf_done) = STK_BUF(1000);
        assert_int_equal(stk_base64_encode(&b, stk_str_n(all, n)), 0);
        assert_int_equal(stk_base64_decode(&d, stk_buf_view(&b)), 0);
        assert_true(stk_str_eq(stk_buf_view(&d), stk_str_n(all, n)));
    }
    stk_hex(all, 256, text);
    assert_int_equal(stk_unhex(stk_str_of(text), back, 256), 0);
    assert_memory_equal(all, back, 256);
}

static void hex_of_another_length_or_alphabet_is_refused(void **state)
{
    char out[2];
    assert_int_equal(stk_unhex(S("0aff"), out, 2), 0);
    assert_int_equal(stk_unhex(S("0aF f"), out, 2), -STK_E_FIELD);
    assert_int_equal(stk_unhex(S("0AFF"), out, 2), -STK_E_FIELD);
    assert_int_equal(stk_unhex(S("0af"), out, 2), -STK_E_FIELD);
    assert_int_equal(stk_unhex(S("0aff00"), out, 2), -STK_E_FIELD);
    assert_int_equal(stk_unhex(S("0agf"), out, 2), -STK_E_FIELD);
}

static const struct {
    stk_str in;
    bool valid;
    stk_str repaired;
} utf8_rows[] = {
    {S(""), true, S("")},
    {S("plain ascii, long enough"), true, S("plain ascii, long enough")},
    {S("a\0b"), true, S("a\0b")},
    {S("\xc2\x80\xdf\xbf"), true, S("\xc2\x80\xdf\xbf")},
    {S("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf"), true,
     S("\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf")},
    {S("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"), true, S("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf")},
    {S("\xff"), false, S("\xef\xbf\xbd")},
    {S("12345678\x80"), false, S("12345678\xef\xbf\xbd")},
    {S("\xc0\xaf"), false, S("\xef\xbf\xbd\xef\xbf\xbd")},
    {S("\xe0\x80\xaf"), false, S("\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd")},
    {S("\xed\xa0\x80"), false, S("\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd")},
    {S("\xf4\x90\x80\x80"), false, S("\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd")},
    {S("\xe2\x82"), false, S("\xef\xbf\xbd")},
    {S("\xf0\x9f\x98x"), false, S("\xef\xbf\xbdx")},
    {S("\xe2\x82\xe2\x82\xac"), false, S("\xef\xbf\xbd\xe2\x82\xac")},
};

static void utf8_is_checked_and_repaired_by_maximal_subparts(void **state)
{
    for (size_t i = 0; i < STK_COUNT(utf8_rows); i++) {
        stk_buf b STK_AUTO(stk_buf_done) = STK_BUF(100);
        assert_int_equal(stk_utf8_valid(utf8_rows[i].in), utf8_rows[i].valid);
        assert_int_equal(stk_utf8_repair(&b, utf8_rows[i].in), 0);
        assert_true(stk_str_eq(stk_buf_view(&b), utf8_rows[i].repaired));
        assert_true(stk_utf8_valid(stk_buf_view(&b)));
    }
    stk_buf small STK_AUTO(stk_buf_done) = STK_BUF(2);
    assert_int_equal(stk_utf8_repair(&small, S("\xff")), -STK_E_LIMIT);
}

static const struct {
    stk_str one;
    bool acts;
} acting[] = {
    {S("a"), false},
    {S("~"), false},
    {S("\xc3\xa9"), false},
    {S("\xe2\x98\xb9"), false},
    {S("\xf0\x9f\x98\x80"), false},
    {S("\0"), true},
    {S("\n"), true},
    {S("\x1b"), true},
    {S("\x7f"), true},
    {S("\xc2\x85"), true},
    {S("\xc2\x9b"), true},
    {S("\xc2\xa0"), false},
    {S("\xe2\x80\xa8"), true},
    {S("\xe2\x80\xae"), true},
    {S("\xe2\x80\xaf"), false},
    {S("\xef\xbb\xbf"), true},
    {S("\xf3\xa0\x80\x81"), true},
};

static void what_a_terminal_acts_on_is_told_from_what_it_shows(void **state)
{
    for (size_t i = 0; i < STK_COUNT(acting); i++)
        if (stk_utf8_acts(acting[i].one) != acting[i].acts)
            fail_msg("row %zu", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_compare_by_length_and_bytes),
        cmocka_unit_test(a_copy_that_does_not_fit_or_holds_nul_is_refused),
        cmocka_unit_test(only_plain_decimal_numbers_are_read),
        cmocka_unit_test(a_buffer_stops_at_its_cap_and_stays_stopped),
        cmocka_unit_test(formatting_fits_exactly_or_adds_nothing),
        cmocka_unit_test(a_huge_addition_does_not_wrap_around),
        cmocka_unit_test(taking_gives_the_bytes_and_empties_the_buffer),
        cmocka_unit_test(base64_gives_the_vectors_of_the_rfc_and_reads_them_back),
        cmocka_unit_test(base64_that_is_not_canonical_is_refused_and_leaves_the_buffer),
        cmocka_unit_test(base64_respects_the_cap),
        cmocka_unit_test(every_byte_survives_base64_and_hex),
        cmocka_unit_test(hex_of_another_length_or_alphabet_is_refused),
        cmocka_unit_test(utf8_is_checked_and_repaired_by_maximal_subparts),
        cmocka_unit_test(what_a_terminal_acts_on_is_told_from_what_it_shows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
