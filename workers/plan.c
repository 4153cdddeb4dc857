#include "workers/plan.h"
#include "proto/base/log.h"
#include "proto/message/request.h"
#include "proto/policy/weaken.h"
#include <stdio.h>

#define PLAN_MAX   ((size_t)512 << 10)
#define VIEW_PAUSE stk_ms(2)

/* Everything a plan speaks of, gathered before anything is written. */
typedef struct plan {
    stk_ctx *ctx;
    stk_request req;
    stk_run_secret secret;
    const stk_tenant_view *tenant;
    const stk_agent_config *agent; /* NULL: not listed */
    stk_agent_config unlisted;
    stk_worker_backend *chosen; /* NULL: none */
    const char *asked;          /* backend */
    char refusal[300];          /* why a run would be refused, or "" */
} plan;

static void choose_backend(plan *p)
{
    for (size_t i = 0; i < p->ctx->nbackends; i++) {
        stk_worker_backend *one = &p->ctx->backends[i];
        bool fits = strcmp(p->asked, "auto") == 0 || strcmp(p->asked, one->be->ops->name) == 0;
        bool weak = p->tenant && p->tenant->sandbox.require_runtime_class &&
                    one->probe.strength < STK_STRENGTH_GVISOR;
        if (fits && one->probe.ok && !weak && (!p->chosen || one->probe.strength > p->chosen->probe.strength))
            p->chosen = one;
        else if (fits && one->probe.ok && weak)
            snprintf(p->refusal, sizeof(p->refusal),
                     "backend_unavailable: require_runtime_class asks for gVisor or stronger");
        else if (fits && !one->probe.ok)
            snprintf(p->refusal, sizeof(p->refusal), "backend_unavailable: %s: %.200s", one->be->ops->name,
                     one->probe.reason);
    }
    if (!p->chosen && !*p->refusal)
        snprintf(p->refusal, sizeof(p->refusal), "backend_unavailable: no worker has the backend %s",
                 p->asked);
    if (p->chosen)
        p->refusal[0] = '\0';
}

static int gather(plan *p, const stk_assignment *asg, stk_err *err)
{
    int rc = stk_request_decode(stk_bytes_view(&asg->request), &p->req, err);
    if (rc == 0)
        rc = stk_request_open(&p->req, p->ctx->ring, &p->secret, err);
    if (rc < 0)
        return rc;
    p->tenant = stk_view_tenant(p->ctx->view, p->req.tenant);
    p->agent = p->tenant ? stk_sandbox_doc_agent(&p->tenant->sandbox, stk_str_of(p->req.agent)) : NULL;
    stk_agent_limits_default(&p->unlisted.limits);
    memcpy(p->unlisted.name, p->req.agent, sizeof(p->unlisted.name));
    p->asked = *p->req.backend                            ? p->req.backend
               : p->agent && *p->agent->backend           ? p->agent->backend
               : p->tenant && *p->tenant->sandbox.backend ? p->tenant->sandbox.backend
                                                          : "auto";
    choose_backend(p);
    return 0;
}

static const stk_agent_config *agent_of(const plan *p)
{
    return p->agent ? p->agent : &p->unlisted;
}

static void write_others(const plan *p, stk_jw *w)
{
    static const char *const known[] = {"firecracker", "k8s", "oci", "docker"};
    stk_jw_key(w, "other_backends");
    stk_jw_array(w);
    for (size_t k = 0; k < STK_COUNT(known); k++) {
        const stk_worker_backend *one = stk_ctx_backend(p->ctx, known[k]);
        if (one && one == p->chosen)
            continue;
        stk_jw_object(w);
        stk_jw_ktext(w, "backend", known[k]);
        if (!one)
            stk_jw_ktext(w, "why_not", "this worker was built without it");
        else if (!one->probe.ok)
            stk_jw_ktext(w, "why_not", one->probe.reason);
        else
            stk_jw_ktext(w, "why_not",
                         strcmp(p->asked, "auto") == 0 ? "a stronger or preferred one was chosen"
                                                       : "another was asked for");
        if (one && !one->probe.ok)
            stk_jw_ktext(w, "remedy", one->probe.remedy);
        stk_jw_close(w, '}');
    }
    stk_jw_close(w, ']');
}

static void write_limits(const stk_agent_limits *limits, stk_jw *w)
{
    stk_jw_key(w, "limits");
    stk_jw_object(w);
    stk_jw_kint(w, "memory_bytes", limits->memory_bytes);
    stk_jw_kint(w, "cpu_millis", limits->cpu_millis);
    stk_jw_kint(w, "pids", limits->pids);
    stk_jw_kint(w, "open_files", limits->open_files);
    stk_jw_kint(w, "workspace_bytes", limits->workspace_bytes);
    stk_jw_kint(w, "tmp_bytes", limits->tmp_bytes);
    stk_jw_kint(w, "file_bytes", limits->file_bytes);
    stk_jw_kdouble(w, "timeout_seconds", stk_span_sec(limits->timeout));
    stk_jw_close(w, '}');
}

