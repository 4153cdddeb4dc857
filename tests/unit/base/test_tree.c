#include "proto/base/tree.h"
#include "tests/unit/base/test.h"

static cJSON *tree_of(stk_str text)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    cJSON *tree = NULL;
    stk_err err = {0};
    assert_int_equal(stk_json_parse(text, NULL, &doc, NULL), 0);
    if (stk_tree_from(stk_json_root(doc), &tree, &err) < 0)
        fail_msg("%s", err.detail);
    return tree;
}

static void a_tree_is_written_as_it_was_read(void **state)
{
    static const char *const rows[] = {
        "{\"b\":[1,2.5,-3,true,false,null,\"x\xc3\xa9\\n\"],\"a\":{\"z\":{},\"y\":[]}}",
        "[9007199254740993,-9223372036854775808,9223372036854775807,1e+300,0.1]",
        "\"text\"",
        "null",
        "{\"\":\"\"}",
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        cJSON *tree STK_AUTO(stk_tree_freep) = tree_of(stk_str_of(rows[i]));
        stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(10000);
        assert_int_equal(stk_tree_text(&out, tree, false, NULL), 0);
        assert_string_equal(out.p, rows[i]);
    }
}

static void whole_numbers_print_as_such(void **state)
{
    cJSON *tree STK_AUTO(stk_tree_freep) = tree_of(S("[1.0,1e3,100000000000,-0.0]"));
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(100);
    assert_int_equal(stk_tree_text(&out, tree, false, NULL), 0);
    assert_string_equal(out.p, "[1,1000,100000000000,-0]");
}

static void a_number_that_was_changed_is_written_as_changed(void **state)
{
    cJSON *tree STK_AUTO(stk_tree_freep) = tree_of(S("9007199254740993"));
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(100);
    cJSON_SetNumberValue(tree, 5);
    assert_int_equal(stk_tree_text(&out, tree, false, NULL), 0);
    assert_string_equal(out.p, "5");
}

static void canonical_text_sorts_members_by_bytes_at_every_level(void **state)
{
    cJSON *tree STK_AUTO(stk_tree_freep) =
        tree_of(S("{\"b\":1,\"\xc3\xa9\":2,\"a\":[{\"d\":1,\"B\":2}],\"\":3,\"ab\":4}"));
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(1000);
    assert_int_equal(stk_tree_text(&out, tree, true, NULL), 0);
    assert_string_equal(out.p, "{\"\":3,\"a\":[{\"B\":2,\"d\":1}],\"ab\":4,\"b\":1,\"\xc3\xa9\":2}");
}

static void a_nul_byte_is_refused_because_a_tree_would_lose_it(void **state)
{
    static const char *const rows[] = {"[\"a\\u0000b\"]", "{\"a\\u0000\":1}", "\"\\u0000\""};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_json *doc STK_AUTO(stk_json_freep) = NULL;
        cJSON *tree = NULL;
        assert_int_equal(stk_json_parse(stk_str_of(rows[i]), NULL, &doc, NULL), 0);
        assert_int_equal(stk_tree_from(stk_json_root(doc), &tree, NULL), -STK_E_JSON);
        assert_null(tree);
    }
}

static void a_document_read_with_a_higher_depth_is_refused(void **state)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    cJSON *tree = NULL;
    char text[130];
    stk_json_limits limits = {.depth = 65};
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    assert_int_equal(stk_json_parse(stk_str_n(text, 130), &limits, &doc, NULL), 0);
    assert_int_equal(stk_tree_from(stk_json_root(doc), &tree, NULL), -STK_E_JSON);
    assert_int_equal(stk_tree_from(stk_jv_first(stk_json_root(doc)), &tree, NULL), 0);
    cJSON_Delete(tree);
}

static void a_tree_built_too_deep_is_not_written(void **state)
{
    cJSON *tree STK_AUTO(stk_tree_freep) = cJSON_CreateArray();
    for (int i = 0; i < 1000; i++) {
        cJSON *outer = cJSON_CreateObject();
        cJSON_AddItemToObject(outer, "a", tree);
        tree = outer;
    }
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(100000);
    assert_int_equal(stk_tree_text(&out, tree, true, NULL), -STK_E_INTERNAL);
    stk_buf small STK_AUTO(stk_buf_done) = STK_BUF(10);
    assert_int_equal(stk_tree_text(&small, tree, false, NULL), -STK_E_LIMIT);
}

static void people_get_two_spaces(void **state)
{
    cJSON *tree STK_AUTO(stk_tree_freep) =
        tree_of(S("{\"a\":[1,{\"b\":\"x\\\"{,:}\\\\\"}],\"e\":{},\"f\":[],\"g\":[[]]}"));
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(1000);
    assert_int_equal(stk_tree_pretty(&out, tree, NULL), 0);
    assert_string_equal(out.p, "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x\\\"{,:}\\\\\"\n    }\n  ],\n"
                               "  \"e\": {},\n  \"f\": [],\n  \"g\": [\n    []\n  ]\n}");
    stk_buf small STK_AUTO(stk_buf_done) = STK_BUF(60);
    assert_int_equal(stk_tree_pretty(&small, tree, NULL), -STK_E_LIMIT);
}

static void a_text_is_set_in_place_of_an_older_one(void **state)
{
    cJSON *tree STK_AUTO(stk_tree_freep) = cJSON_CreateObject();
    stk_tree_set_str(tree, "a", S("old"));
    stk_tree_set_str(tree, "A", S("other"));
    cJSON *item = stk_tree_set_str(tree, "a", S("n\0w"));
    assert_ptr_equal(item, cJSON_GetObjectItemCaseSensitive(tree, "a"));
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(1000);
    assert_int_equal(stk_tree_text(&out, tree, false, NULL), 0);
    assert_string_equal(out.p, "{\"A\":\"other\",\"a\":\"n\xef\xbf\xbdw\"}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tree_is_written_as_it_was_read),
        cmocka_unit_test(whole_numbers_print_as_such),
        cmocka_unit_test(a_number_that_was_changed_is_written_as_changed),
        cmocka_unit_test(canonical_text_sorts_members_by_bytes_at_every_level),
        cmocka_unit_test(a_nul_byte_is_refused_because_a_tree_would_lose_it),
        cmocka_unit_test(a_document_read_with_a_higher_depth_is_refused),
        cmocka_unit_test(a_tree_built_too_deep_is_not_written),
        cmocka_unit_test(people_get_two_spaces),
        cmocka_unit_test(a_text_is_set_in_place_of_an_older_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
