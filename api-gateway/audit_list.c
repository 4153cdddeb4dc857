/* GET /v1/audit. */
#include "api-gateway/exchange.h"
#include "proto/message/audit.h"
#include "proto/message/request.h"

#define ANSWER_MAX ((size_t)64 << 20)

static void put_row(stk_jw *w, const stk_audit_row *row)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    if (stk_audit_encode(row, &text, NULL) == 0)
        stk_jw_raw(w, stk_buf_view(&text));
}

static void on_rows(const stk_err *why, const stk_audit_row *rows, size_t n, const char *cursor, void *arg)
{
    stk_gw_exchange *ex STK_AUTO(stk_gw_leave) = arg;
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(ANSWER_MAX);
    stk_err err;
    stk_jw w;
    if (stk_gw_over(ex))
        return;
    if (why) {
        stk_gw_answer_err(ex, why);
        return;
    }
    stk_jw_init(&w, &body);
    stk_jw_object(&w);
    stk_jw_key(&w, "rows");
    stk_jw_array(&w);
    for (size_t i = 0; i < n; i++)
        put_row(&w, &rows[i]);
    stk_jw_close(&w, ']');
    stk_jw_ktext(&w, "next", cursor && *cursor ? cursor : NULL);
    stk_jw_close(&w, '}');
    if (stk_jw_end(&w, &err) < 0)
        stk_gw_answer_err(ex, &err);
    else
        stk_gw_answer_json(ex, 200, "", &body);
}

static int take_text(const stk_gw_exchange *ex, const char *name, char *out, size_t size, stk_err *err)
{
    const char *text = stk_gw_query(ex, name);
    if (text && !stk_str_copy(stk_str_of(text), out, size))
        return stk_err_set(err, STK_E_FIELD, "%s: too long", name);
    return 0;
}

static int take_time(const stk_gw_exchange *ex, const char *name, stk_wall *ret, stk_err *err)
{
    const char *text = stk_gw_query(ex, name);
    if (text && stk_wall_parse(text, strlen(text), ret) < 0)
        return stk_err_set(err, STK_E_FIELD, "%s: a time such as 2026-01-02T03:04:05Z", name);
    return 0;
}

static bool action_ok(const char *action)
{
    for (const char *p = action; *p; p++)
        if (!((*p >= 'a' && *p <= 'z') || *p == '_' || *p == '.' ||
              (*p == '*' && p > action && p[-1] == '.' && !p[1])))
            return false;
    return true;
}

static int take_query(const stk_gw_exchange *ex, stk_audit_query *q, stk_err *err)
{
    const char *order = stk_gw_query(ex, "order");
    memcpy(q->tenant, ex->caller.tenant, sizeof(q->tenant));
    if (take_text(ex, "agent", q->agent, sizeof(q->agent), err) < 0 ||
        take_text(ex, "run", q->run, sizeof(q->run), err) < 0 ||
        take_text(ex, "action", q->action, sizeof(q->action), err) < 0 ||
        take_text(ex, "cursor", q->cursor, sizeof(q->cursor), err) < 0 ||
        take_time(ex, "since", &q->since, err) < 0 || take_time(ex, "until", &q->until, err) < 0 ||
        stk_gw_query_limit(ex, &q->limit, err) < 0)
        return -(int)err->code;
    if (q->agent[0] && !stk_agent_ok(stk_str_of(q->agent)))
        return stk_err_set(err, STK_E_FIELD, "agent: not an agent's name");
    if (q->run[0] && !stk_id_valid("run", stk_str_of(q->run)))
        return stk_err_set(err, STK_E_FIELD, "run: not the id of a run");
    if (!action_ok(q->action))
        return stk_err_set(err, STK_E_FIELD,
                           "action: such as agent_sandbox.launch or agent_sandbox.egress.*");
    if (order && strcmp(order, "newest") != 0 && strcmp(order, "oldest") != 0)
        return stk_err_set(err, STK_E_FIELD, "order: newest or oldest (first)");
    q->oldest_first = order && strcmp(order, "oldest") == 0;
    return 0;
}

void stk_gw_audit_list(stk_gw_exchange *ex)
{
    stk_audit_query query = {0};
    stk_err err;
    if (take_query(ex, &query, &err) < 0)
        stk_gw_answer_err(ex, &err);
    else
        stk_store_query(ex->gw->spec.store, &query, on_rows, stk_gw_ref(ex));
}
