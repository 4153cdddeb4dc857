#include "proto/base/tree.h"

static void new_line(stk_buf *out, size_t depth)
{
    stk_buf_byte(out, '\n');
    for (size_t i = 0; i < depth; i++)
        stk_buf_text(out, "  ");
}

/* How many bytes the string at the start of s takes, quotes included. */
static size_t string_length(stk_str s)
{
    size_t i = 1;
    while (i < s.n && s.p[i] != '"')
        i += s.p[i] == '\\' ? 2 : 1;
    return stk_min(i + 1, s.n);
}

/* Lays out a text of our writer, which has no white space of its own. */
static void lay_out(stk_buf *out, stk_str s)
{
    size_t depth = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        char next = i + 1 < s.n ? s.p[i + 1] : '\0';
        if (c == '"') {
            size_t n = string_length(stk_str_n(s.p + i, s.n - i));
            stk_buf_add(out, s.p + i, n);
            i += n - 1;
            continue;
        }
        if ((c == '}' || c == ']') && s.p[i - 1] != '{' && s.p[i - 1] != '[')
            new_line(out, --depth);
        stk_buf_byte(out, c);
        if ((c == '{' || c == '[') && next != '}' && next != ']')
            new_line(out, ++depth);
        else if (c == ',')
            new_line(out, depth);
        else if (c == ':')
            stk_buf_byte(out, ' ');
    }
}

int stk_tree_pretty(stk_buf *out, const cJSON *tree, stk_err *err)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(out->cap);
    int rc = stk_tree_text(&text, tree, false, err);
    if (rc < 0)
        return rc;
    lay_out(out, stk_buf_view(&text));
    return out->over ? stk_err_set(err, STK_E_LIMIT, "the JSON text is over %zu bytes", out->cap) : 0;
}
