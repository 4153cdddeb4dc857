#include "workers/runtime/routes.h"
#include "workers/runtime/guard.h"
#include "workers/runtime/problem.h"

#define UNWANTED_BODY 65536

static const struct {
    const char *method;
    const char *path;
    bool below; /* path is a prefix */
    const stk_call *call;
} routes[] = {
    {"GET", "/", false, &stk_call_status},           {"HEAD", "/", false, &stk_call_status},
    {"POST", "/execute", false, &stk_call_execute},  {"POST", "/upload", false, &stk_call_upload},
    {"GET", "/download/", true, &stk_call_download}, {"GET", "/list/", true, &stk_call_list},
    {"GET", "/list", false, &stk_call_list},         {"GET", "/exists/", true, &stk_call_exists},
    {"DELETE", "/files/", true, &stk_call_remove},
};

static bool fits(size_t i, stk_str path)
{
    stk_str mine = stk_str_of(routes[i].path);
    return routes[i].below ? stk_str_starts(path, mine) : stk_str_eq(path, mine);
}

/* Answers itself when there is no such call. */
static const stk_call *find(stk_http_x *x)
{
    stk_str path = stk_http_path(x), method = stk_http_head(x)->method;
    stk_buf allow STK_AUTO(stk_buf_done) = STK_BUF(256);
    for (size_t i = 0; i < STK_COUNT(routes); i++) {
        if (!fits(i, path))
            continue;
        if (stk_str_eq(method, stk_str_of(routes[i].method)))
            return routes[i].call;
        stk_buf_fmt(&allow, "%s%s", allow.n ? ", " : "Allow: ", routes[i].method);
    }
    if (!allow.n) {
        stk_rt_problem(x, 404, "", "Not Found");
        return NULL;
    }
    stk_buf_text(&allow, "\r\n");
    stk_rt_problem(x, 405, allow.p, "Method Not Allowed");
    return NULL;
}

static uint64_t most_of(const stk_exchange *ex)
{
    if (ex->call->body == STK_BODY_UPLOAD)
        return ex->rt->opt->max_upload;
    return ex->call->body ? ex->call->body : UNWANTED_BODY;
}

static void on_head(stk_http_x *x, void *arg)
{
    const stk_rt_side *side = arg;
    stk_http_set_data(x, NULL);
    if (side->listener && !stk_rt_admit(side->rt, x))
        return;
    const stk_call *call = find(x);
    if (!call)
        return;
    stk_exchange *ex = stk_xcalloc(1, sizeof(*ex));
    *ex = (stk_exchange){.rt = side->rt, .x = x, .call = call};
    stk_http_set_data(x, ex);
    stk_http_accept_body(x, most_of(ex));
}

static void on_body(stk_http_x *x, stk_str data, void *arg)
{
    stk_exchange *ex = stk_http_data(x);
    if (ex && ex->call->data)
        ex->call->data(ex, data);
}

static void on_end(stk_http_x *x, void *arg)
{
    stk_exchange *ex = stk_http_data(x);
    if (ex)
        ex->call->end(ex);
}

static void on_writable(stk_http_x *x, void *arg)
{
    stk_exchange *ex = stk_http_data(x);
    if (ex && ex->call->writable)
        ex->call->writable(ex);
}

static void on_done(stk_http_x *x, bool gone, void *arg)
{
    stk_exchange *ex = stk_http_data(x);
    if (!ex)
        return;
    if (ex->call->done)
        ex->call->done(ex, gone);
    free(ex);
}

static const char *error_body(int status, const char *code, const char *detail, stk_buf *out, void *arg)
{
    return stk_rt_problem_body(detail && *detail ? detail : code, out);
}

const stk_http_ops stk_rt_http_ops = {
    .on_head = on_head,
    .on_body = on_body,
    .on_end = on_end,
    .on_done = on_done,
    .on_writable = on_writable,
    .error_body = error_body,
};

static void answer_status(stk_exchange *ex)
{
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(1024);
    stk_jw w;
    stk_jw_init(&w, &body);
    stk_jw_object(&w);
    stk_jw_ktext(&w, "status", "ok");
    stk_jw_ktext(&w, "version", STK_VERSION);
    if (ex->rt->who.id[0])
        stk_jw_ktext(&w, "sandbox", ex->rt->who.id);
    stk_jw_kint(&w, "running", (int64_t)ex->rt->running);
    stk_jw_kint(&w, "max_concurrent", (int64_t)ex->rt->opt->max_concurrent);
    stk_jw_close(&w, '}');
    stk_jw_end(&w, NULL);
    stk_http_answer(ex->x, 200, "application/json", "", stk_buf_view(&body));
}

const stk_call stk_call_status = {.end = answer_status};
