#include "proto/base/config_impl.h"

static const char *const type_name[] = {
    [STK_C_TEXT] = "text", [STK_C_BOOL] = "true/false", [STK_C_INT] = "number", [STK_C_SPAN] = "time",
    [STK_C_SIZE] = "size", [STK_C_LIST] = "list",       [STK_C_ENUM] = "word",  [STK_C_RAW] = "document",
};

/* '|' would end a cell of the table. */
static void cell(stk_buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            stk_buf_byte(out, '\\');
        stk_buf_byte(out, *text);
    }
}

static void range(const stk_conf *row, stk_buf *out)
{
    char low[32], high[32];
    if (row->type == STK_C_ENUM) {
        for (size_t i = 0; row->words[i]; i++)
            stk_buf_fmt(out, "%s%s", i ? ", " : "", row->words[i]);
        return;
    }
    if (!row->min && !row->max)
        return;
    stk__conf_bound(row, row->min, low);
    stk__conf_bound(row, row->max, high);
    stk_buf_fmt(out, row->max ? "%s to %s" : "%s or more", low, high);
}

void stk_conf_reference(const stk_conf *table, stk_buf *out)
{
    stk_buf_text(out, "| key | type | default | range | reload | meaning |\n|---|---|---|---|---|---|\n");
    for (const stk_conf *row = table; row->key; row++) {
        stk_buf_fmt(out, "| `%s` | %s | ", row->key, type_name[row->type]);
        if (row->def && *row->def) {
            stk_buf_byte(out, '`');
            cell(out, row->def);
            stk_buf_byte(out, '`');
        }
        stk_buf_text(out, " | ");
        range(row, out);
        stk_buf_fmt(out, " | %s | ", row->reloadable ? "yes" : "no");
        cell(out, row->help ? row->help : "");
        stk_buf_text(out, " |\n");
    }
}