/* Entry by entry: who allows it, who narrows it. */
static int write_allow(const plan *p, stk_str policy_text, stk_jw *w, bool *ret_warn, stk_err *err)
{
    stk_policy *policy STK_AUTO(stk_policy_freep) = NULL;
    stk_effective *list STK_AUTO(stk_freep) = NULL;
    size_t n = 0;
    int rc = stk_policy_parse_text(policy_text, &policy, err);
    if (rc == 0)
        rc = stk_policy_effective(policy, &list, &n, err);
    stk_jw_key(w, "allow");
    stk_jw_array(w);
    for (size_t i = 0; rc == 0 && i < n; i++) {
        stk_jw_object(w);
        stk_jw_ktext(w, "entry", list[i].entry);
        stk_jw_ktext(w, "allowed_by", "agents/allow");
        stk_jw_kbool(w, "effective", list[i].effective);
        if (*list[i].narrowed_by)
            stk_jw_ktext(w, "narrowed_by", list[i].narrowed_by);
        stk_jw_close(w, '}');
        *ret_warn = *ret_warn || list[i].warn_public_suffix;
    }
    stk_jw_close(w, ']');
    return rc;
}

static int write_objects(const plan *p, stk_str policy_text, stk_jw *w, stk_err *err)
{
    stk_sandbox_spec spec = {.limits = agent_of(p)->limits, .max_concurrent = 1};
    cJSON *objects STK_AUTO(stk_tree_freep) = NULL;
    if (!p->chosen) {
        stk_jw_key(w, "objects");
        stk_jw_null(w);
        return 0;
    }
    spec.require_runtime_class = p->tenant && p->tenant->sandbox.require_runtime_class;
    snprintf(spec.id, sizeof(spec.id), "sbx-%026d", 0);
    snprintf(spec.run, sizeof(spec.run), "run-%026d", 0);
    memcpy(spec.tenant, p->req.tenant, sizeof(spec.tenant));
    memcpy(spec.agent, p->req.agent, sizeof(spec.agent));
    memcpy(spec.image, *p->req.image ? p->req.image : agent_of(p)->image, sizeof(spec.image));
    int rc = p->chosen->be->ops->plan(p->chosen->be, &spec, &objects, err);
    if (rc < 0)
        return rc;
    stk_jw_key(w, "objects");
    stk_jw_object(w);
    for (cJSON *child = objects->child; child; child = child->next) {
        stk_jw_key(w, child->string);
        stk_tree_write(w, child, false);
    }
    stk_jw_kraw(w, "egress_policy", policy_text);
    stk_jw_close(w, '}');
    return 0;
}

static void write_refusals(const plan *p, stk_jw *w)
{
    stk_jw_key(w, "would_refuse");
    stk_jw_array(w);
    if (!p->tenant || !p->tenant->sandbox.enabled)
        stk_jw_text(w, "not_sandboxed: the feature is off");
    if (!p->agent)
        stk_jw_text(w, "not_sandboxed: this agent is not listed");
    if (*p->refusal)
        stk_jw_text(w, p->refusal);
    stk_jw_close(w, ']');
}

static void write_warnings(const plan *p, bool wide, stk_jw *w)
{
    stk_jw_key(w, "warnings");
    stk_jw_array(w);
    if (wide)
        stk_jw_text(
            w, "an allow entry is a wildcard over a public suffix: it allows names of everybody below it");
    if (p->agent && p->agent->allow.n == 0)
        stk_jw_text(w, "the allow-list is empty: every connection will be refused");
    if (p->chosen && *p->chosen->probe.notes)
        stk_jw_text(w, p->chosen->probe.notes);
    stk_jw_close(w, ']');
}

