#include "workers/view.h"
#include "proto/base/log.h"
#include "proto/policy/weaken.h"

struct stk_view {
    stk_follow *follow;
    stk_tenant_view **tenants;
    size_t n;
    bool ready;
    void (*changed)(const stk_tenant_view *tenant, void *arg);
    void *arg;
};

static stk_tenant_view *tenant_of(stk_view *view, const char *tenant)
{
    for (size_t i = 0; i < view->n; i++)
        if (strcmp(view->tenants[i]->tenant, tenant) == 0)
            return view->tenants[i];
    stk_tenant_view *one = stk_xcalloc(1, sizeof(*one));
    memcpy(one->tenant, tenant, strlen(tenant) + 1);
    view->tenants = stk_xrealloc(view->tenants, (view->n + 1) * sizeof(stk_tenant_view *));
    view->tenants[view->n++] = one;
    return one;
}

static int take_sandbox(stk_tenant_view *one, stk_jv doc, int64_t version, stk_err *err)
{
    stk_sandbox_doc fresh = {0};
    int rc = stk_sandbox_doc_decode(doc, true, &fresh, NULL, err);
    if (rc == 0)
        rc = stk_sandbox_doc_check(&fresh, err);
    stk_sandbox_doc_done(&one->sandbox);
    if (rc < 0)
        stk_sandbox_doc_done(&fresh);
    one->sandbox = rc < 0 ? (stk_sandbox_doc){0} : fresh;
    one->sandbox_version = version;
    return rc;
}

/* An organisation policy that can't be read must not widen anything: everything is denied until it can. */
static int take_org(stk_tenant_view *one, stk_jv doc, int64_t version, stk_err *err)
{
    stk_org_doc fresh = {0};
    int rc = stk_org_doc_decode(doc, &fresh, NULL, err);
    if (rc == 0)
        rc = stk_org_doc_check(&fresh, err);
    if (rc < 0) {
        stk_org_doc_done(&fresh);
        fresh = (stk_org_doc){.all = {.def = "deny"}};
    }
    stk_org_doc_done(&one->org);
    one->org = fresh;
    one->org_version = version;
    return rc;
}

static int take_pools(stk_tenant_view *one, stk_jv doc, int64_t version, stk_err *err)
{
    stk_pools_doc fresh = {0};
    int rc = stk_pools_doc_decode(doc, &fresh, err);
    stk_pools_doc_done(&one->pools);
    if (rc < 0)
        stk_pools_doc_done(&fresh);
    one->pools = rc < 0 ? (stk_pools_doc){0} : fresh;
    one->pools_version = version;
    return rc;
}

/* NULL when the record is none of ours, or can't be read at all. */
static stk_tenant_view *take(stk_view *view, stk_str value, stk_err *err)
{
    stk_config_record rec = {0};
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    stk_tenant_view *one = NULL;
    int rc = stk_config_record_decode(value, &rec, err);
    if (rc == 0)
        rc = stk_json_parse(stk_bytes_view(&rec.doc), NULL, &doc, err);
    if (rc == 0) {
        one = tenant_of(view, rec.tenant);
        if (strcmp(rec.name, STK_CONF_AGENT_SANDBOX) == 0)
            rc = take_sandbox(one, stk_json_root(doc), rec.version, err);
        else if (strcmp(rec.name, STK_CONF_EGRESS_POLICY) == 0)
            rc = take_org(one, stk_json_root(doc), rec.version, err);
        else if (strcmp(rec.name, STK_CONF_POOLS) == 0)
            rc = take_pools(one, stk_json_root(doc), rec.version, err);
        else
            one = NULL;
    }
    if (rc < 0)
        stk_log_err(STK_LOG_ERROR, NULL, err, "configuration %s/%s can't be used", rec.tenant, rec.name);
    stk_config_record_done(&rec);
    return one;
}

static void on_change(stk_str key, stk_str value, bool caught_up, void *arg)
{
    stk_view *view = arg;
    stk_err err;
    stk_tenant_view *one = value.p ? take(view, value, &err) : NULL;
    view->ready = view->ready || caught_up;
    if (view->ready)
        view->changed(one, view->arg);
}

int stk_view_new(stk_bus *bus, void (*changed)(const stk_tenant_view *tenant, void *arg), void *arg,
                 stk_view **ret, stk_err *err)
{
    stk_view *view = stk_xcalloc(1, sizeof(*view));
    view->changed = changed;
    view->arg = arg;
    int rc = stk_follow_new(bus, STK_TOPIC_CONFIG, on_change, view, &view->follow, err);
    if (rc < 0) {
        free(view);
        return rc;
    }
    *ret = view;
    return 0;
}

bool stk_view_ready(const stk_view *view)
{
    return stk_follow_caught_up(view->follow);
}

const stk_tenant_view *stk_view_tenant(const stk_view *view, const char *tenant)
{
    for (size_t i = 0; i < view->n; i++)
        if (strcmp(view->tenants[i]->tenant, tenant) == 0)
            return view->tenants[i];
    return NULL;
}

int64_t stk_view_version(const stk_view *view, const char *tenant)
{
    const stk_tenant_view *one = stk_view_tenant(view, tenant);
    return one ? one->sandbox_version : 0;
}

size_t stk_view_count(const stk_view *view)
{
    return view->n;
}

const stk_tenant_view *stk_view_at(const stk_view *view, size_t i)
{
    return view->tenants[i];
}

const stk_agent_config *stk_view_agent(const stk_view *view, const char *tenant, const char *agent,
                                       stk_err *err)
{
    const stk_tenant_view *one = stk_view_tenant(view, tenant);
    const stk_agent_config *found = one ? stk_sandbox_doc_agent(&one->sandbox, stk_str_of(agent)) : NULL;
    if (!one || !one->sandbox.enabled)
        stk_err_set(err, STK_E_NOT_SANDBOXED, "sandboxing is off for tenant %s", tenant);
    else if (!found)
        stk_err_set(err, STK_E_NOT_SANDBOXED, "agent %s is not listed", agent);
    return one && one->sandbox.enabled ? found : NULL;
}

void stk_view_free(stk_view *view)
{
    stk_follow_free(view->follow);
    for (size_t i = 0; i < view->n; i++) {
        stk_sandbox_doc_done(&view->tenants[i]->sandbox);
        stk_org_doc_done(&view->tenants[i]->org);
        stk_pools_doc_done(&view->tenants[i]->pools);
        free(view->tenants[i]);
    }
    free(view->tenants);
    free(view);
}
