#include "proto/base/json.h"
#include "proto/base/time.h"
#include "tests/unit/base/test.h"
#include <float.h>
#include <math.h>

static stk_buf out;
static stk_jw w;

static int fresh(void **state)
{
    stk_buf_done(&out);
    stk_buf_init(&out, 1 << 20);
    stk_jw_init(&w, &out);
    return 0;
}

static int last(void **state)
{
    stk_buf_done(&out);
    return 0;
}

static void commas_and_brackets_are_placed(void **state)
{
    stk_jw_object(&w);
    stk_jw_kint(&w, "a", INT64_MIN);
    stk_jw_key(&w, "b");
    stk_jw_array(&w);
    stk_jw_bool(&w, true);
    stk_jw_null(&w);
    stk_jw_object(&w);
    stk_jw_close(&w, '}');
    stk_jw_array(&w);
    stk_jw_close(&w, ']');
    stk_jw_text(&w, NULL);
    stk_jw_close(&w, ']');
    stk_jw_ktext(&w, "c", "x");
    stk_jw_kbool(&w, "d", false);
    stk_jw_kdouble(&w, "e", 0.25);
    stk_jw_kraw(&w, "f", S("[1]"));
    stk_jw_kstr(&w, "g", S("a\0b"));
    stk_jw_close(&w, '}');
    assert_int_equal(stk_jw_end(&w, NULL), 0);
    assert_string_equal(out.p,
                        "{\"a\":-9223372036854775808,\"b\":[true,null,{},[],null],\"c\":\"x\",\"d\":false,"
                        "\"e\":0.25,\"f\":[1],\"g\":\"a\\u0000b\"}");
}

static void strings_are_escaped_and_repaired(void **state)
{
    stk_jw_str(&w, S("\"\\/\b\f\n\r\t\x01\x1f\x7f\xff\xc3\xa9\xed\xa0\x80"));
    assert_int_equal(stk_jw_end(&w, NULL), 0);
    assert_string_equal(out.p, "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\xef\xbf\xbd\xc3\xa9"
                               "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

static void keys_are_escaped_too(void **state)
{
    stk_jw_object(&w);
    stk_jw_key_str(&w, S("a\0\"\xff"));
    stk_jw_int(&w, 1);
    stk_jw_close(&w, '}');
    assert_int_equal(stk_jw_end(&w, NULL), 0);
    assert_string_equal(out.p, "{\"a\\u0000\\\"\xef\xbf\xbd\":1}");
}

static void doubles_take_the_shortest_form_that_reads_back(void **state)
{
    static const struct {
        double d;
        const char *want;
    } rows[] = {{0, "0"},
                {-0.0, "-0"},
                {1, "1"},
                {100, "100"},
                {-3e9, "-3000000000"},
                {0.1, "0.1"},
                {1.5e-7, "1.5e-07"},
                {123456.789, "123456.789"},
                {1e300, "1e+300"},
                {5e-324, "5e-324"},
                {DBL_MAX, "1.7976931348623157e+308"},
                {NAN, "null"},
                {INFINITY, "null"},
                {-INFINITY, "null"}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        fresh(NULL);
        stk_jw_double(&w, rows[i].d);
        assert_int_equal(stk_jw_end(&w, NULL), 0);
        assert_string_equal(out.p, rows[i].want);
        if (isfinite(rows[i].d))
            assert_true(strtod(out.p, NULL) == rows[i].d);
    }
}

static void close_early(void)
{
    stk_jw_close(&w, '}');
}
static void leave_open(void)
{
    stk_jw_object(&w);
}
static void close_wrong(void)
{
    stk_jw_object(&w);
    stk_jw_close(&w, ']');
}
static void value_without_key(void)
{
    stk_jw_object(&w);
    stk_jw_int(&w, 1);
    stk_jw_close(&w, '}');
}
static void key_without_value(void)
{
    stk_jw_object(&w);
    stk_jw_key(&w, "a");
    stk_jw_close(&w, '}');
}
static void two_keys(void)
{
    stk_jw_object(&w);
    stk_jw_key(&w, "a");
    stk_jw_key(&w, "b");
    stk_jw_int(&w, 1);
    stk_jw_close(&w, '}');
}
static void key_in_array(void)
{
    stk_jw_array(&w);
    stk_jw_key(&w, "a");
    stk_jw_close(&w, ']');
}
static void two_documents(void)
{
    stk_jw_int(&w, 1);
    stk_jw_int(&w, 2);
}
static void nothing(void)
{
}
static void too_deep(void)
{
    for (int i = 0; i <= STK_JW_DEPTH_MAX; i++)
        stk_jw_array(&w);
    for (int i = 0; i <= STK_JW_DEPTH_MAX; i++)
        stk_jw_close(&w, ']');
}
static void empty_raw(void)
{
    stk_jw_raw(&w, S(""));
}

static void a_text_put_together_wrongly_is_an_error(void **state)
{
    static void (*const rows[])(void) = {close_early,       leave_open, close_wrong,  value_without_key,
                                         key_without_value, two_keys,   key_in_array, two_documents,
                                         nothing,           too_deep,   empty_raw};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        fresh(NULL);
        rows[i]();
        assert_int_equal(stk_jw_end(&w, NULL), -STK_E_INTERNAL);
    }
}

static void the_deepest_text_that_is_read_can_be_written(void **state)
{
    for (int i = 0; i < STK_JW_DEPTH_MAX; i++)
        stk_jw_array(&w);
    for (int i = 0; i < STK_JW_DEPTH_MAX; i++)
        stk_jw_close(&w, ']');
    assert_int_equal(stk_jw_end(&w, NULL), 0);
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    assert_int_equal(stk_json_parse(stk_buf_view(&out), NULL, &doc, NULL), 0);
}

static void going_over_the_cap_is_told_at_the_end(void **state)
{
    stk_buf small STK_AUTO(stk_buf_done) = STK_BUF(10);
    stk_jw_init(&w, &small);
    stk_jw_array(&w);
    stk_jw_text(&w, "a long text");
    stk_jw_close(&w, ']');
    stk_err err = {0};
    assert_int_equal(stk_jw_end(&w, &err), -STK_E_LIMIT);
    assert_true(small.n <= 10);
}

static void a_value_is_written_again_on_one_line(void **state)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    assert_int_equal(stk_json_parse(S(" { \"a\" : [ 1.0 , { } ,\n[ ] , \"\\u0041\\/\" ] , \"\\u0000\" : { "
                                      "\"k\" : 1E2 } , \"z\":null } "),
                                    NULL, &doc, NULL),
                     0);
    stk_jw_value(&w, stk_json_root(doc));
    assert_int_equal(stk_jw_end(&w, NULL), 0);
    assert_string_equal(out.p, "{\"a\":[1.0,{},[],\"A/\"],\"\\u0000\":{\"k\":1E2},\"z\":null}");
    fresh(NULL);
    stk_jw_array(&w);
    stk_jw_value(&w, stk_jv_get(stk_json_root(doc), "a"));
    stk_jw_value(&w, stk_jv_get(stk_json_root(doc), "z"));
    stk_jw_value(&w, stk_jv_get(stk_json_root(doc), "not there"));
    stk_jw_close(&w, ']');
    assert_int_equal(stk_jw_end(&w, NULL), 0);
    assert_string_equal(out.p, "[[1.0,{},[],\"A/\"],null,null]");
}

