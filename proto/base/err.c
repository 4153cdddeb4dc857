#include "proto/base/err.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

typedef struct row {
    const char *text;
    const char *title;
    bool retry;
    int http;
    int exit;
} row;

static const row table[STK_CODE_COUNT] = {[STK_OK] = {"ok", "success", false, 200, 0},
#define X(sym, text, title, retry, http, exit) [STK_E_##sym] = {text, title, retry, http, exit},
                                          STK_ERR_TABLE(X)
#undef X
};

static const row *row_of(stk_code code)
{
    return (unsigned)code < STK_CODE_COUNT ? &table[code] : &table[STK_E_INTERNAL];
}

const char *stk_code_text(stk_code code)
{
    return row_of(code)->text;
}

const char *stk_code_title(stk_code code)
{
    return row_of(code)->title;
}

bool stk_code_retryable(stk_code code)
{
    return row_of(code)->retry;
}

int stk_code_http(stk_code code)
{
    return row_of(code)->http;
}

int stk_code_exit(stk_code code)
{
    return row_of(code)->exit;
}

static void one_line(char *s)
{
    for (; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            *s = '?';
}

static void set(stk_err *err, stk_code code, int sys, const char *fmt, va_list args)
{
    err->code = code;
    err->sys = sys;
    err->pointer[0] = '\0';
    vsnprintf(err->detail, sizeof(err->detail), fmt, args);
    one_line(err->detail);
}

int stk_err_set(stk_err *err, stk_code code, const char *fmt, ...)
{
    if (err) {
        va_list args;
        va_start(args, fmt);
        set(err, code, 0, fmt, args);
        va_end(args);
    }
    return -(int)code;
}

int stk_err_field(stk_err *err, stk_code code, const char *pointer, const char *fmt, ...)
{
    if (err) {
        va_list args;
        va_start(args, fmt);
        set(err, code, 0, fmt, args);
        va_end(args);
        snprintf(err->pointer, sizeof(err->pointer), "%s", pointer);
    }
    return -(int)code;
}

int stk_err_errno(stk_err *err, int errnum, const char *fmt, ...)
{
    stk_code code = errnum == ENOSPC || errnum == EDQUOT ? STK_E_NO_SPACE : STK_E_SYSTEM;
    if (err) {
        va_list args;
        va_start(args, fmt);
        set(err, code, errnum, fmt, args);
        va_end(args);
        size_t n = strlen(err->detail);
        const char *why = strerrordesc_np(errnum);
        snprintf(err->detail + n, sizeof(err->detail) - n, ": %s", why ? why : "unknown error");
    }
    return -(int)code;
}

/* Puts `front` before what `field` holds, cutting the end. */
static void prepend(char *field, size_t size, const char *front)
{
    size_t n = stk_min(strlen(front), size - 1);
    size_t keep = stk_min(strlen(field), size - 1 - n);
    memmove(field + n, field, keep);
    memcpy(field, front, n);
    field[n + keep] = '\0';
}

int stk_err_wrap(stk_err *err, const char *fmt, ...)
{
    if (!err)
        return -STK_E_INTERNAL;
    char front[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(front, sizeof(front) - 2, fmt, args);
    va_end(args);
    one_line(front);
    prepend(err->detail, sizeof(err->detail), ": ");
    prepend(err->detail, sizeof(err->detail), front);
    return -(int)err->code;
}

int stk_err_prefix(stk_err *err, const char *prefix)
{
    if (!err)
        return -STK_E_INTERNAL;
    prepend(err->pointer, sizeof(err->pointer), prefix);
    return -(int)err->code;
}
