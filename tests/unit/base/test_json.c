#include "proto/base/json.h"
#include "proto/base/time.h"
#include "tests/unit/base/test.h"
#include <math.h>

static const struct {
    stk_str text;
    const char *detail;
} refused[] = {
    {S(""), "the text is empty"},
    {S(" \n\t\r "), "the text is empty"},
    {S("\xef\xbb\xbf{}"), "a byte order mark at byte 0"},
    {S("{} x"), "text after the end of the document at byte 3"},
    {S("{}{}"), "text after the end of the document at byte 2"},
    {S("1 2"), "text after the end of the document at byte 2"},
    {S("{}\0"), "text after the end of the document at byte 2"},
    {S("\0"), "not a value at byte 0"},
    {S("{\"a\":1,\"a\":2}"), "a repeated key at byte 7"},
    {S("{\"a\":1,\"\\u0061\":2}"), "a repeated key at byte 7"},
    {S("{\"\":1,\"\":2}"), "a repeated key at byte 6"},
    {S("[{\"b\":{\"a\":1,\"x\":0,\"a\":2}}]"), "a repeated key at byte 19"},
    {S("{\"a\":0,\"b\":0,\"c\":0,\"d\":0,\"e\":0,\"f\":0,\"g\":0,\"h\":0,\"i\":0,\"c\":1}"),
     "a repeated key at byte 55"},
    {S("\"a\nb\""), "a control byte in a string at byte 2"},
    {S("\"a\0b\""), "a control byte in a string at byte 2"},
    {S("\"12345678\x1f\""), "a control byte in a string at byte 9"},
    {S("\"\xff\""), "bytes that are not UTF-8 at byte 1"},
    {S("\"\xc0\x80\""), "bytes that are not UTF-8 at byte 1"},
    {S("\"\xed\xa0\x80\""), "bytes that are not UTF-8 at byte 1"},
    {S("\"12345678\xe2\x82\""), "bytes that are not UTF-8 at byte 9"},
    {S("\xff"), "not a value at byte 0"},
    {S("\"\\ud800\""), "a lone surrogate at byte 1"},
    {S("\"\\udc00\""), "a lone surrogate at byte 1"},
    {S("\"\\ud800\\u0041\""), "a lone surrogate at byte 1"},
    {S("\"x\\ud800x\""), "a lone surrogate at byte 2"},
    {S("\"\\ud800\\ud800\""), "a lone surrogate at byte 1"},
    {S("\"\\u12g4\""), "a bad \\u escape at byte 5"},
    {S("\"\\u12"), "the text ends too early at byte 5"},
    {S("\"\\x41\""), "an unknown escape at byte 2"},
    {S("\"\\"), "the text ends too early at byte 2"},
    {S("\"abc"), "the text ends too early at byte 4"},
    {S("'a'"), "not a value at byte 0"},
    {S("01"), "a malformed number at byte 0"},
    {S("-01"), "a malformed number at byte 0"},
    {S("-"), "a malformed number at byte 0"},
    {S("+1"), "not a value at byte 0"},
    {S(".5"), "not a value at byte 0"},
    {S("1."), "a malformed number at byte 0"},
    {S("1e"), "a malformed number at byte 0"},
    {S("1e+"), "a malformed number at byte 0"},
    {S("0x10"), "text after the end of the document at byte 1"},
    {S("[1e999]"), "a number too large for a double at byte 1"},
    {S("-1e309"), "a number too large for a double at byte 0"},
    {S("1e99999999999999999999999"), "a number too large for a double at byte 0"},
    {S("NaN"), "not a value at byte 0"},
    {S("Infinity"), "not a value at byte 0"},
    {S("-Infinity"), "a malformed number at byte 0"},
    {S("nan"), "an unknown word at byte 0"},
    {S("tru"), "an unknown word at byte 0"},
    {S("True"), "not a value at byte 0"},
    {S("nulll"), "text after the end of the document at byte 4"},
    {S("["), "the text ends too early at byte 1"},
    {S("[1"), "the text ends too early at byte 2"},
    {S("[1,"), "the text ends too early at byte 3"},
    {S("[1,]"), "not a value at byte 3"},
    {S("[,1]"), "not a value at byte 1"},
    {S("[1 2]"), "',' or ']' was expected at byte 3"},
    {S("[1}"), "',' or ']' was expected at byte 2"},
    {S("{\"a\":1,}"), "a key was expected at byte 7"},
    {S("{,}"), "a key was expected at byte 1"},
    {S("{a:1}"), "a key was expected at byte 1"},
    {S("{1:1}"), "a key was expected at byte 1"},
    {S("{\"a\"}"), "':' was expected at byte 4"},
    {S("{\"a\" 1}"), "':' was expected at byte 5"},
    {S("{\"a\":}"), "not a value at byte 5"},
    {S("{\"a\":1]"), "',' or '}' was expected at byte 6"},
    {S("]"), "not a value at byte 0"},
    {S("// c\n1"), "not a value at byte 0"},
    {S("[1]\xc2\xa0"), "text after the end of the document at byte 3"},
};

