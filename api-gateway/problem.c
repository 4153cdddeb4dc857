#include "api-gateway/problem.h"
#include "proto/base/id.h"
#include "proto/http/server.h"
#include <stdio.h>

int stk_gw_problem_status(const stk_err *err)
{
    return err->code == STK_E_NO_SPACE ? stk_code_http(STK_E_UNAVAILABLE) : stk_code_http(err->code);
}

int stk_gw_retry_after(const stk_err *err)
{
    int status = stk_gw_problem_status(err);
    return status == 429 || status == 503 ? 1 : 0;
}

static void head(stk_jw *w, const char *code, const char *title, int status, const char *detail)
{
    char type[96];
    snprintf(type, sizeof(type), "urn:stockade:problem:%s", code);
    stk_jw_object(w);
    stk_jw_ktext(w, "type", type);
    stk_jw_ktext(w, "title", title);
    stk_jw_kint(w, "status", status);
    stk_jw_ktext(w, "detail", detail);
    stk_jw_ktext(w, "code", code);
}

void stk_gw_problem_write(stk_buf *out, const stk_err *err, const char *request_id, const stk_gw_more *more)
{
    stk_jw w;
    stk_jw_init(&w, out);
    head(&w, stk_code_text(err->code), stk_code_title(err->code), stk_gw_problem_status(err), err->detail);
    if (err->pointer[0])
        stk_jw_ktext(&w, "pointer", err->pointer);
    stk_jw_kbool(&w, "retryable", stk_code_retryable(err->code));
    stk_jw_ktext(&w, "request_id", request_id);
    if (more && more->run_id)
        stk_jw_ktext(&w, "run_id", more->run_id);
    if (more && more->weakening.n)
        stk_jw_kraw(&w, "weakening", more->weakening);
    stk_jw_close(&w, '}');
}

void stk_gw_problem_bare(stk_buf *out, int status, const char *code, const char *detail)
{
    stk_jw w;
    stk_jw_init(&w, out);
    head(&w, code, stk_http_status_name(status), status, detail);
    stk_jw_kbool(&w, "retryable", status == 408 || status == 429 || status == 503);
    char id[STK_ID_SIZE];
    stk_id_new("req", stk_wall_now(), id);
    stk_jw_ktext(&w, "request_id", id);
    stk_jw_close(&w, '}');
}
