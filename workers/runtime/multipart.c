#include "workers/runtime/multipart.h"
#include "proto/http/head.h"
#include <stdio.h>

enum { SKIM, AFTER, HEAD, DATA, BEHIND };

static bool boundary_ok(stk_str s)
{
    static const char odd[] = "'()+_,-./:=? ";
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        if (!plain && !memchr(odd, c, sizeof(odd) - 1))
            return false;
    }
    return s.n > 0 && s.n <= STK_BOUNDARY_MAX && s.p[s.n - 1] != ' ';
}

static stk_str trim(stk_str s)
{
    while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = stk_str_n(s.p + 1, s.n - 1);
    while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

static stk_str cut(stk_str *rest, char at)
{
    const char *end = rest->n ? memchr(rest->p, at, rest->n) : NULL;
    stk_str first = {rest->p, end ? (size_t)(end - rest->p) : rest->n};
    *rest = end ? stk_str_n(end + 1, rest->n - first.n - 1) : (stk_str){NULL, 0};
    return trim(first);
}

static stk_str find_boundary(stk_str parameters)
{
    while (parameters.n) {
        stk_str one = cut(&parameters, ';');
        if (!stk_str_ieq(cut(&one, '='), STK_STR("boundary")))
            continue;
        one = trim(one);
        if (one.n >= 2 && one.p[0] == '"' && one.p[one.n - 1] == '"')
            one = stk_str_n(one.p + 1, one.n - 2);
        return one;
    }
    return (stk_str){NULL, 0};
}

int stk_multipart_init(stk_multipart *mp, stk_str content_type, stk_err *err)
{
    *mp = (stk_multipart){.head = STK_BUF(STK_PART_HEAD_MAX), .matched = 2};
    if (!stk_str_ieq(cut(&content_type, ';'), STK_STR("multipart/form-data")))
        return stk_err_field(err, STK_E_FIELD, "", "the body must be multipart/form-data");
    stk_str boundary = find_boundary(content_type);
    if (!boundary_ok(boundary))
        return stk_err_field(err, STK_E_FIELD, "", "multipart/form-data needs a boundary (RFC 2046)");
    mp->ndelimiter = 4 + boundary.n;
    snprintf(mp->delimiter, sizeof(mp->delimiter), "\r\n--%.*s", (int)boundary.n, boundary.p);
    return 0;
}

static void take(stk_str *in, size_t n)
{
    *in = stk_str_n(in->p + n, in->n - n);
}

/* Where in `in` a delimiter begins, as far as can be seen; in.n when nowhere. */
static size_t search(const stk_multipart *mp, stk_str in)
{
    size_t from = 0;
    for (const char *cr; from < in.n && (cr = memchr(in.p + from, '\r', in.n - from));) {
        size_t at = (size_t)(cr - in.p);
        if (memcmp(cr, mp->delimiter, stk_min(in.n - at, mp->ndelimiter)) == 0)
            return at;
        from = at + 1;
    }
    return in.n;
}

/* Bytes of a part, or between parts. A carriage return stands in the delimiter only as its first byte: what
 * does not go on as a delimiter can't hold the start of another. */
static stk_multipart_event scan(stk_multipart *mp, stk_str *in, stk_str *ret_data)
{
    if (mp->matched == 0) {
        size_t at = search(mp, *in);
        *ret_data = stk_str_n(in->p, at);
        take(in, at);
        if (at > 0)
            return STK_PART_DATA;
    }
    while (in->n && mp->matched < mp->ndelimiter && in->p[0] == mp->delimiter[mp->matched]) {
        mp->matched++;
        take(in, 1);
    }
    if (mp->matched == mp->ndelimiter) {
        mp->matched = 0;
        return STK_PART_END;
    }
    if (in->n == 0)
        return STK_PART_MORE;
    *ret_data = stk_str_n(mp->delimiter, mp->matched);
    mp->matched = 0;
    return STK_PART_DATA;
}

/* Behind a boundary: "--" ends it all, blanks and CRLF lead to a part. */
static stk_multipart_event behind_boundary(stk_multipart *mp, stk_str *in)
{
    char c = in->p[0], was = (char)mp->after;
    take(in, 1);
    mp->after = c;
    if (was == '-' && c == '-') {
        mp->state = BEHIND;
        mp->whole = true;
    } else if (was == '\r' && c == '\n') {
        mp->state = HEAD;
        stk_buf_reset(&mp->head);
    } else if (!((c == '-' && was == 0) ||
                 (was != '-' && was != '\r' && (c == ' ' || c == '\t' || c == '\r')))) {
        return STK_PART_BAD;
    }
    return STK_PART_MORE;
}

static stk_multipart_event read_head(stk_multipart *mp, stk_str *in)
{
    while (in->n) {
        if (stk_buf_byte(&mp->head, in->p[0]) < 0)
            return STK_PART_BAD;
        take(in, 1);
        stk_str head = stk_buf_view(&mp->head);
        if (stk_str_ends(head, STK_STR("\r\n\r\n")) || stk_str_eq(head, STK_STR("\r\n"))) {
            mp->head.n -= 2;
            mp->state = DATA;
            return STK_PART_BEGIN;
        }
    }
    return STK_PART_MORE;
}

stk_multipart_event stk_multipart_feed(stk_multipart *mp, stk_str *in, stk_str *ret_data)
{
    *ret_data = (stk_str){NULL, 0};
    while (in->n) {
        stk_multipart_event event = STK_PART_MORE;
        int state = mp->state;
        if (state == BEHIND) {
            take(in, in->n);
        } else if (state == AFTER) {
            event = behind_boundary(mp, in);
        } else if (state == HEAD) {
            event = read_head(mp, in);
        } else {
            event = scan(mp, in, ret_data);
            if (event == STK_PART_END) {
                mp->state = AFTER;
                mp->after = 0;
            }
            if (state == SKIM)
                event = STK_PART_MORE;
        }
        if (event != STK_PART_MORE)
            return event;
    }
    return STK_PART_MORE;
}

stk_str stk_multipart_head(const stk_multipart *mp)
{
    return stk_buf_view(&mp->head);
}

void stk_multipart_done(stk_multipart *mp)
{
    stk_buf_done(&mp->head);
}
