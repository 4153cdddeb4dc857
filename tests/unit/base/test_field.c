#include "proto/base/field.h"
#include "tests/unit/base/test.h"

typedef struct point {
    int64_t x;
} point;

static int read_point(stk_jv v, void *at, stk_err *err)
{
    static const stk_field table[] = {
        {.name = "x", .kind = STK_F_INT, STK_FIELD_AT(point, x), .min = 1, .max = 9}, STK_FIELD_END};
    return stk_fields_decode(table, v, at, err);
}

static void write_point(stk_jw *w, const void *at)
{
    stk_jw_object(w);
    stk_jw_kint(w, "x", ((const point *)at)->x);
    stk_jw_close(w, '}');
}

static void done_point(void *at)
{
    ((point *)at)->x = -1;
}

typedef struct thing {
    char text[8];
    stk_bytes bytes;
    int64_t n, any;
    bool flag;
    stk_span span;
    stk_wall wall;
    stk_strv list;
    stk_map map;
    stk_bytes raw;
    point point;
    char odd[8];
} thing;

static const stk_field table[] = {
    {.name = "text", .kind = STK_F_TEXT, STK_FIELD_AT(thing, text), .flags = STK_FIELD_REQUIRED, .min = 1},
    {.name = "bytes", .kind = STK_F_BYTES, STK_FIELD_AT(thing, bytes), .flags = STK_FIELD_NULL_OK, .max = 5},
    {.name = "n", .kind = STK_F_INT, STK_FIELD_AT(thing, n), .min = -5, .max = 100},
    {.name = "any", .kind = STK_F_INT, STK_FIELD_AT(thing, any)},
    {.name = "flag", .kind = STK_F_BOOL, STK_FIELD_AT(thing, flag)},
    {.name = "span", .kind = STK_F_SECONDS, STK_FIELD_AT(thing, span), .min = 1000000, .max = 3600000000000},
    {.name = "wall", .kind = STK_F_WALL, STK_FIELD_AT(thing, wall)},
    {.name = "list", .kind = STK_F_STRV, STK_FIELD_AT(thing, list), .min = 1, .max = 3},
    {.name = "map", .kind = STK_F_MAP, STK_FIELD_AT(thing, map), .flags = STK_FIELD_NUL_OK, .max = 2},
    {.name = "raw", .kind = STK_F_RAW, STK_FIELD_AT(thing, raw)},
    {.name = "point",
     .kind = STK_F_CUSTOM,
     STK_FIELD_AT(thing, point),
     .read = read_point,
     .write = write_point,
     .done = done_point},
    {.name = "o/d~d", .kind = STK_F_TEXT, STK_FIELD_AT(thing, odd)},
    STK_FIELD_END,
};

static int decode(stk_str text, thing *out, stk_err *err)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    assert_int_equal(stk_json_parse(text, NULL, &doc, NULL), 0);
    return stk_fields_decode(table, stk_json_root(doc), out, err);
}

static void encode(const stk_field *fields, const void *in, stk_buf *out)
{
    stk_jw w;
    stk_buf_reset(out);
    stk_jw_init(&w, out);
    stk_fields_encode(fields, in, &w);
    assert_int_equal(stk_jw_end(&w, NULL), 0);
}

static const char whole[] =
    "{\"text\":\"abc\",\"bytes\":\"a\\u0000b\",\"n\":-5,\"any\":-9223372036854775808,\"flag\":true,"
    "\"span\":0.25,\"wall\":\"2026-01-02T03:04:05.678Z\",\"list\":[\"a\",\"\"],"
    "\"map\":{\"k\":\"v\\u0000\"},\"raw\":{\"x\": 1e2},\"point\":{\"x\":3},\"o/d~d\":\"1234567\"}";