static int write_plan(const plan *p, stk_buf *out, stk_err *err)
{
    static const stk_org_doc no_org;
    stk_buf policy STK_AUTO(stk_buf_done) = STK_BUF(STK_CONTROL_LINE_MAX);
    int64_t version = p->tenant ? p->tenant->sandbox_version + p->tenant->org_version : 0;
    int rc = stk_policy_document(agent_of(p), p->tenant ? &p->tenant->org : &no_org,
                                 stk_bytes_view(&p->ctx->internal), version > 0 ? version : 1, &policy, err);
    if (rc < 0)
        return rc;
    bool wide = false;
    stk_jw w;
    stk_jw_init(&w, out);
    stk_jw_object(&w);
    stk_jw_ktext(&w, "agent", p->req.agent);
    stk_jw_ktext(&w, "worker", p->ctx->worker);
    stk_jw_ktext(&w, "backend", p->chosen ? p->chosen->be->ops->name : NULL);
    stk_jw_ktext(&w, "asked_backend", p->asked);
    stk_jw_ktext(&w, "isolation", p->chosen ? stk_strength_text(p->chosen->probe.strength) : NULL);
    stk_jw_ktext(&w, "runtime_class",
                 p->chosen && p->chosen->probe.strength == STK_STRENGTH_GVISOR ? "gvisor" : NULL);
    stk_jw_ktext(&w, "runtime", p->chosen ? p->chosen->probe.runtime : NULL);
    stk_jw_ktext(&w, "image", *agent_of(p)->image ? agent_of(p)->image : "host /usr, read-only");
    write_limits(&agent_of(p)->limits, &w);
    rc = write_allow(p, stk_buf_view(&policy), &w, &wide, err);
    if (rc == 0) {
        write_refusals(p, &w);
        write_warnings(p, wide, &w);
        write_others(p, &w);
        rc = write_objects(p, stk_buf_view(&policy), &w, err);
    }
    stk_jw_close(&w, '}');
    return rc < 0 ? rc : stk_jw_end(&w, err);
}

typedef struct answering {
    stk_fn done;
    void *arg;
} answering;

static void on_finished(stk_op *op, void *arg)
{
    answering *a = arg;
    stk_fn done = a->done;
    void *done_arg = a->arg;
    if (op->rc < 0)
        stk_log_err(STK_LOG_WARN, NULL, &op->err, "a plan was not delivered");
    free(a);
    done(done_arg);
}

static void deliver(stk_ctx *ctx, const stk_assignment *asg, const char *tenant, stk_str text, stk_fn done,
                    void *arg)
{
    answering *a = stk_xcalloc(1, sizeof(*a));
    *a = (answering){.done = done, .arg = arg};
    stk_op_finish *op = stk_op_new(STK_OP_FINISH, on_finished, a);
    memcpy(op->in.run, asg->run, sizeof(op->in.run));
    snprintf(op->in.tenant, sizeof(op->in.tenant), "%s", tenant);
    memcpy(op->in.assignment, asg->assignment, sizeof(op->in.assignment));
    snprintf(op->in.reason, sizeof(op->in.reason), "%s", stk_reason_text(STK_REASON_EXITED));
    op->in.now = stk_wall_now();
    op->in.plan = true;
    stk_bytes_set(&op->in.result, text);
    stk_state_call(ctx->state, op);
}

static void answer(stk_ctx *ctx, const stk_assignment *asg, stk_fn done, void *arg)
{
    plan p = {.ctx = ctx};
    stk_err err;
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(PLAN_MAX);
    int rc = gather(&p, asg, &err);
    if (rc == 0)
        rc = write_plan(&p, &text, &err);
    if (rc < 0) {
        stk_jw w;
        stk_buf_reset(&text);
        stk_jw_init(&w, &text);
        stk_jw_object(&w);
        stk_jw_ktext(&w, "error", err.detail);
        stk_jw_close(&w, '}');
    }
    deliver(ctx, asg, p.req.tenant, stk_buf_view(&text), done, arg);
    stk_run_secret_done(&p.secret);
    stk_request_done(&p.req);
}

/* --- a configuration that is not here yet --- */

typedef struct waiting {
    stk_ctx *ctx;
    stk_assignment asg;
    char tenant[STK_TENANT_MAX];
    int64_t version;
    stk_mono until;
    stk_timer *timer;
    stk_fn done;
    void *arg;
} waiting;

static void look(void *arg)
{
    waiting *wait = arg;
    if (stk_view_version(wait->ctx->view, wait->tenant) < wait->version &&
        stk_mono_before(stk_mono_now(), wait->until)) {
        stk_timer_set(wait->timer, VIEW_PAUSE);
        return;
    }
    answer(wait->ctx, &wait->asg, wait->done, wait->arg);
    stk_timer_free(wait->timer);
    stk_assignment_done(&wait->asg);
    free(wait);
}

void stk_plan_answer(stk_ctx *ctx, stk_assignment *asg, stk_fn done, void *arg)
{
    stk_request req STK_AUTO(stk_request_done) = {0};
    stk_err ignored;
    if (stk_request_decode(stk_bytes_view(&asg->request), &req, &ignored) < 0 ||
        stk_view_version(ctx->view, req.tenant) >= req.config_version) {
        answer(ctx, asg, done, arg);
        return;
    }
    waiting *wait = stk_xcalloc(1, sizeof(*wait));
    *wait = (waiting){.ctx = ctx, .asg = *asg, .version = req.config_version, .done = done, .arg = arg};
    *asg = (stk_assignment){0};
    memcpy(wait->tenant, req.tenant, sizeof(wait->tenant));
    wait->until = stk_mono_add(stk_mono_now(), STK_VIEW_LIMIT);
    wait->timer = stk_timer_new(ctx->loop, look, wait);
    stk_timer_set(wait->timer, VIEW_PAUSE);
}
