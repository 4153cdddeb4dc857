/* Golden examples: same bytes after decode and encode; one member removed, added or of another type is
 * refused. */
#include "tests/unit/message/unit.h"
#include "tests/unit/message/golden.h"
#include "proto/message/check.h"
#include <dirent.h>

#define TEXT_MAX (STK_RECORD_MAX)

static void each_golden_keeps_its_bytes(void **state)
{
    for (size_t i = 0; i < golden_count; i++) {
        stk_str text = golden_text(goldens[i].file);
        stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(TEXT_MAX);
        stk_err err = {0};
        int rc = goldens[i].through(text, &out, &err);
        if (rc < 0)
            fail_msg("%s: %s %s", goldens[i].file, err.pointer, err.detail);
        assert_text(stk_buf_view(&out), text);
        free((void *)text.p);
    }
}

static void each_golden_file_is_in_the_list(void **state)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/proto/message/golden", STK_SOURCE_DIR);
    DIR *dir = opendir(path);
    size_t n = 0;
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        n += strstr(e->d_name, ".json") != NULL;
    closedir(dir);
    assert_int_equal(n, golden_count);
}

/* The object with `replace` in place of member number `at` (NULL: without it), and `extra` added at the end.
 */
static stk_buf variant(stk_jv root, size_t at, const char *replace, const char *extra)
{
    stk_buf out = STK_BUF(TEXT_MAX);
    stk_jw w;
    size_t i = 0;
    stk_jw_init(&w, &out);
    stk_jw_object(&w);
    for (stk_jv m = stk_jv_first(root); m.doc; m = stk_jv_next(m), i++) {
        if (i == at && !replace)
            continue;
        stk_jw_key_str(&w, stk_jv_key(m));
        stk_jw_raw(&w, i == at ? stk_str_of(replace) : stk_jv_raw(m));
    }
    if (extra) {
        stk_jw_key(&w, extra);
        stk_jw_int(&w, 1);
    }
    stk_jw_close(&w, '}');
    assert_int_equal(stk_jw_end(&w, NULL), 0);
    return out;
}

static int through(const golden *g, stk_buf text, stk_err *err)
{
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(TEXT_MAX);
    memset(err, 0, sizeof(*err));
    int rc = g->through(stk_buf_view(&text), &out, err);
    stk_buf_done(&text);
    return rc;
}

static void try_removed(const golden *g, stk_jv root, size_t at, stk_str key)
{
    char about[256], pointer[192] = "";
    stk_err err;
    stk__pointer_add(pointer, key);
    snprintf(about, sizeof(about), "%s without %s", g->file, pointer);
    int rc = through(g, variant(root, at, NULL, NULL), &err);
    if (!stk__word_ok(g->optional, key))
        assert_error(rc, &err, STK_E_MISSING_FIELD, pointer, about);
    else if (rc != 0)
        fail_msg("%s: %s %s", about, err.pointer, err.detail);
}

static void try_mistyped(const golden *g, stk_jv root, size_t at, stk_jv member)
{
    static const struct {
        stk_jtype type;
        const char *text;
    } values[] = {{STK_J_NULL, "null"},    {STK_J_BOOL, "true"}, {STK_J_NUMBER, "1"},
                  {STK_J_STRING, "\"x\""}, {STK_J_ARRAY, "[]"},  {STK_J_OBJECT, "{}"}};
    char about[256], pointer[192] = "";
    stk_err err;
    if (stk__word_ok(g->any, stk_jv_key(member)))
        return;
    stk__pointer_add(pointer, stk_jv_key(member));
    for (size_t i = 0; i < STK_COUNT(values); i++) {
        if (values[i].type == stk_jv_type(member))
            continue;
        snprintf(about, sizeof(about), "%s with %s = %s", g->file, pointer, values[i].text);
        int rc = through(g, variant(root, at, values[i].text, NULL), &err);
        assert_error(rc, &err, STK_E_FIELD, pointer, about);
    }
}

static void one_member_wrong_is_refused_with_its_pointer(void **state)
{
    for (size_t i = 0; i < golden_count; i++) {
        const golden *g = &goldens[i];
        stk_str text = golden_text(g->file);
        stk_json *doc = NULL;
        assert_int_equal(stk_json_parse(text, NULL, &doc, NULL), 0);
        stk_jv root = stk_json_root(doc);
        size_t at = 0;
        for (stk_jv m = stk_jv_first(root); m.doc; m = stk_jv_next(m), at++) {
            try_removed(g, root, at, stk_jv_key(m));
            try_mistyped(g, root, at, m);
        }
        stk_err err;
        int rc = through(g, variant(root, SIZE_MAX, NULL, "zzz/~"), &err);
        assert_error(rc, &err, g->open ? STK_E_FIELD : STK_E_UNKNOWN_FIELD, "/zzz~1~0", g->file);
        stk_json_free(doc);
        free((void *)text.p);
    }
}

static void a_version_that_is_not_ours_is_told_apart(void **state)
{
    static const struct {
        const char *v;
        stk_code code;
    } rows[] = {{"0", STK_E_FIELD},  {"-1", STK_E_FIELD},   {"1.5", STK_E_FIELD},   {"2", STK_E_NEWER},
                {"99", STK_E_NEWER}, {"1e18", STK_E_NEWER}, {"1e300", STK_E_FIELD}, {"\"1\"", STK_E_FIELD}};
    for (size_t i = 0; i < golden_count; i++) {
        if (!goldens[i].versioned)
            continue;
        stk_str text = golden_text(goldens[i].file);
        stk_json *doc = NULL;
        assert_int_equal(stk_json_parse(text, NULL, &doc, NULL), 0);
        for (size_t r = 0; r < STK_COUNT(rows); r++) {
            stk_err err;
            /* A newer version may have members that we do not know; that must not hide that it is newer. */
            int rc = through(&goldens[i], variant(stk_json_root(doc), 0, rows[r].v, "zzz"), &err);
            assert_error(rc, &err, rows[r].code, "/v", rows[r].v);
        }
        stk_json_free(doc);
        free((void *)text.p);
    }
}

static void what_is_not_an_object_is_refused(void **state)
{
    static const char *const texts[] = {
        "", " ", "[]", "null", "1", "\"x\"", "{", "{}x", "{\"v\":1,\"v\":1}", "\xef\xbb\xbf{}"};
    for (size_t i = 0; i < golden_count; i++)
        for (size_t t = 0; t < STK_COUNT(texts); t++) {
            stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(TEXT_MAX);
            stk_err err = {0};
            int rc = goldens[i].through(stk_str_of(texts[t]), &out, &err);
            if (rc != -STK_E_JSON && rc != -STK_E_FIELD)
                fail_msg("%s: %s: %d", goldens[i].file, texts[t], rc);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_golden_keeps_its_bytes),
        cmocka_unit_test(each_golden_file_is_in_the_list),
        cmocka_unit_test(one_member_wrong_is_refused_with_its_pointer),
        cmocka_unit_test(a_version_that_is_not_ours_is_told_apart),
        cmocka_unit_test(what_is_not_an_object_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
