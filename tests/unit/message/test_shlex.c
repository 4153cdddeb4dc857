#include "tests/unit/message/unit.h"
#include "proto/message/request.h"

typedef struct row {
    const char *text;
    const char *words; /* JSON array, or the error's text */
} row;

/* Expected values are those of Python 3.11's shlex.split. */
static const row rows[] = {
    {"", "[]"},
    {" \t\r\n ", "[]"},
    {"python job.py", "[\"python\",\"job.py\"]"},
    {"  a   b\t\nc ", "[\"a\",\"b\",\"c\"]"},
    {"''", "[\"\"]"},
    {"a '' b", "[\"a\",\"\",\"b\"]"},
    {"\"\"''", "[\"\"]"},
    {"a''b\"\"c", "[\"abc\"]"},
    {"'a b' \"c d\"", "[\"a b\",\"c d\"]"},
    {"'a\\nb'", "[\"a\\\\nb\"]"},
    {"\"a\\\"b\\\\c\\$d\\`e\"", "[\"a\\\"b\\\\c\\\\$d\\\\`e\"]"},
    {"\"a\\\nb\"", "[\"a\\\\\\nb\"]"},
    {"a\\ b \\'c\\'", "[\"a b\",\"'c'\"]"},
    {"a\\\nb", "[\"a\\nb\"]"},
    {"\\\\", "[\"\\\\\"]"},
    {"echo $HOME; ls | wc * > x # no",
     "[\"echo\",\"$HOME;\",\"ls\",\"|\",\"wc\",\"*\",\">\",\"x\",\"#\",\"no\"]"},
    {"caf\xc3\xa9 '\xf0\x9f\x98\x80'", "[\"café\",\"😀\"]"},
    {"it's", "No closing quotation"},
    {"a \"b", "No closing quotation"},
    {"a \"b\\\"", "No closing quotation"},
    {"a \\", "No escaped character"},
    {"\"a\\", "No escaped character"},
};

static void write_words(const stk_strv *words, stk_buf *out)
{
    stk_jw w;
    stk_jw_init(&w, out);
    stk_jw_array(&w);
    for (size_t i = 0; i < words->n; i++)
        stk_jw_str(&w, stk_bytes_view(&words->v[i]));
    stk_jw_close(&w, ']');
    assert_int_equal(stk_jw_end(&w, NULL), 0);
}

static void it_splits_as_python_does(void **state)
{
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(65536);
        stk_strv words = {0};
        stk_err err = {0};
        int rc = stk_shlex_split(stk_str_of(rows[i].text), &words, &err);
        if (rows[i].words[0] == '[') {
            if (rc < 0)
                fail_msg("%s: %s", rows[i].text, err.detail);
            write_words(&words, &out);
            assert_text(stk_buf_view(&out), stk_str_of(rows[i].words));
        } else {
            assert_error(rc, &err, STK_E_FIELD, "", rows[i].text);
            assert_string_equal(err.detail, rows[i].words);
            assert_int_equal(words.n, 0);
        }
        stk_strv_done(&words);
    }
}

static void a_nul_character_is_a_character(void **state)
{
    stk_strv words = {0};
    assert_int_equal(stk_shlex_split(stk_str_n("a\0b c", 5), &words, NULL), 0);
    assert_int_equal(words.n, 2);
    assert_int_equal(words.v[0].n, 3);
    stk_strv_done(&words);
}

static void too_many_words_are_refused_with_the_limit(void **state)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(65536);
    stk_strv words = {0};
    stk_err err = {0};
    for (int i = 0; i < STK_ARGS_MAX; i++)
        stk_buf_text(&text, "a ");
    assert_int_equal(stk_shlex_split(stk_buf_view(&text), &words, &err), 0);
    assert_int_equal(words.n, STK_ARGS_MAX);
    stk_strv_done(&words);
    stk_buf_text(&text, "a");
    assert_error(stk_shlex_split(stk_buf_view(&text), &words, &err), &err, STK_E_TOO_LARGE, "", "4097 words");
    assert_non_null(strstr(err.detail, "4096"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_splits_as_python_does),
        cmocka_unit_test(a_nul_character_is_a_character),
        cmocka_unit_test(too_many_words_are_refused_with_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