static void every_kind_is_decoded_and_encoded_back(void **state)
{
    thing t = {0};
    assert_int_equal(decode(stk_str_of(whole), &t, NULL), 0);
    assert_string_equal(t.text, "abc");
    assert_true(t.bytes.set);
    assert_str(stk_bytes_view(&t.bytes), "a\0b");
    assert_int_equal(t.n, -5);
    assert_true(t.any == INT64_MIN);
    assert_true(t.flag);
    assert_int_equal(t.span.ns, 250000000);
    assert_int_equal(t.wall.ns, 1767323045678000000);
    assert_int_equal(t.list.n, 2);
    assert_str(stk_bytes_view(&t.list.v[0]), "a");
    assert_true(t.list.v[1].set);
    assert_str(stk_bytes_view(stk_map_get(&t.map, S("k"))), "v\0");
    assert_null(stk_map_get(&t.map, S("K")));
    assert_str(stk_bytes_view(&t.raw), "{\"x\": 1e2}");
    assert_int_equal(t.point.x, 3);
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(10000);
    encode(table, &t, &out);
    assert_string_equal(out.p, whole);
    stk_fields_done(table, &t);
    assert_null(t.bytes.p);
    assert_false(t.raw.set);
    assert_int_equal(t.list.n + t.map.n, 0);
    assert_int_equal(t.point.x, -1);
}

static const struct {
    const char *text;
    int rc;
    const char *pointer, *detail;
} wrong[] = {
    {"[]", STK_E_FIELD, "", "must be a JSON object, not array"},
    {"{}", STK_E_MISSING_FIELD, "/text", "required"},
    {"{\"text\":null}", STK_E_FIELD, "/text", "must be a JSON string, not null"},
    {"{\"text\":\"\"}", STK_E_FIELD, "/text", "needs at least 1 bytes, has 0"},
    {"{\"text\":\"12345678\"}", STK_E_FIELD, "/text", "may have at most 7 bytes, has 8"},
    {"{\"text\":\"a\\u0000\"}", STK_E_FIELD, "/text", "must not hold a NUL byte"},
    {"{\"text\":1}", STK_E_FIELD, "/text", "must be a JSON string, not number"},
    {"{\"text\":\"a\",\"Text\":1}", STK_E_UNKNOWN_FIELD, "/Text", "no such field"},
    {"{\"text\":\"a\",\"a/b~c\\n\\u0000\":1}", STK_E_UNKNOWN_FIELD, "/a~1b~0c??", "no such field"},
    {"{\"o/d~d\":\"12345678\"}", STK_E_FIELD, "/o~1d~0d", "may have at most 7 bytes, has 8"},
    {"{\"bytes\":\"123456\"}", STK_E_FIELD, "/bytes", "may have at most 5 bytes, has 6"},
    {"{\"n\":-6}", STK_E_FIELD, "/n", "must be at least -5"},
    {"{\"n\":101}", STK_E_FIELD, "/n", "must be at most 100"},
    {"{\"n\":0.5}", STK_E_FIELD, "/n", "must be a whole number of at most 64 bits"},
    {"{\"n\":9223372036854775808}", STK_E_FIELD, "/n", "must be a whole number of at most 64 bits"},
    {"{\"n\":\"5\"}", STK_E_FIELD, "/n", "must be a JSON number, not string"},
    {"{\"n\":true}", STK_E_FIELD, "/n", "must be a JSON number, not boolean"},
    {"{\"flag\":0}", STK_E_FIELD, "/flag", "must be a JSON boolean, not number"},
    {"{\"span\":0}", STK_E_FIELD, "/span", "must be at least 0.001 seconds"},
    {"{\"span\":-1}", STK_E_FIELD, "/span", "must be at least 0.001 seconds"},
    {"{\"span\":1e300}", STK_E_FIELD, "/span", "must be at most 3600 seconds"},
    {"{\"span\":3600.5}", STK_E_FIELD, "/span", "must be at most 3600 seconds"},
    {"{\"span\":\"5\"}", STK_E_FIELD, "/span", "must be a JSON number, not string"},
    {"{\"span\":null}", STK_E_FIELD, "/span", "must be a JSON number, not null"},
    {"{\"wall\":\"2026-02-30T00:00:00Z\"}", STK_E_FIELD, "/wall",
     "must be a time like 2026-01-02T03:04:05.678Z"},
    {"{\"list\":[]}", STK_E_FIELD, "/list", "needs at least 1 items, has 0"},
    {"{\"list\":[\"\",\"\",\"\",\"\"]}", STK_E_FIELD, "/list", "may have at most 3 items, has 4"},
    {"{\"list\":[\"a\",1]}", STK_E_FIELD, "/list/1", "must be a JSON string, not number"},
    {"{\"list\":[\"a\\u0000\"]}", STK_E_FIELD, "/list/0", "must not hold a NUL byte"},
    {"{\"map\":[]}", STK_E_FIELD, "/map", "must be a JSON object, not array"},
    {"{\"map\":{\"a/b\":null}}", STK_E_FIELD, "/map/a~1b", "must be a JSON string, not null"},
    {"{\"map\":{\"a\\u0000\":\"\"}}", STK_E_FIELD, "/map/a?", "must not hold a NUL byte"},
    {"{\"map\":{\"a\":\"\",\"b\":\"\",\"c\":\"\"}}", STK_E_FIELD, "/map",
     "may have at most 2 members, has 3"},
    {"{\"point\":{\"x\":10}}", STK_E_FIELD, "/point/x", "must be at most 9"},
    {"{\"point\":{\"y\":1}}", STK_E_UNKNOWN_FIELD, "/point/y", "no such field"},
    {"{\"point\":7}", STK_E_FIELD, "/point", "must be a JSON object, not number"},
};

