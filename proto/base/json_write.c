#include "proto/base/json.h"
#include "proto/base/json_scan.h"
#include <math.h>
#include <stdio.h>

void stk_jw_init(stk_jw *w, stk_buf *out)
{
    *w = (stk_jw){.out = out};
}

static uint64_t level(const stk_jw *w)
{
    return (uint64_t)1 << (w->depth - 1);
}

static bool in_object(const stk_jw *w)
{
    return w->depth > 0 && w->objects & level(w);
}

/* A comma, unless this is the first of its level. */
static void separate(stk_jw *w)
{
    if (w->first & level(w))
        w->first &= ~level(w);
    else
        stk_buf_byte(w->out, ',');
}

static void before_value(stk_jw *w)
{
    if (w->depth == 0) {
        w->bad = w->bad || w->whole;
        w->whole = true;
    } else if (in_object(w)) {
        w->bad = w->bad || !w->key;
        w->key = false;
    } else {
        separate(w);
    }
}

static void open_level(stk_jw *w, char bracket)
{
    before_value(w);
    if (w->depth == STK_JW_DEPTH_MAX) {
        w->bad = true;
        return;
    }
    stk_buf_byte(w->out, bracket);
    w->depth++;
    w->first |= level(w);
    w->objects = bracket == '{' ? w->objects | level(w) : w->objects & ~level(w);
}

void stk_jw_object(stk_jw *w)
{
    open_level(w, '{');
}

void stk_jw_array(stk_jw *w)
{
    open_level(w, '[');
}

void stk_jw_close(stk_jw *w, char bracket)
{
    if (w->depth == 0 || w->key || bracket != (in_object(w) ? '}' : ']')) {
        w->bad = true;
        return;
    }
    stk_buf_byte(w->out, bracket);
    w->depth--;
}

static void write_escape(stk_buf *out, unsigned char c)
{
    static const char names[0x20] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    char text[7] = {'\\', (char)c};
    size_t n = 2;
    if (c < 0x20 && names[c])
        text[1] = names[c];
    else if (c < 0x20)
        n = (size_t)snprintf(text, sizeof(text), "\\u%04x", c);
    stk_buf_add(out, text, n);
}

static void write_string(stk_buf *out, stk_str s)
{
    stk_buf_byte(out, '"');
    while (s.n && !out->over) {
        size_t n = stk__json_plain_run(s);
        bool good = true;
        unsigned char c = n < s.n ? (unsigned char)s.p[n] : 0;
        if (n == 0 && c >= 0x80)
            n = stk_utf8_step(s, &good);
        if (!good)
            stk_buf_add(out, "\xef\xbf\xbd", 3);
        else if (n)
            stk_buf_add(out, s.p, n);
        else
            write_escape(out, c);
        n = n ? n : 1;
        s = stk_str_n(s.p + n, s.n - n);
    }
    stk_buf_byte(out, '"');
}

void stk_jw_key_str(stk_jw *w, stk_str key)
{
    if (!in_object(w) || w->key) {
        w->bad = true;
        return;
    }
    separate(w);
    write_string(w->out, key);
    stk_buf_byte(w->out, ':');
    w->key = true;
}

void stk_jw_key(stk_jw *w, const char *key)
{
    stk_jw_key_str(w, stk_str_of(key));
}

void stk_jw_raw(stk_jw *w, stk_str json)
{
    before_value(w);
    w->bad = w->bad || json.n == 0;
    stk_buf_str(w->out, json);
}

void stk_jw_str(stk_jw *w, stk_str s)
{
    before_value(w);
    write_string(w->out, s);
}

void stk_jw_text(stk_jw *w, const char *s)
{
    if (s)
        stk_jw_str(w, stk_str_of(s));
    else
        stk_jw_null(w);
}

void stk_jw_int(stk_jw *w, int64_t n)
{
    char text[24];
    stk_jw_raw(w, stk_str_n(text, (size_t)snprintf(text, sizeof(text), "%lld", (long long)n)));
}

void stk_jw_double(stk_jw *w, double d)
{
    char text[40];
    if (!isfinite(d)) {
        stk_jw_null(w);
        return;
    }
    if (fabs(d) < 1e17 && d == (double)(int64_t)d && !(d == 0 && signbit(d))) {
        stk_jw_int(w, (int64_t)d);
        return;
    }
    int n = 0;
    for (int digits = 1; digits <= 17; digits++) {
        n = snprintf(text, sizeof(text), "%.*g", digits, d);
        if (strtod(text, NULL) == d)
            break;
    }
    stk_jw_raw(w, stk_str_n(text, (size_t)n));
}

void stk_jw_bool(stk_jw *w, bool b)
{
    stk_jw_raw(w, b ? STK_STR("true") : STK_STR("false"));
}

void stk_jw_null(stk_jw *w)
{
    stk_jw_raw(w, STK_STR("null"));
}

void stk_jw_kstr(stk_jw *w, const char *key, stk_str s)
{
    stk_jw_key(w, key);
    stk_jw_str(w, s);
}

void stk_jw_ktext(stk_jw *w, const char *key, const char *s)
{
    stk_jw_key(w, key);
    stk_jw_text(w, s);
}

void stk_jw_kint(stk_jw *w, const char *key, int64_t n)
{
    stk_jw_key(w, key);
    stk_jw_int(w, n);
}

void stk_jw_kdouble(stk_jw *w, const char *key, double d)
{
    stk_jw_key(w, key);
    stk_jw_double(w, d);
}

void stk_jw_kbool(stk_jw *w, const char *key, bool b)
{
    stk_jw_key(w, key);
    stk_jw_bool(w, b);
}

void stk_jw_kraw(stk_jw *w, const char *key, stk_str json)
{
    stk_jw_key(w, key);
    stk_jw_raw(w, json);
}

int stk_jw_end(stk_jw *w, stk_err *err)
{
    if (w->out->over)
        return stk_err_set(err, STK_E_LIMIT, "the JSON text is over %zu bytes", w->out->cap);
    if (w->bad || w->depth || !w->whole)
        return stk_err_set(err, STK_E_INTERNAL, "a JSON text was put together wrongly");
    return 0;
}
