/* POST …/agent-sandbox/plan: the request travels the bus to a worker, which answers over state. */
#include "api-gateway/submit.h"
#include "api-gateway/wait.h"

#define LIMIT stk_sec(30)

static void answer_refusal(stk_gw_exchange *ex, const stk_run_row *row)
{
    stk_event ev = {0};
    stk_err err = {0};
    if (row->result.set && stk_event_decode(stk_bytes_view(&row->result), &ev, NULL) == 0)
        stk_err_set(&err,
                    strncmp(ev.detail, "backend_unavailable", 19) == 0 ? STK_E_BACKEND : STK_E_UNAVAILABLE,
                    "%s", ev.detail);
    else
        stk_err_set(&err, STK_E_UNAVAILABLE, "no worker made this plan (%s)", row->reason);
    stk_event_done(&ev);
    stk_gw_answer_err(ex, &err);
}

static void answer_plan(stk_gw_exchange *ex, const stk_run_row *row)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    stk_str text = stk_bytes_view(&row->result);
    stk_err err = {0};
    if (stk_json_parse(text, NULL, &doc, &err) < 0) {
        stk_err_set(&err, STK_E_PROTOCOL, "the worker's plan can't be read");
        stk_gw_answer_err(ex, &err);
        return;
    }
    stk_jv failed = stk_jv_get(stk_json_root(doc), "error");
    if (stk_jv_is(failed, STK_J_STRING)) {
        stk_str why = stk_jv_str(failed);
        stk_err_set(&err, STK_E_SANDBOX, "the worker could not plan this: %.*s", (int)stk_min(why.n, 400),
                    why.p);
        stk_gw_answer_err(ex, &err);
        return;
    }
    stk_gw_answer(ex, 200, "application/json", "", text);
}

static stk_span limit_of(const stk_gateway *gw)
{
    return gw->spec.wait_most.ns < LIMIT.ns ? gw->spec.wait_most : LIMIT;
}

static void on_waited(stk_gw_exchange *ex, const stk_run_row *row, stk_run_state seen, void *arg)
{
    stk_err err = {0};
    if (!row) {
        stk_err_set(&err, STK_E_TIMEOUT,
                    "no worker answered within %g seconds: is one running? (GET /v1/workers)",
                    stk_span_sec(limit_of(ex->gw)));
        stk_gw_answer_err(ex, &err);
    } else if (stk_reason_parse(row->reason) == STK_REASON_EXITED && row->result.set) {
        answer_plan(ex, row);
    } else {
        answer_refusal(ex, row);
    }
}

static void on_submitted(stk_gw_exchange *ex, const char *run, stk_run_state state, void *arg)
{
    stk_gw_wait(ex, run, limit_of(ex->gw), on_waited, NULL);
}

void stk_gw_plan(stk_gw_exchange *ex)
{
    stk_request req = {0};
    stk_run_secret secret = {0};
    stk_err err = {0};
    stk_wall now = stk_wall_now();
    if (stk_request_from_api(stk_json_root(ex->doc), true, now, &req, &secret, &err) < 0) {
        stk_gw_answer_err(ex, &err);
        return;
    }
    req.submitted = now;
    req.deadline = stk_wall_add(now, limit_of(ex->gw));
    req.config_version = stk_gw_view_version(ex->gw->view, ex->caller.tenant, STK_CONF_AGENT_SANDBOX);
    stk_gw_submit(ex, &req, &secret, on_submitted, NULL);
}