static void a_wrong_field_is_named_by_its_pointer(void **state)
{
    for (size_t i = 0; i < STK_COUNT(wrong); i++) {
        thing t = {0};
        stk_err err = {0};
        if (decode(stk_str_of(wrong[i].text), &t, &err) != -wrong[i].rc)
            fail_msg("%s: %s", wrong[i].text, err.detail);
        assert_string_equal(err.pointer, wrong[i].pointer);
        assert_string_equal(err.detail, wrong[i].detail);
        stk_fields_done(table, &t);
        assert_int_equal(decode(stk_str_of(wrong[i].text), &t, NULL), -wrong[i].rc);
        stk_fields_done(table, &t);
    }
}

static void a_very_long_field_name_is_cut_in_the_pointer(void **state)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(10000);
    stk_buf_text(&text, "{\"");
    for (int i = 0; i < 1000; i++)
        stk_buf_byte(&text, '/');
    stk_buf_text(&text, "\":1}");
    thing t = {0};
    stk_err err = {0};
    assert_int_equal(decode(stk_buf_view(&text), &t, &err), -STK_E_UNKNOWN_FIELD);
    assert_true(strlen(err.pointer) > 180 && strlen(err.pointer) < sizeof(err.pointer));
}

static void absent_fields_keep_their_defaults(void **state)
{
    thing t = {.n = 42, .flag = true};
    stk_strv_add(&t.list, S("default"));
    stk_bytes_set(&t.bytes, S("def"));
    assert_int_equal(decode(S("{\"text\":\"a\",\"bytes\":null}"), &t, NULL), 0);
    assert_int_equal(t.n, 42);
    assert_true(t.flag);
    assert_str(stk_bytes_view(&t.bytes), "def");
    assert_str(stk_bytes_view(&t.list.v[0]), "default");
    assert_int_equal(decode(S("{\"text\":\"a\",\"bytes\":\"\",\"list\":[\"new\"],\"flag\":false}"), &t, NULL),
                     0);
    assert_int_equal(t.list.n, 1);
    assert_str(stk_bytes_view(&t.list.v[0]), "new");
    assert_true(t.bytes.set && t.bytes.n == 0);
    assert_false(t.flag);
    stk_fields_done(table, &t);
}