static void texts_that_are_not_strict_json_are_refused_with_their_place(void **state)
{
    for (size_t i = 0; i < STK_COUNT(refused); i++) {
        stk_json *doc = NULL;
        stk_err err = {0};
        /* An exact copy, so that a sanitizer sees a read past the end. */
        char *copy STK_AUTO(stk_freep) = malloc(refused[i].text.n + 1);
        memcpy(copy, refused[i].text.p, refused[i].text.n);
        assert_int_equal(stk_json_parse(stk_str_n(copy, refused[i].text.n), NULL, &doc, &err), -STK_E_JSON);
        assert_null(doc);
        assert_string_equal(err.detail, refused[i].detail);
        assert_int_equal(stk_json_parse(refused[i].text, NULL, &doc, NULL), -STK_E_JSON);
    }
}

static stk_json *parse(stk_str text)
{
    stk_json *doc = NULL;
    stk_err err = {0};
    if (stk_json_parse(text, NULL, &doc, &err) < 0)
        fail_msg("%.*s: %s", (int)text.n, text.p, err.detail);
    return doc;
}

static void every_kind_of_value_is_read(void **state)
{
    stk_json *doc STK_AUTO(stk_json_freep) =
        parse(S(" {\"s\" : \"x\" , "
                "\"n\":-1.5e2,\"t\":true,\"f\":false,\"z\":null,\"a\":[1,[],{}],\"o\":{\"k\":\"v\"}} "));
    stk_jv root = stk_json_root(doc);
    assert_int_equal(stk_jv_type(root), STK_J_OBJECT);
    assert_int_equal(stk_jv_count(root), 7);
    assert_str(stk_jv_str(stk_jv_get(root, "s")), "x");
    assert_true(stk_jv_double(stk_jv_get(root, "n")) == -150.0);
    assert_true(stk_jv_bool(stk_jv_get(root, "t")));
    assert_false(stk_jv_bool(stk_jv_get(root, "f")));
    assert_int_equal(stk_jv_type(stk_jv_get(root, "f")), STK_J_BOOL);
    assert_int_equal(stk_jv_type(stk_jv_get(root, "z")), STK_J_NULL);
    stk_jv a = stk_jv_get(root, "a");
    assert_int_equal(stk_jv_count(a), 3);
    assert_str(stk_jv_raw(a), "[1,[],{}]");
    assert_str(stk_jv_str(stk_jv_get(stk_jv_get(root, "o"), "k")), "v");
    static const char order[] = "sntfzao";
    size_t i = 0;
    for (stk_jv m = stk_jv_first(root); m.doc; m = stk_jv_next(m))
        assert_int_equal(stk_jv_key(m).p[0], order[i++]);
    assert_int_equal(i, 7);
}

static void a_value_that_is_missing_or_of_another_type_reads_as_nothing(void **state)
{
    stk_json *doc STK_AUTO(stk_json_freep) = parse(S("{\"s\":\"1\",\"n\":1,\"e\":[]}"));
    stk_jv root = stk_json_root(doc), none = stk_jv_get(root, "zz");
    int64_t n = 7;
    assert_int_equal(stk_jv_type(none), STK_J_NONE);
    assert_null(stk_jv_first(none).doc);
    assert_null(stk_jv_next(none).doc);
    assert_null(stk_jv_get(none, "x").doc);
    assert_null(stk_jv_get(stk_jv_get(root, "n"), "x").doc);
    assert_null(stk_jv_first(stk_jv_get(root, "e")).doc);
    assert_null(stk_jv_first(stk_jv_get(root, "s")).doc);
    assert_null(stk_jv_next(root).doc);
    assert_int_equal(stk_jv_key(root).n, 0);
    assert_int_equal(stk_jv_str(stk_jv_get(root, "n")).n, 0);
    assert_int_equal(stk_jv_raw(none).n, 0);
    assert_int_equal(stk_jv_count(stk_jv_get(root, "n")), 0);
    assert_false(stk_jv_bool(stk_jv_get(root, "n")));
    assert_true(stk_jv_double(stk_jv_get(root, "s")) == 0);
    assert_false(stk_jv_int(stk_jv_get(root, "s"), &n));
    assert_false(stk_jv_int(none, &n));
    assert_int_equal(n, 7);
    assert_string_equal(stk_jtype_name(STK_J_OBJECT), "object");
    assert_string_equal(stk_jtype_name((stk_jtype)99), "nothing");
}

