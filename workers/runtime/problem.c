#include "workers/runtime/problem.h"
#include "proto/base/json.h"
#include <stdio.h>

#define BODY_MAX 8192

const char *stk_rt_problem_body(const char *detail, stk_buf *out)
{
    stk_jw w;
    stk_jw_init(&w, out);
    stk_jw_object(&w);
    stk_jw_ktext(&w, "detail", detail);
    stk_jw_close(&w, '}');
    stk_jw_end(&w, NULL);
    return "application/json";
}

void stk_rt_problem(stk_http_x *x, int status, const char *headers, const char *detail)
{
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(BODY_MAX);
    const char *type = stk_rt_problem_body(detail, &body);
    stk_http_answer(x, status, type, headers, stk_buf_view(&body));
}

static const char *type_of(stk_code code)
{
    switch (code) {
    case STK_E_JSON:
        return "json_invalid";
    case STK_E_MISSING_FIELD:
        return "missing";
    case STK_E_UNKNOWN_FIELD:
        return "extra_forbidden";
    default:
        return "value_error";
    }
}

/* One token of a JSON Pointer: a number where it is one, else text with ~0 and ~1 undone. */
static void write_token(stk_jw *w, stk_str token)
{
    uint64_t n;
    if (stk_str_u64(token, INT32_MAX, &n)) {
        stk_jw_int(w, (int64_t)n);
        return;
    }
    char text[sizeof(((stk_err *)0)->pointer)];
    size_t to = 0;
    for (size_t i = 0; i < token.n && to < sizeof(text); i++) {
        bool escape = token.p[i] == '~' && i + 1 < token.n;
        text[to++] = !escape ? token.p[i] : token.p[++i] == '1' ? '/' : '~';
    }
    stk_jw_str(w, stk_str_n(text, to));
}

static void write_loc(stk_jw *w, const char *pointer)
{
    stk_jw_array(w);
    stk_jw_text(w, "body");
    while (*pointer == '/') {
        const char *end = strchrnul(++pointer, '/');
        write_token(w, stk_str_n(pointer, (size_t)(end - pointer)));
        pointer = end;
    }
    stk_jw_close(w, ']');
}

static void wrong_shape(stk_http_x *x, const stk_err *err)
{
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(BODY_MAX);
    stk_jw w;
    stk_jw_init(&w, &body);
    stk_jw_object(&w);
    stk_jw_key(&w, "detail");
    stk_jw_array(&w);
    stk_jw_object(&w);
    stk_jw_key(&w, "loc");
    write_loc(&w, err->pointer);
    stk_jw_ktext(&w, "msg", err->detail);
    stk_jw_ktext(&w, "type", type_of(err->code));
    stk_jw_close(&w, '}');
    stk_jw_close(&w, ']');
    stk_jw_close(&w, '}');
    stk_jw_end(&w, NULL);
    stk_http_answer(x, 422, "application/json", "", stk_buf_view(&body));
}

void stk_rt_refuse(stk_http_x *x, const stk_err *err)
{
    int status = stk_code_http(err->code);
    if (status == 422 || err->code == STK_E_JSON)
        wrong_shape(x, err);
    else
        stk_rt_problem(x, status, status == 429 || status == 503 ? "Retry-After: 1\r\n" : "", err->detail);
}
