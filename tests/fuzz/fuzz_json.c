/* Whatever is accepted is written again, and what was written is accepted and written the same. */
#include "proto/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CAP ((size_t)1 << 26)

static void must(bool holds)
{
    if (!holds)
        abort();
}

static stk_json *parse(stk_str text)
{
    static const stk_json_limits limits = {.depth = STK_JW_DEPTH_MAX, .values = 10000};
    stk_json *doc = NULL;
    stk_err err = {0};
    int rc = stk_json_parse(text, &limits, &doc, &err);
    must(rc == 0 ? doc != NULL : doc == NULL && err.code == (stk_code)-rc && err.detail[0]);
    return doc;
}

/* Every reader on every value: none may read out of bounds, and counts must agree. */
static void visit(stk_jv v)
{
    int64_t n;
    size_t children = 0;
    stk_str s = stk_jv_str(v);
    must(stk_utf8_valid(s) && stk_utf8_valid(stk_jv_key(v)));
    if (stk_jv_int(v, &n))
        must((double)n == stk_jv_double(v));
    must(stk_jv_double(v) - stk_jv_double(v) == 0);
    for (stk_jv child = stk_jv_first(v); child.doc; child = stk_jv_next(child), children++)
        visit(child);
    must(children == stk_jv_count(v));
}

static void write_value(stk_jv v, stk_buf *out)
{
    stk_jw w;
    stk_jw_init(&w, out);
    stk_jw_value(&w, v);
    must(stk_jw_end(&w, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_json *doc STK_AUTO(stk_json_freep) = parse(stk_str_n(data, size));
    if (!doc)
        return 0;
    visit(stk_json_root(doc));
    stk_json *raw STK_AUTO(stk_json_freep) = parse(stk_jv_raw(stk_json_root(doc)));
    stk_buf first STK_AUTO(stk_buf_done) = STK_BUF(CAP), second STK_AUTO(stk_buf_done) = STK_BUF(CAP);
    must(raw != NULL);
    write_value(stk_json_root(doc), &first);
    stk_json *again STK_AUTO(stk_json_freep) = parse(stk_buf_view(&first));
    must(again != NULL);
    write_value(stk_json_root(again), &second);
    must(stk_str_eq(stk_buf_view(&first), stk_buf_view(&second)));
    return 0;
}
