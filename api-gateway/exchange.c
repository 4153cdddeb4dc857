#include "api-gateway/exchange.h"
#include "api-gateway/auth.h"
#include "proto/base/log.h"
#include <stdio.h>

#define MAYBE_MAX  4096
#define JSON_DEPTH 32

/* --- life --- */

stk_gw_exchange *stk_gw_ref(stk_gw_exchange *ex)
{
    ex->refs++;
    return ex;
}

void stk_gw_unref_exchange(stk_gw_exchange *ex)
{
    if (--ex->refs)
        return;
    if (ex->work_free)
        ex->work_free(ex->work);
    for (size_t i = 0; i < ex->nquery; i++)
        stk_buf_done(&ex->query[i].value);
    stk_json_free(ex->doc);
    stk_buf_done(&ex->body);
    if (ex->next)
        ex->next->prev = ex->prev;
    if (ex->prev)
        ex->prev->next = ex->next;
    else
        ex->gw->exchanges = ex->next;
    stk_gw_unref(ex->gw);
    free(ex);
}

bool stk_gw_over(const stk_gw_exchange *ex)
{
    return ex->gw->dead;
}

static stk_gw_exchange *begin(stk_gateway *gw, stk_http_x *x)
{
    stk_gw_exchange *ex = stk_xcalloc(1, sizeof(*ex));
    *ex = (stk_gw_exchange){.gw = gw, .x = x, .refs = 1, .next = gw->exchanges};
    if (ex->next)
        ex->next->prev = ex;
    gw->exchanges = ex;
    gw->refs++;
    gw->open++;
    stk_buf_init(&ex->body, (size_t)gw->spec.body_max);
    stk_id_new("req", stk_wall_now(), ex->request_id);
    stk_http_set_data(x, ex);
    return ex;
}

void *stk_gw_op(stk_gw_exchange *ex, stk_op_kind kind, stk_op_done done)
{
    return stk_op_new(kind, done, stk_gw_ref(ex));
}

/* --- answers --- */

static void count(stk_gw_exchange *ex, int status)
{
    ex->answered = true;
    ex->status = status;
    if (ex->route && status / 100 < 6)
        ex->gw->by_route[(size_t)(ex->route - stk_gw_routes) * 6 + (size_t)(status / 100)]++;
}

static void common_headers(const stk_gw_exchange *ex, const char *headers, stk_buf *out)
{
    stk_buf_fmt(out, "X-Request-Id: %s\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n%s",
                ex->request_id, headers);
}

void stk_gw_answer(stk_gw_exchange *ex, int status, const char *type, const char *headers, stk_str body)
{
    stk_buf lines STK_AUTO(stk_buf_done) = STK_BUF(4096);
    if (ex->answered)
        return;
    count(ex, status);
    common_headers(ex, headers, &lines);
    if (ex->x)
        stk_http_answer(ex->x, status, type, lines.p, body);
}

void stk_gw_begin_stream(stk_gw_exchange *ex, int status, const char *type)
{
    stk_buf lines STK_AUTO(stk_buf_done) = STK_BUF(4096);
    count(ex, status);
    common_headers(ex, "", &lines);
    if (ex->x)
        stk_http_start(ex->x, status, type, lines.p, UINT64_MAX);
}

void stk_gw_answer_json(stk_gw_exchange *ex, int status, const char *headers, const stk_buf *body)
{
    stk_gw_answer(ex, status, "application/json", headers, stk_buf_view(body));
}

/* Once a second at most: a bus that is away must not fill the disk with log lines. */
static void log_failure(const stk_gw_exchange *ex, const stk_err *err, int status, const char *run)
{
    const stk_who who = {.run = run, .tenant = ex->caller.tenant};
    stk_gateway *gw = ex->gw;
    stk_mono now = stk_mono_now();
    if (gw->warned.ns && stk_mono_before(now, stk_mono_add(gw->warned, stk_sec(1)))) {
        gw->unlogged++;
        return;
    }
    stk_log_err(STK_LOG_WARN, &who, err, "request %s is answered %d (%llu more were not logged)",
                ex->request_id, status, (unsigned long long)gw->unlogged);
    gw->warned = now;
    gw->unlogged = 0;
}