static void empty_fields_are_left_out_and_an_empty_value_that_is_set_is_not(void **state)
{
    thing t = {0};
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(10000);
    encode(table, &t, &out);
    assert_string_equal(out.p, "{}");
    stk_bytes_set(&t.bytes, S(""));
    encode(table, &t, &out);
    assert_string_equal(out.p, "{\"bytes\":\"\"}");
    stk_fields_done(table, &t);
}

static void kept_fields_are_written_even_when_empty(void **state)
{
    static const stk_field kept[] = {
        {.name = "t", .kind = STK_F_TEXT, STK_FIELD_AT(thing, text), .flags = STK_FIELD_KEEP},
        {.name = "b", .kind = STK_F_BYTES, STK_FIELD_AT(thing, bytes), .flags = STK_FIELD_KEEP},
        {.name = "bn",
         .kind = STK_F_BYTES,
         STK_FIELD_AT(thing, bytes),
         .flags = STK_FIELD_KEEP | STK_FIELD_NULL_OK},
        {.name = "n", .kind = STK_F_INT, STK_FIELD_AT(thing, n), .flags = STK_FIELD_KEEP},
        {.name = "f", .kind = STK_F_BOOL, STK_FIELD_AT(thing, flag), .flags = STK_FIELD_KEEP},
        {.name = "s", .kind = STK_F_SECONDS, STK_FIELD_AT(thing, span), .flags = STK_FIELD_KEEP},
        {.name = "w",
         .kind = STK_F_WALL,
         STK_FIELD_AT(thing, wall),
         .flags = STK_FIELD_KEEP | STK_FIELD_NULL_OK},
        {.name = "l", .kind = STK_F_STRV, STK_FIELD_AT(thing, list), .flags = STK_FIELD_KEEP},
        {.name = "m", .kind = STK_F_MAP, STK_FIELD_AT(thing, map), .flags = STK_FIELD_KEEP},
        {.name = "r", .kind = STK_F_RAW, STK_FIELD_AT(thing, raw), .flags = STK_FIELD_KEEP},
        {.name = "c",
         .kind = STK_F_CUSTOM,
         STK_FIELD_AT(thing, point),
         .flags = STK_FIELD_KEEP,
         .write = write_point},
        STK_FIELD_END,
    };
    thing t = {0};
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(10000);
    encode(kept, &t, &out);
    assert_string_equal(
        out.p, "{\"t\":\"\",\"b\":\"\",\"bn\":null,\"n\":0,\"f\":false,\"s\":0,\"w\":null,\"l\":[],\"m\":{},"
               "\"r\":null,\"c\":{\"x\":0}}");
}

static void lists_and_maps_grow_one_by_one(void **state)
{
    stk_strv v = {0};
    stk_map m = {0};
    char text[16];
    for (int i = 0; i < 1000; i++) {
        stk_str s = stk_str_n(text, (size_t)snprintf(text, sizeof(text), "%d", i));
        stk_strv_add(&v, s);
        stk_map_add(&m, s, s);
    }
    assert_int_equal(v.n, 1000);
    assert_str(stk_bytes_view(&v.v[999]), "999");
    assert_int_equal(v.v[999].p[3], 0);
    assert_str(stk_bytes_view(stk_map_get(&m, S("512"))), "512");
    stk_strv_done(&v);
    stk_map_done(&m);
    stk_strv_done(&v);
    assert_null(m.v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_decoded_and_encoded_back),
        cmocka_unit_test(a_wrong_field_is_named_by_its_pointer),
        cmocka_unit_test(a_very_long_field_name_is_cut_in_the_pointer),
        cmocka_unit_test(absent_fields_keep_their_defaults),
        cmocka_unit_test(empty_fields_are_left_out_and_an_empty_value_that_is_set_is_not),
        cmocka_unit_test(kept_fields_are_written_even_when_empty),
        cmocka_unit_test(lists_and_maps_grow_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
