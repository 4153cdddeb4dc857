/* What the tests of this folder share. */
#ifndef STK_TEST_MESSAGE_UNIT_H
#define STK_TEST_MESSAGE_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include "proto/base/json.h"
#include "proto/message/limits.h"

/* A golden file without its last line end; the caller frees. */
static stk_str golden_text(const char *name)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/proto/message/golden/%s.json", STK_SOURCE_DIR, name);
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("no %s", path);
    char *text = stk_xcalloc(1, STK_RECORD_MAX);
    size_t n = fread(text, 1, STK_RECORD_MAX, f);
    fclose(f);
    assert_true(n > 1 && text[n - 1] == '\n');
    return stk_str_n(text, n - 1);
}

static void assert_text(stk_str got, stk_str want)
{
    if (!stk_str_eq(got, want))
        fail_msg("got  %.*s\nwant %.*s", (int)stk_min(got.n, 2000), got.p, (int)stk_min(want.n, 2000),
                 want.p);
}

static void assert_error(int rc, const stk_err *err, stk_code code, const char *pointer, const char *about)
{
    if (rc != -(int)code || err->code != code || strcmp(err->pointer, pointer) != 0)
        fail_msg("%s: got %s at \"%s\" (%s), want %s at \"%s\"", about,
                 rc == 0 ? "success" : stk_code_text(err->code), err->pointer, err->detail,
                 stk_code_text(code), pointer);
}

static stk_json *parse(const char *text)
{
    stk_json *doc = NULL;
    stk_err err = {0};
    if (stk_json_parse(stk_str_of(text), NULL, &doc, &err) < 0)
        fail_msg("%s: %s", text, err.detail);
    return doc;
}

#endif
