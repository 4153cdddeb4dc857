#include "workers/runtime/names.h"
#include "proto/http/head.h"

bool stk_name_escape(stk_str name, stk_buf *out)
{
    bool plain = stk_utf8_valid(name);
    if (plain)
        stk_buf_str(out, name);
    else
        stk_percent_encode(name, false, out);
    return !plain;
}

/* Some clients take %XX in a plain filename for an escape. */
static bool is_plain(char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '%';
}

void stk_name_disposition(stk_str name, stk_buf *out)
{
    bool same = true, utf8 = stk_utf8_valid(name);
    stk_buf_text(out, "attachment; filename=\"");
    for (size_t i = 0; i < name.n; i++) {
        bool inner = utf8 && ((uint8_t)name.p[i] & 0xc0) == 0x80;
        same = same && is_plain(name.p[i]);
        if (!inner)
            stk_buf_byte(out, is_plain(name.p[i]) ? name.p[i] : '_');
    }
    stk_buf_text(out, "\"");
    if (!same && utf8) {
        stk_buf_text(out, "; filename*=UTF-8''");
        stk_percent_encode(name, false, out);
    }
}
