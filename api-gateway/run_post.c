/* POST …/agent-sandbox/run and POST /v1/runs. */
#include "api-gateway/result.h"
#include "api-gateway/runs.h"
#include "api-gateway/submit.h"
#include "api-gateway/wait.h"
#include <stdio.h>

#define STORE_PATIENCE stk_sec(5)
#define ANSWER_MAX     ((size_t)8 << 20)

typedef struct posting {
    stk_span wait;
    char run[STK_ID_SIZE];
} posting;

/* --- is it sandboxed, and how --- */

static int check_listed(const stk_gw_exchange *ex, const stk_request *req, const stk_agent_config **ret,
                        const stk_sandbox_doc **ret_doc, stk_err *err)
{
    static const char how[] = "PUT /api/admin/platform/agent-sandbox";
    const stk_gateway *gw = ex->gw;
    if (!stk_gw_view_ready(gw->view))
        return stk_err_set(err, STK_E_UNAVAILABLE, "the configuration is still being read");
    const stk_sandbox_doc *doc = stk_gw_view_sandbox(gw->view, ex->caller.tenant);
    const stk_agent_config *agent = doc ? stk_sandbox_doc_agent(doc, stk_str_of(req->agent)) : NULL;
    if (!doc || !doc->enabled)
        return stk_err_set(
            err, STK_E_NOT_SANDBOXED,
            "sandboxing is off for this tenant: nothing was run and nothing changed; turn it on with %s "
            "{\"enabled\": true, \"agents\": {\"%.64s\": {\"allow\": []}}}",
            how, req->agent);
    if (!agent)
        return stk_err_set(err, STK_E_NOT_SANDBOXED,
                           "the agent %.64s is not listed: nothing was run and nothing changed; list it "
                           "under \"agents\" with %s",
                           req->agent, how);
    *ret = agent;
    *ret_doc = doc;
    return 0;
}

/* A request must not get round what the configuration names. */
static int take_backend(stk_request *req, const stk_agent_config *agent, const stk_sandbox_doc *doc,
                        stk_err *err)
{
    const char *set = agent->backend[0] ? agent->backend : doc->backend[0] ? doc->backend : "auto";
    bool named = strcmp(set, "auto") != 0;
    bool asked = req->backend[0] && strcmp(req->backend, "auto") != 0;
    if (named && asked && strcmp(set, req->backend) != 0)
        return stk_err_field(err, STK_E_FIELD, "/backend",
                             "the configuration of this agent names the backend %s", set);
    if (!asked)
        snprintf(req->backend, sizeof(req->backend), "%s", set);
    return 0;
}

static int take_timeout(const stk_gw_exchange *ex, stk_request *req, const stk_agent_config *agent,
                        stk_err *err)
{
    bool given = stk_jv_type(stk_jv_get(stk_json_root(ex->doc), "timeout_seconds")) != STK_J_NONE;
    if (req->timeout.ns <= agent->limits.timeout.ns)
        return 0;
    if (given)
        return stk_err_field(err, STK_E_FIELD, "/timeout_seconds", "over the limit of this agent, %g seconds",
                             stk_span_sec(agent->limits.timeout));
    req->timeout = agent->limits.timeout;
    return 0;
}

static int check(stk_gw_exchange *ex, stk_request *req, stk_err *err)
{
    const stk_agent_config *agent = NULL;
    const stk_sandbox_doc *doc = NULL;
    int rc = check_listed(ex, req, &agent, &doc, err);
    if (rc == 0)
        rc = take_backend(req, agent, doc, err);
    if (rc == 0)
        rc = take_timeout(ex, req, agent, err);
    if (rc == 0)
        req->config_version = stk_gw_view_version(ex->gw->view, ex->caller.tenant, STK_CONF_AGENT_SANDBOX);
    return rc;
}

/* --- the answer --- */

