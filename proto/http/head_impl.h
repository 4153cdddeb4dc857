/* Private to the head parser. */
#ifndef STK_HTTP_HEAD_IMPL_H
#define STK_HTTP_HEAD_IMPL_H

#include "proto/http/head.h"

/* Classes of bytes, combined in one table. */
enum {
    STK__C_TOKEN = 1,  /* tchar of RFC 9110                                     */
    STK__C_VALUE = 2,  /* field-vchar, SP and HTAB                              */
    STK__C_TARGET = 4, /* what a request target may hold                        */
    STK__C_HOST = 8    /* reg-name, IP literal, port; no comma, '@', '/', '\'   */
};
extern const uint8_t stk__byte_class[256];

static inline bool stk__all(stk_str s, uint8_t kind)
{
    for (size_t i = 0; i < s.n; i++)
        if (!(stk__byte_class[(uint8_t)s.p[i]] & kind))
            return false;
    return true;
}

/* One parse under way: where the result goes, and how it failed. */
typedef struct stk__parse {
    stk_head *head;
    size_t max_fields;
    const char *why;
    bool te, chunked;
    bool length_seen;
} stk__parse;

static inline stk_head_fault stk__fail(stk__parse *parse, stk_head_fault fault, const char *why)
{
    parse->why = why;
    return fault;
}

static inline int stk__hex_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses the field lines in `lines` (each with its CRLF, without the empty line). */
stk_head_fault stk__head_fields(stk__parse *parse, stk_str lines);
/* After the fields: what framing they mean. */
stk_head_fault stk__request_framing(stk__parse *parse);
stk_head_fault stk__response_framing(stk__parse *parse, bool to_head, bool to_connect);
/* True when the comma-separated list holds the token. */
bool stk__list_has(stk_str list, stk_str token);
/* Lines that we send: "Name: value\r\n", any number of them, and nothing that could end the head. */
bool stk__header_lines_ok(stk_str lines);

#endif