void stk_gw_answer_problem(stk_gw_exchange *ex, const stk_err *err, const char *headers,
                           const stk_gw_more *more)
{
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF((size_t)8 << 20);
    stk_buf lines STK_AUTO(stk_buf_done) = STK_BUF(1024);
    int status = stk_gw_problem_status(err), after = stk_gw_retry_after(err);
    if (ex->answered)
        return;
    if (status >= 500)
        log_failure(ex, err, status, more ? more->run_id : NULL);
    stk_gw_problem_write(&body, err, ex->request_id, more);
    stk_buf_text(&lines, headers);
    if (status == 401)
        stk_buf_text(&lines, "WWW-Authenticate: Bearer\r\n");
    if (after)
        stk_buf_fmt(&lines, "Retry-After: %d\r\n", after);
    stk_gw_answer(ex, status, STK_PROBLEM_TYPE, lines.n ? lines.p : "", stk_buf_view(&body));
}

void stk_gw_answer_err(stk_gw_exchange *ex, const stk_err *err)
{
    stk_gw_answer_problem(ex, err, "", NULL);
}

/* --- the request --- */

bool stk_gw_has_scope(const stk_gw_exchange *ex, unsigned scope)
{
    return (ex->caller.scopes & scope) == scope;
}

stk_str stk_gw_header(const stk_gw_exchange *ex, const char *name)
{
    const stk_head_field *field = ex->x ? stk_head_get(stk_http_head(ex->x), name) : NULL;
    return field ? field->value : (stk_str){NULL, 0};
}