void stk_gw_answer_accepted(stk_gw_exchange *ex, const char *run, stk_run_state state)
{
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(4096);
    char location[96];
    stk_jw w;
    snprintf(location, sizeof(location), "Location: /v1/runs/%s\r\n", run);
    stk_jw_init(&w, &body);
    stk_jw_object(&w);
    stk_jw_ktext(&w, "id", run);
    stk_jw_ktext(&w, "state", stk_run_state_text(state));
    stk_jw_close(&w, '}');
    stk_gw_answer_json(ex, 202, location, &body);
}

static void answer_finished(stk_gw_exchange *ex, const stk_event *ev)
{
    static const char lacking[] = "backend_unavailable";
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(ANSWER_MAX);
    stk_err err = {0};
    stk_jw w;
    stk_reason reason = stk_reason_parse(ev->reason);
    if (reason == STK_REASON_REFUSED && strncmp(ev->detail, lacking, strlen(lacking)) == 0) {
        const char *why = ev->detail + strlen(lacking);
        stk_err_set(&err, STK_E_BACKEND, "%s", why + strspn(why, ": "));
        stk_gw_answer_problem(ex, &err, "", &(stk_gw_more){.run_id = ev->run});
        return;
    }
    stk_jw_init(&w, &body);
    stk_gw_result_write(ex, ev, &w);
    if (stk_jw_end(&w, &err) < 0)
        stk_gw_answer_err(ex, &err);
    else
        stk_gw_answer_json(ex, stk_reason_http(reason), "", &body);
}

static void on_result(stk_gw_exchange *ex, const stk_event *ev, const stk_err *err, void *arg)
{
    posting *p = arg;
    if (stk_gw_over(ex))
        return;
    if (ev)
        answer_finished(ex, ev);
    else
        stk_gw_answer_accepted(ex, p->run, STK_RUN_FINISHED);
}

static void on_waited(stk_gw_exchange *ex, const stk_run_row *row, stk_run_state seen, void *arg)
{
    posting *p = arg;
    if (row)
        stk_gw_result(ex, p->run, row, STORE_PATIENCE, on_result, p);
    else
        stk_gw_answer_accepted(ex, p->run, seen);
}

static void on_submitted(stk_gw_exchange *ex, const char *run, stk_run_state state, void *arg)
{
    posting *p = arg;
    snprintf(p->run, sizeof(p->run), "%s", run);
    if (p->wait.ns <= 0)
        stk_gw_answer_accepted(ex, run, state == STK_RUN_NONE ? STK_RUN_FINISHED : state);
    else if (state == STK_RUN_NONE)
        stk_gw_result(ex, run, NULL, STORE_PATIENCE, on_result, p);
    else
        stk_gw_wait(ex, run, p->wait, on_waited, p);
}

static void post(stk_gw_exchange *ex, stk_span wait)
{
    stk_request req = {0};
    stk_run_secret secret = {0};
    stk_err err = {0};
    stk_wall now = stk_wall_now();
    int rc = stk_gw_query_span(ex, "wait", ex->gw->spec.wait_most, &wait, &err);
    if (rc == 0)
        rc = stk_request_from_api(stk_json_root(ex->doc), false, now, &req, &secret, &err);
    if (rc < 0) {
        stk_gw_answer_err(ex, &err);
        return;
    }
    req.submitted = now;
    if (check(ex, &req, &err) < 0) {
        stk_gw_answer_err(ex, &err);
        stk_request_done(&req);
        stk_run_secret_done(&secret);
        return;
    }
    posting *p = stk_xcalloc(1, sizeof(*p));
    p->wait = wait;
    ex->work = p;
    ex->work_free = free;
    stk_gw_submit(ex, &req, &secret, on_submitted, p);
}

void stk_gw_run(stk_gw_exchange *ex)
{
    post(ex, ex->gw->spec.wait_default);
}

void stk_gw_runs_post(stk_gw_exchange *ex)
{
    post(ex, stk_ns(0));
}