static uint64_t seed;

static uint32_t roll(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

static void random_text(void)
{
    char bytes[40];
    size_t n = roll(sizeof(bytes));
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(roll(3) ? 'a' + roll(26) : roll(256));
    stk_jw_str(&w, stk_str_n(bytes, n));
}

static void random_double(void)
{
    double d;
    uint64_t bits = (uint64_t)roll(1u << 31) << 33 ^ (uint64_t)roll(1u << 31) << 11 ^ roll(1u << 20);
    memcpy(&d, &bits, sizeof(d));
    stk_jw_double(&w, d);
}

static void random_value(int depth)
{
    switch (roll(depth > 6 ? 5 : 8)) {
    case 0:
        stk_jw_null(&w);
        break;
    case 1:
        stk_jw_bool(&w, roll(2));
        break;
    case 2:
        stk_jw_int(&w, (int64_t)(roll(1u << 31) * (uint64_t)roll(1u << 31)) * (roll(2) ? 1 : -1));
        break;
    case 3:
        random_double();
        break;
    case 4:
        random_text();
        break;
    default:
        if (roll(2)) {
            stk_jw_array(&w);
            for (uint32_t i = roll(6); i > 0; i--)
                random_value(depth + 1);
            stk_jw_close(&w, ']');
        } else {
            stk_jw_object(&w);
            for (uint32_t i = roll(14); i > 0; i--) {
                char key[16];
                snprintf(key, sizeof(key), "%u\n%u", i, roll(100));
                stk_jw_key(&w, key);
                random_value(depth + 1);
            }
            stk_jw_close(&w, '}');
        }
    }
}

static void random_documents_come_back_the_same(void **state)
{
    const char *given = getenv("STK_SEED");
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)stk_wall_now().ns;
    print_message("seed: STK_SEED=%llu\n", (unsigned long long)seed);
    for (int round = 0; round < 2000; round++) {
        fresh(NULL);
        random_value(0);
        assert_int_equal(stk_jw_end(&w, NULL), 0);
        stk_json *doc STK_AUTO(stk_json_freep) = NULL;
        stk_err err = {0};
        if (stk_json_parse(stk_buf_view(&out), NULL, &doc, &err) < 0)
            fail_msg("%s: %s", out.p, err.detail);
        assert_true(stk_str_eq(stk_jv_raw(stk_json_root(doc)), stk_buf_view(&out)));
        stk_buf again STK_AUTO(stk_buf_done) = STK_BUF(1 << 20);
        stk_jw_init(&w, &again);
        stk_jw_value(&w, stk_json_root(doc));
        assert_int_equal(stk_jw_end(&w, NULL), 0);
        assert_string_equal(again.p, out.p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(commas_and_brackets_are_placed, fresh),
        cmocka_unit_test_setup(strings_are_escaped_and_repaired, fresh),
        cmocka_unit_test_setup(keys_are_escaped_too, fresh),
        cmocka_unit_test_setup(doubles_take_the_shortest_form_that_reads_back, fresh),
        cmocka_unit_test_setup(a_text_put_together_wrongly_is_an_error, fresh),
        cmocka_unit_test_setup(the_deepest_text_that_is_read_can_be_written, fresh),
        cmocka_unit_test_setup(going_over_the_cap_is_told_at_the_end, fresh),
        cmocka_unit_test_setup(a_value_is_written_again_on_one_line, fresh),
        cmocka_unit_test_setup(random_documents_come_back_the_same, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, last);
}