static void take_trace(stk_gw_exchange *ex)
{
    stk_str s = stk_gw_header(ex, "traceparent");
    if (s.n != STK_TRACE_MAX - 1)
        return;
    bool zero_trace = true, zero_parent = true;
    for (size_t i = 0; i < s.n; i++) {
        bool dash = i == 2 || i == 35 || i == 52;
        bool hex = (s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f');
        if (dash ? s.p[i] != '-' : !hex)
            return;
        zero_trace &= !(i > 2 && i < 35 && s.p[i] != '0');
        zero_parent &= !(i > 35 && i < 52 && s.p[i] != '0');
    }
    if (stk_str_starts(s, STK_STR("00-")) && !zero_trace && !zero_parent)
        stk_str_copy(s, ex->trace, sizeof(ex->trace));
}

static int take_route(stk_gw_exchange *ex, char allow[64], stk_err *err)
{
    const stk_head *head = stk_http_head(ex->x);
    stk_gateway *gw = ex->gw;
    int rc = gw->spec.auth_none ? stk_gw_guard(head, gw->is_unix, err) : 0;
    if (rc < 0)
        return rc;
    ex->route = stk_gw_route_find(head->method, stk_http_path(ex->x), ex->param, allow, err);
    if (!ex->route)
        return -(int)err->code;
    rc = stk_gw_query_parse(ex, stk_http_query(ex->x), ex->route->query, err);
    if (rc == 0 && ex->route->scope)
        rc = stk_gw_auth(gw, head, ex->route->scope, stk_gw_query(ex, "tenant"), &ex->caller, err);
    return rc;
}

/* Fields that decide something come once: of two, somebody in front may have judged the other. */
static int decisive_once(const stk_head *head, stk_err *err)
{
    static const char *const decisive[] = {"Authorization", "Idempotency-Key", "If-Match",
                                           "Last-Event-ID", "Origin",          "Sec-Fetch-Site"};
    for (size_t d = 0; d < STK_COUNT(decisive); d++) {
        size_t n = 0;
        for (size_t i = 0; i < head->nfields; i++)
            n += stk_str_ieq(head->fields[i].name, stk_str_of(decisive[d]));
        if (n > 1)
            return stk_err_set(err, STK_E_HTTP, "the header %s is there more than once", decisive[d]);
    }
    return 0;
}

static void on_head(stk_http_x *x, void *arg)
{
    static const uint64_t most[] = {[STK_GW_NO_BODY] = 0, [STK_GW_MAYBE] = MAYBE_MAX};
    stk_gw_exchange *ex = begin(arg, x);
    char allow[64] = "", header[80] = "";
    stk_err err = {0};
    if (decisive_once(stk_http_head(x), &err) < 0 || take_route(ex, allow, &err) < 0) {
        if (err.code == STK_E_METHOD)
            snprintf(header, sizeof(header), "Allow: %s\r\n", allow);
        stk_gw_answer_problem(ex, &err, header, NULL);
        return;
    }
    take_trace(ex);
    if (ex->route->body == STK_GW_NO_BODY && stk_http_head(x)->framing != STK_FRAMING_NONE &&
        stk_http_head(x)->length != 0) {
        stk_err_set(&err, STK_E_HTTP, "this request takes no body");
        stk_gw_answer_err(ex, &err);
        return;
    }
    stk_http_accept_body(x, ex->route->body == STK_GW_JSON ? (uint64_t)ex->gw->spec.body_max
                                                           : most[ex->route->body]);
}

static void on_body(stk_http_x *x, stk_str data, void *arg)
{
    stk_gw_exchange *ex = stk_http_data(x);
    if (ex)
        stk_buf_str(&ex->body, data);
}

static int parse_body(stk_gw_exchange *ex, stk_err *err)
{
    static const stk_json_limits limits = {.depth = JSON_DEPTH};
    if (ex->route->body == STK_GW_NO_BODY || (ex->route->body == STK_GW_MAYBE && ex->body.n == 0))
        return 0;
    int rc = stk_json_parse(stk_buf_view(&ex->body), &limits, &ex->doc, err);
    if (rc < 0)
        return rc == -STK_E_LIMIT ? stk_err_set(err, STK_E_TOO_LARGE, "the body holds too many values") : rc;
    if (ex->route->body == STK_GW_MAYBE) {
        stk_jv root = stk_json_root(ex->doc);
        if (!stk_jv_is(root, STK_J_OBJECT) || stk_jv_count(root))
            return stk_err_set(err, STK_E_FIELD, "the body must be empty or {}");
    }
    return 0;
}

static void on_end(stk_http_x *x, void *arg)
{
    stk_gw_exchange *hold STK_AUTO(stk_gw_leave) = stk_http_data(x) ? stk_gw_ref(stk_http_data(x)) : NULL;
    stk_err err = {0};
    if (!hold || hold->answered)
        return;
    if (parse_body(hold, &err) < 0)
        stk_gw_answer_err(hold, &err);
    else
        hold->route->handle(hold);
}

static void on_done(stk_http_x *x, bool gone, void *arg)
{
    stk_gw_exchange *ex = stk_http_data(x);
    if (!ex)
        return;
    const stk_head *head = stk_http_head(x);
    stk_log_debug(&(stk_who){.tenant = ex->caller.tenant}, "%.*s %.*s: %d%s %s", (int)head->method.n,
                  head->method.p, (int)stk_min(stk_http_path(x).n, 200), stk_http_path(x).p, ex->status,
                  gone ? " (client gone)" : "", ex->request_id);
    ex->x = NULL;
    ex->gw->open--;
    ex->gw->counts.abandoned += gone && !ex->answered;
    if (ex->interrupt)
        ex->interrupt(ex, true);
    stk_gw_unref_exchange(ex);
}

static void on_writable(stk_http_x *x, void *arg)
{
    stk_gw_exchange *ex = stk_http_data(x);
    if (ex && ex->writable)
        ex->writable(ex);
}

static const char *error_body(int status, const char *code, const char *detail, stk_buf *out, void *arg)
{
    stk_gw_problem_bare(out, status, code, detail);
    return STK_PROBLEM_TYPE;
}

const stk_http_ops stk_gw_http_ops = {.on_head = on_head,
                                      .on_body = on_body,
                                      .on_end = on_end,
                                      .on_done = on_done,
                                      .on_writable = on_writable,
                                      .error_body = error_body};
