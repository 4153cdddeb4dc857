#include "proto/http/head_impl.h"
#include <strings.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static stk_str trim(stk_str s)
{
    while (s.n && is_blank(s.p[0])) {
        s.p++;
        s.n--;
    }
    while (s.n && is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

/* Takes the next element off a comma-separated list; false at its end. */
static bool list_next(stk_str *list, stk_str *ret)
{
    if (!list->p)
        return false;
    const char *comma = list->n ? memchr(list->p, ',', list->n) : NULL;
    size_t n = comma ? (size_t)(comma - list->p) : list->n;
    *ret = trim(stk_str_n(list->p, n));
    *list = comma ? stk_str_n(comma + 1, list->n - n - 1) : (stk_str){NULL, 0};
    return true;
}

bool stk__list_has(stk_str list, stk_str token)
{
    stk_str element;
    while (list_next(&list, &element))
        if (stk_str_ieq(element, token))
            return true;
    return false;
}

static stk_head_fault on_host(stk__parse *parse, stk_str value)
{
    if (parse->head->host.p)
        return stk__fail(parse, STK_HEAD_HOST, "there is more than one Host");
    if (value.n == 0 || !stk__all(value, STK__C_HOST))
        return stk__fail(parse, STK_HEAD_HOST, "Host is empty or malformed");
    parse->head->host = value;
    return STK_HEAD_OK;
}

static stk_head_fault on_length(stk__parse *parse, stk_str value)
{
    if (parse->length_seen)
        return stk__fail(parse, STK_HEAD_FRAMING, "there is more than one Content-Length");
    if (!stk_str_u64(value, INT64_MAX, &parse->head->length))
        return stk__fail(parse, STK_HEAD_FRAMING, "Content-Length is not a plain number");
    parse->length_seen = true;
    return STK_HEAD_OK;
}

/* RFC 9112 section 6.3: codings before a final `chunked` are merely unknown to us (501); without one as the
 * last, the length can't be known at all (400). */
static stk_head_fault on_coding(stk__parse *parse, stk_str value)
{
    if (parse->te)
        return stk__fail(parse, STK_HEAD_FRAMING, "there is more than one Transfer-Encoding");
    parse->te = true;
    if (stk_str_ieq(value, STK_STR("chunked"))) {
        parse->chunked = true;
        return STK_HEAD_OK;
    }
    stk_str list = value, last = {NULL, 0};
    size_t chunked = 0;
    while (list_next(&list, &last))
        chunked += stk_str_ieq(last, STK_STR("chunked"));
    if (chunked == 1 && stk_str_ieq(last, STK_STR("chunked")))
        return stk__fail(parse, STK_HEAD_CODING, "no transfer coding but chunked is understood");
    return stk__fail(parse, STK_HEAD_FRAMING, "Transfer-Encoding does not end in a single chunked");
}

static void on_expect(stk__parse *parse, stk_str value)
{
    if (stk_str_ieq(value, STK_STR("100-continue")))
        parse->head->expect_continue = true;
    else
        parse->head->expect_other = true;
}

/* Fields that the framing hangs on; told by length first, since most are none of them. */
static stk_head_fault note_field(stk__parse *parse, const stk_head_field *field)
{
    switch (field->name.n) {
    case 4:
        if (stk_str_ieq(field->name, STK_STR("host")))
            return on_host(parse, field->value);
        break;
    case 6:
        if (stk_str_ieq(field->name, STK_STR("expect")))
            on_expect(parse, field->value);
        break;
    case 14:
        if (stk_str_ieq(field->name, STK_STR("content-length")))
            return on_length(parse, field->value);
        break;
    case 17:
        if (stk_str_ieq(field->name, STK_STR("transfer-encoding")))
            return on_coding(parse, field->value);
        break;
    default:
        break;
    }
    return STK_HEAD_OK;
}

static stk_head_fault parse_field(stk__parse *parse, stk_str line)
{
    stk_head *head = parse->head;
    if (is_blank(line.p[0]))
        return stk__fail(parse, STK_HEAD_FRAMING, "a header line is folded");
    const char *colon = memchr(line.p, ':', line.n);
    if (!colon)
        return stk__fail(parse, STK_HEAD_FIELD, "a header line has no colon");
    stk_head_field field = {.name = stk_str_n(line.p, (size_t)(colon - line.p))};
    if (field.name.n && is_blank(colon[-1]))
        return stk__fail(parse, STK_HEAD_FRAMING, "there is a blank before a colon");
    if (!stk_is_token(field.name))
        return stk__fail(parse, STK_HEAD_FIELD, "a header name is not a token");
    field.value = trim(stk_str_n(colon + 1, line.n - field.name.n - 1));
    if (!stk__all(field.value, STK__C_VALUE))
        return stk__fail(parse, STK_HEAD_FRAMING, "a header value holds control bytes");
    if (head->nfields == parse->max_fields)
        return stk__fail(parse, STK_HEAD_TOO_LARGE, "there are more header lines than the limit");
    head->fields[head->nfields++] = field;
    return note_field(parse, &field);
}

stk_head_fault stk__head_fields(stk__parse *parse, stk_str lines)
{
    while (lines.n) {
        const char *lf = memchr(lines.p, '\n', lines.n);
        size_t n = (size_t)(lf - lines.p);
        stk_head_fault fault = parse_field(parse, stk_str_n(lines.p, n - 1));
        if (fault)
            return fault;
        lines = stk_str_n(lf + 1, lines.n - n - 1);
    }
    return STK_HEAD_OK;
}

static void note_connection(stk_head *head)
{
    bool close = false, keep = false;
    for (size_t i = 0; i < head->nfields; i++) {
        const stk_head_field *field = &head->fields[i];
        if (field->name.n != 10 || !stk_str_ieq(field->name, STK_STR("connection")))
            continue;
        close |= stk__list_has(field->value, STK_STR("close"));
        keep |= stk__list_has(field->value, STK_STR("keep-alive"));
        head->upgrade |= stk__list_has(field->value, STK_STR("upgrade"));
    }
    head->keep_alive = !close && (head->minor == 1 || keep);
}

static stk_head_fault check_both(stk__parse *parse)
{
    if (parse->te && parse->length_seen)
        return stk__fail(parse, STK_HEAD_FRAMING, "both Content-Length and Transfer-Encoding are there");
    if (parse->te && parse->head->minor == 0)
        return stk__fail(parse, STK_HEAD_FRAMING, "HTTP/1.0 has no Transfer-Encoding");
    return STK_HEAD_OK;
}

stk_head_fault stk__request_framing(stk__parse *parse)
{
    stk_head *head = parse->head;
    stk_head_fault fault = check_both(parse);
    if (fault)
        return fault;
    if (head->minor == 1 && !head->host.p)
        return stk__fail(parse, STK_HEAD_FIELD, "Host is missing");
    note_connection(head);
    if (parse->chunked)
        head->framing = STK_FRAMING_CHUNKED;
    else if (head->length > 0)
        head->framing = STK_FRAMING_LENGTH;
    if (head->minor == 0 || head->framing == STK_FRAMING_NONE)
        head->expect_continue = false;
    return STK_HEAD_OK;
}

stk_head_fault stk__response_framing(stk__parse *parse, bool to_head, bool to_connect)
{
    stk_head *head = parse->head;
    stk_head_fault fault = check_both(parse);
    if (fault)
        return fault;
    note_connection(head);
    int status = head->status;
    if (to_head || status < 200 || status == 204 || status == 304 || (to_connect && status < 300))
        return STK_HEAD_OK;
    if (parse->chunked)
        head->framing = STK_FRAMING_CHUNKED;
    else if (parse->length_seen)
        head->framing = head->length ? STK_FRAMING_LENGTH : STK_FRAMING_NONE;
    else {
        head->framing = STK_FRAMING_CLOSE;
        head->keep_alive = false;
    }
    return STK_HEAD_OK;
}

const stk_head_field *stk_head_get(const stk_head *head, const char *name)
{
    stk_str want = stk_str_of(name);
    for (size_t i = 0; i < head->nfields; i++)
        if (stk_str_ieq(head->fields[i].name, want))
            return &head->fields[i];
    return NULL;
}

bool stk_head_has_token(const stk_head *head, const char *name, const char *token)
{
    stk_str want = stk_str_of(name);
    for (size_t i = 0; i < head->nfields; i++)
        if (stk_str_ieq(head->fields[i].name, want) &&
            stk__list_has(head->fields[i].value, stk_str_of(token)))
            return true;
    return false;
}

bool stk__header_lines_ok(stk_str lines)
{
    while (lines.n) {
        const char *cr = memchr(lines.p, '\r', lines.n);
        size_t n = cr ? (size_t)(cr - lines.p) : 0;
        if (n == 0 || n + 1 == lines.n || cr[1] != '\n')
            return false;
        const char *colon = memchr(lines.p, ':', n);
        if (!colon || !stk_is_token(stk_str_n(lines.p, (size_t)(colon - lines.p))) ||
            !stk__all(stk_str_n(lines.p, n), STK__C_VALUE))
            return false;
        lines = stk_str_n(cr + 2, lines.n - n - 2);
    }
    return true;
}
