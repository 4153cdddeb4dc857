#include "egress-proxy/yaml.h"
#include "tests/unit/egress-proxy/unit.h"

static int convert(const char *text, stk_buf *out, stk_err *err)
{
    char path[] = "/tmp/stk-yaml-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    int rc = stk_read_document(path, out, err);
    unlink(path);
    return rc;
}

static void documents_become_the_json_they_mean(void **state)
{
    static const struct {
        const char *yaml, *json;
    } rows[] = {
        {"{\"a\":1}", "{\"a\":1}"},
        {"a: 1\n", "{\"a\":1}"},
        {"version: 7\nallow:\n  - a.example\n  - \"*.b.example\"\n",
         "{\"version\":7,\"allow\":[\"a.example\",\"*.b.example\"]}"},
        {"organisation: {default: deny, deny: []}\n",
         "{\"organisation\":{\"default\":\"deny\",\"deny\":[]}}"},
        {"a: '1'\nb: true\nc: ~\nd:\ne: yes\nf: 1.5\ng: 010\n",
         "{\"a\":\"1\",\"b\":true,\"c\":null,\"d\":null,\"e\":\"yes\",\"f\":1.5,\"g\":\"010\"}"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(4096);
        stk_err err;
        if (convert(rows[i].yaml, &out, &err) < 0)
            fail_msg("row %zu: %s", i, err.detail);
        assert_string_equal(out.p, rows[i].json);
    }
}

static void what_is_no_plain_document_is_refused_with_its_place(void **state)
{
    static const struct {
        const char *yaml, *why;
    } rows[] = {
        {"a: [1\n", "line"},
        {"a: &x 1\n", "anchors"},
        {"a: *x\n", "aliases"},
        {"a: !!str 1\n", "tags"},
        {"? [a]\n: 1\n", "a key is"},
        {"", "whole document"},
        {"a: 1\n---\nb: 2\n", "whole document"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(4096);
        stk_err err;
        assert_true(convert(rows[i].yaml, &out, &err) < 0);
        if (!strstr(err.detail, rows[i].why))
            fail_msg("row %zu: %s", i, err.detail);
    }
}

static void nesting_is_bounded(void **state)
{
    char deep[256] = "a: ";
    memset(deep + 3, '[', 100);
    memset(deep + 103, ']', 100);
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(4096);
    stk_err err;
    assert_true(convert(deep, &out, &err) < 0);
    assert_non_null(strstr(err.detail, "too deep"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(documents_become_the_json_they_mean),
        cmocka_unit_test(what_is_no_plain_document_is_refused_with_its_place),
        cmocka_unit_test(nesting_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