static void strings_carry_a_length_and_all_escapes(void **state)
{
    stk_json *doc STK_AUTO(stk_json_freep) =
        parse(S("[\"a\\u0000b\",\"\\\"\\\\\\/"
                "\\b\\f\\n\\r\\t\",\"\\u00e9\\u20aC\\ud83d\\uDE00\",\"\xf0\x9f\x98\x80/\x7f\","
                "\"\",\"plain \\u0041 then plain\"]"));
    stk_jv v = stk_jv_first(stk_json_root(doc));
    assert_str(stk_jv_str(v), "a\0b");
    v = stk_jv_next(v);
    assert_str(stk_jv_str(v), "\"\\/\b\f\n\r\t");
    v = stk_jv_next(v);
    assert_str(stk_jv_str(v), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    v = stk_jv_next(v);
    assert_str(stk_jv_str(v), "\xf0\x9f\x98\x80/\x7f");
    v = stk_jv_next(v);
    assert_str(stk_jv_str(v), "");
    v = stk_jv_next(v);
    assert_str(stk_jv_str(v), "plain A then plain");
    assert_str(stk_jv_raw(v), "\"plain \\u0041 then plain\"");
}

static void whole_numbers_are_exact_or_refused(void **state)
{
    static const struct {
        const char *text;
        bool whole;
        int64_t want;
    } rows[] = {
        {"0", true, 0},
        {"-0", true, 0},
        {"-0.000e99", true, 0},
        {"1.0", true, 1},
        {"1e3", true, 1000},
        {"1E+3", true, 1000},
        {"1200e-2", true, 12},
        {"1200e-3", false, 0},
        {"0.5", false, 0},
        {"1.50e1", true, 15},
        {"9007199254740993", true, 9007199254740993},
        {"9223372036854775807", true, INT64_MAX},
        {"9223372036854775808", false, 0},
        {"-9223372036854775808", true, INT64_MIN},
        {"-9223372036854775809", false, 0},
        {"9223372036854775807.0000000000000000000000000", true, INT64_MAX},
        {"18446744073709551616", false, 0},
        {"18446744073709551617", false, 0},
        {"1e19", false, 0},
        {"1e300", false, 0},
        {"1e-300", false, 0},
        {"0.000000000000000000000000000000001e33", true, 1},
        {"100000000000000000000000000000000e-30", true, 100},
        {"1e-99999999999999999999", false, 0},
        {"0e99999999999999999999", true, 0},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_json *doc STK_AUTO(stk_json_freep) = parse(stk_str_of(rows[i].text));
        int64_t n = 77;
        if (stk_jv_int(stk_json_root(doc), &n) != rows[i].whole)
            fail_msg("%s", rows[i].text);
        assert_int_equal(n, rows[i].whole ? rows[i].want : 77);
    }
}

static void doubles_are_read_up_to_the_largest(void **state)
{
    stk_json *doc STK_AUTO(stk_json_freep) = parse(S("[1.7976931348623157e308,5e-324,-0,0.1,1e-999]"));
    stk_jv v = stk_jv_first(stk_json_root(doc));
    assert_true(stk_jv_double(v) == 1.7976931348623157e308);
    v = stk_jv_next(v);
    assert_true(stk_jv_double(v) == 5e-324);
    v = stk_jv_next(v);
    assert_true(signbit(stk_jv_double(v)));
    v = stk_jv_next(v);
    assert_true(stk_jv_double(v) == 0.1);
    v = stk_jv_next(v);
    assert_true(stk_jv_double(v) == 0);
}

static void a_number_of_many_digits_is_judged_by_its_size(void **state)
{
    char text[600];
    stk_json *doc = NULL;
    memset(text, '9', sizeof(text));
    assert_int_equal(stk_json_parse(stk_str_n(text, 309), NULL, &doc, NULL), -STK_E_JSON);
    memcpy(text + 200, "e99", 3);
    assert_int_equal(stk_json_parse(stk_str_n(text, 203), NULL, &doc, NULL), 0);
    stk_json_free(doc);
    memset(text, '9', sizeof(text));
    memcpy(text + 290, "e99", 3);
    doc = NULL;
    assert_int_equal(stk_json_parse(stk_str_n(text, 293), NULL, &doc, NULL), -STK_E_JSON);
    memset(text, '9', sizeof(text));
    memcpy(text + 400, "e-300", 5);
    assert_int_equal(stk_json_parse(stk_str_n(text, 405), NULL, &doc, NULL), 0);
    stk_json_free(doc);
}

static void nesting_and_number_of_values_are_bounded(void **state)
{
    stk_err err = {0};
    stk_json *doc = NULL;
    const size_t deep = 100000;
    char *text STK_AUTO(stk_freep) = malloc(2 * deep);
    memset(text, '[', deep);
    memset(text + deep, ']', deep);
    assert_int_equal(stk_json_parse(stk_str_n(text, 2 * deep), NULL, &doc, &err), -STK_E_JSON);
    assert_string_equal(err.detail, "nesting too deep at byte 64");
    assert_int_equal(stk_json_parse(stk_str_n(text + deep - 64, 128), NULL, &doc, &err), 0);
    stk_json_free(doc);
    doc = NULL;
    assert_int_equal(stk_json_parse(stk_str_n(text + deep - 65, 130), NULL, &doc, &err), -STK_E_JSON);

    stk_json_limits wide = {.depth = deep, .values = deep};
    assert_int_equal(stk_json_parse(stk_str_n(text, 2 * deep), &wide, &doc, &err), 0);
    stk_json_free(doc);
    doc = NULL;
    wide.values--;
    assert_int_equal(stk_json_parse(stk_str_n(text, 2 * deep), &wide, &doc, &err), -STK_E_LIMIT);
    stk_json_limits three = {.values = 3};
    assert_int_equal(stk_json_parse(S("[1,2]"), &three, &doc, &err), 0);
    stk_json_free(doc);
    doc = NULL;
    assert_int_equal(stk_json_parse(S("[1,2,3]"), &three, &doc, &err), -STK_E_LIMIT);
    assert_null(doc);
}

static void a_repeated_key_is_found_in_objects_of_every_size(void **state)
{
    for (int n = 2; n <= 40; n++)
        for (int twice = 0; twice < n; twice++) {
            stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(10000);
            stk_json *doc = NULL;
            for (int i = 0; i < n; i++)
                stk_buf_fmt(&text, "%c\"k%02d\":[]", i ? ',' : '{', i);
            size_t unique = text.n;
            stk_buf_byte(&text, '}');
            assert_int_equal(stk_json_parse(stk_buf_view(&text), NULL, &doc, NULL), 0);
            stk_json_free(doc);
            doc = NULL;
            text.n = unique;
            stk_buf_fmt(&text, ",\"k\\u0030%d\":0}", twice % 10);
            assert_int_equal(stk_json_parse(stk_buf_view(&text), NULL, &doc, NULL),
                             twice % 10 < n ? -STK_E_JSON : 0);
            stk_json_free(doc);
        }
}

/* Keys of one length that differ at the end only: the worst for comparing. */
static void a_repeated_key_among_100k_is_found_in_time(void **state)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(1 << 24);
    stk_err err = {0};
    stk_json *doc = NULL;
    stk_json_limits limits = {.values = 200000};
    stk_buf_byte(&text, '{');
    for (int i = 0; i < 100000; i++)
        stk_buf_fmt(&text, "\"a long common beginning of the key %07d\":%d,", (i * 7919) % 100000, i);
    size_t end = text.n - 1;
    text.p[end] = '}';
    stk_mono before = stk_mono_now();
    assert_int_equal(stk_json_parse(stk_buf_view(&text), &limits, &doc, &err), 0);
    assert_int_equal(stk_jv_count(stk_json_root(doc)), 100000);
    stk_json_free(doc);
    doc = NULL;
    text.p[end] = ',';
    stk_buf_text(&text, "\"a long common beginning of the key 0050000\":1}");
    assert_int_equal(stk_json_parse(stk_buf_view(&text), &limits, &doc, &err), -STK_E_JSON);
    char want[64];
    snprintf(want, sizeof(want), "a repeated key at byte %zu", end + 1);
    assert_string_equal(err.detail, want);
    assert_true(stk_span_sec(stk_mono_sub(stk_mono_now(), before)) < 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_that_are_not_strict_json_are_refused_with_their_place),
        cmocka_unit_test(every_kind_of_value_is_read),
        cmocka_unit_test(a_value_that_is_missing_or_of_another_type_reads_as_nothing),
        cmocka_unit_test(strings_carry_a_length_and_all_escapes),
        cmocka_unit_test(whole_numbers_are_exact_or_refused),
        cmocka_unit_test(doubles_are_read_up_to_the_largest),
        cmocka_unit_test(a_number_of_many_digits_is_judged_by_its_size),
        cmocka_unit_test(nesting_and_number_of_values_are_bounded),
        cmocka_unit_test(a_repeated_key_is_found_in_objects_of_every_size),
        cmocka_unit_test(a_repeated_key_among_100k_is_found_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
