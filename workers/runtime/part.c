/* The head of one part of a form. */
#include "proto/http/head.h"
#include "workers/runtime/multipart.h"

static int malformed(stk_err *err)
{
    return stk_err_set(err, STK_E_HTTP, "a part's head is malformed");
}

static void skip_blanks(stk_str *s)
{
    while (s->n && (s->p[0] == ' ' || s->p[0] == '\t'))
        *s = stk_str_n(s->p + 1, s->n - 1);
}

static bool take_byte(stk_str *s, char c)
{
    if (!s->n || s->p[0] != c)
        return false;
    *s = stk_str_n(s->p + 1, s->n - 1);
    return true;
}

static bool take_until(stk_str *s, const char *ends, stk_buf *out)
{
    while (s->n && !strchr(ends, s->p[0])) {
        stk_buf_byte(out, s->p[0]);
        *s = stk_str_n(s->p + 1, s->n - 1);
    }
    return out->n > 0 && !out->over;
}

static bool take_quoted(stk_str *s, stk_buf *out)
{
    while (s->n && s->p[0] != '"') {
        if (s->p[0] == '\\' && s->n > 1 && (s->p[1] == '"' || s->p[1] == '\\'))
            *s = stk_str_n(s->p + 1, s->n - 1);
        stk_buf_byte(out, s->p[0]);
        *s = stk_str_n(s->p + 1, s->n - 1);
    }
    return take_byte(s, '"') && !out->over;
}

/* UTF-8''%e2%82%ac.txt */
static bool decode_extended(stk_buf *value)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_PART_HEAD_MAX);
    stk_str in = stk_buf_view(value);
    const char *first = in.n ? memchr(in.p, '\'', in.n) : NULL;
    size_t charset = first ? (size_t)(first - in.p) : 0;
    const char *second = first ? memchr(first + 1, '\'', in.n - charset - 1) : NULL;
    if (!second || !stk_str_ieq(stk_str_n(in.p, charset), STK_STR("utf-8")))
        return false;
    in = stk_str_n(second + 1, (size_t)(in.p + in.n - second - 1));
    if (stk_percent_decode(in, &text, NULL) < 0 || !stk_utf8_valid(stk_buf_view(&text)))
        return false;
    stk_buf_reset(value);
    return stk_buf_str(value, stk_buf_view(&text)) == 0;
}

static int take_filename(stk_part *part, stk_str value, stk_err *err)
{
    part->has_filename = true;
    return stk_str_copy(value, part->filename, sizeof(part->filename))
               ? 0
               : stk_err_field(err, STK_E_FIELD, "/file", "the filename is too long or holds a NUL byte");
}

typedef struct stk_seen {
    bool name, filename, extended;
} stk_seen;

static int take_parameter(stk_str *s, stk_seen *seen, stk_part *part, stk_err *err)
{
    stk_buf name STK_AUTO(stk_buf_done) = STK_BUF(64);
    stk_buf value STK_AUTO(stk_buf_done) = STK_BUF(STK_PART_HEAD_MAX);
    skip_blanks(s);
    if (!take_until(s, "=; \t", &name) || !take_byte(s, '='))
        return malformed(err);
    bool quoted = take_byte(s, '"');
    if (quoted ? !take_quoted(s, &value) : !take_until(s, "; \t\"", &value))
        return malformed(err);
    skip_blanks(s);
    stk_str is = stk_buf_view(&name);
    bool *twice = stk_str_ieq(is, STK_STR("name"))        ? &seen->name
                  : stk_str_ieq(is, STK_STR("filename"))  ? &seen->filename
                  : stk_str_ieq(is, STK_STR("filename*")) ? &seen->extended
                                                          : NULL;
    if (!twice)
        return 0;
    if (*twice || (twice == &seen->extended && (quoted || !decode_extended(&value))))
        return malformed(err);
    *twice = true;
    if (twice == &seen->name)
        return stk_str_copy(stk_buf_view(&value), part->name, sizeof(part->name)) ? 0 : malformed(err);
    if (twice == &seen->filename && seen->extended)
        return 0;
    return take_filename(part, stk_buf_view(&value), err);
}

static int read_disposition(stk_str s, stk_part *ret, stk_err *err)
{
    stk_buf kind STK_AUTO(stk_buf_done) = STK_BUF(32);
    stk_seen seen = {0};
    skip_blanks(&s);
    if (!take_until(&s, "; \t", &kind) || !stk_str_ieq(stk_buf_view(&kind), STK_STR("form-data")))
        return malformed(err);
    skip_blanks(&s);
    while (take_byte(&s, ';')) {
        int rc = take_parameter(&s, &seen, ret, err);
        if (rc < 0)
            return rc;
    }
    return s.n || !seen.name ? malformed(err) : 0;
}

int stk_part_parse(stk_str head, stk_part *ret, stk_err *err)
{
    static const char wanted[] = "content-disposition";
    bool found = false;
    *ret = (stk_part){.name = ""};
    while (head.n) {
        const char *cr = memchr(head.p, '\r', head.n);
        size_t n = cr ? (size_t)(cr - head.p) : head.n;
        if (!cr || head.n - n < 2 || cr[1] != '\n')
            return malformed(err);
        stk_str line = {head.p, n};
        head = stk_str_n(cr + 2, head.n - n - 2);
        const char *colon = line.n ? memchr(line.p, ':', line.n) : NULL;
        if (!colon || !stk_is_token(stk_str_n(line.p, (size_t)(colon - line.p))))
            return malformed(err);
        if (!stk_str_ieq(stk_str_n(line.p, (size_t)(colon - line.p)), stk_str_of(wanted)))
            continue;
        if (found)
            return malformed(err);
        found = true;
        int rc = read_disposition(stk_str_n(colon + 1, (size_t)(line.p + line.n - colon - 1)), ret, err);
        if (rc < 0)
            return rc;
    }
    return found ? 0 : malformed(err);
}
