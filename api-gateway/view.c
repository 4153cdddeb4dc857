#include "api-gateway/view.h"
#include "proto/base/log.h"

typedef struct entry {
    stk_config_record rec;
    stk_sandbox_doc sandbox; /* of agent-sandbox */
    bool readable;
    stk_tokens_doc tokens; /* of tokens */
} entry;

struct stk_gw_view {
    stk_follow *follow;
    entry **v;
    size_t n;
    stk_gw_view_changed changed;
    void *arg;
};

static entry *find(const stk_gw_view *view, const char *tenant, const char *name)
{
    for (size_t i = 0; i < view->n; i++)
        if (strcmp(view->v[i]->rec.name, name) == 0 && strcmp(view->v[i]->rec.tenant, tenant) == 0)
            return view->v[i];
    return NULL;
}

static void entry_clear(entry *at)
{
    stk_config_record_done(&at->rec);
    stk_sandbox_doc_done(&at->sandbox);
    stk_tokens_done(&at->tokens);
    at->readable = false;
}

static void read_doc(entry *at)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    stk_err err;
    int rc = stk_json_parse(stk_bytes_view(&at->rec.doc), NULL, &doc, &err);
    if (rc == 0 && strcmp(at->rec.name, STK_CONF_AGENT_SANDBOX) == 0)
        rc = stk_sandbox_doc_decode(stk_json_root(doc), true, &at->sandbox, NULL, &err);
    else if (rc == 0 && strcmp(at->rec.name, STK_CONF_TOKENS) == 0)
        rc = stk_tokens_decode(stk_json_root(doc), &at->tokens, &err);
    at->readable = rc == 0;
    if (rc < 0)
        stk_log_err(STK_LOG_ERROR, NULL, &err, "version %lld of %s/%s can't be read",
                    (long long)at->rec.version, at->rec.tenant, at->rec.name);
}

static void on_change(stk_str key, stk_str value, bool caught_up, void *arg)
{
    stk_gw_view *view = arg;
    stk_config_record rec = {0};
    stk_err err;
    if (!value.p)
        return;
    if (stk_config_record_decode(value, &rec, &err) < 0) {
        stk_log_err(STK_LOG_ERROR, NULL, &err, "a configuration record can't be read");
        return;
    }
    entry *at = find(view, rec.tenant, rec.name);
    if (at && rec.version < at->rec.version) {
        stk_config_record_done(&rec);
        return;
    }
    if (!at) {
        at = stk_xcalloc(1, sizeof(*at));
        view->v = stk_xrealloc(view->v, (view->n + 1) * sizeof(entry *));
        view->v[view->n++] = at;
    }
    entry_clear(at);
    at->rec = rec;
    read_doc(at);
    view->changed(&at->rec, value, view->arg);
}

int stk_gw_view_new(stk_bus *bus, stk_gw_view_changed changed, void *arg, stk_gw_view **ret, stk_err *err)
{
    stk_gw_view *view = stk_xcalloc(1, sizeof(*view));
    *view = (stk_gw_view){.changed = changed, .arg = arg};
    int rc = stk_follow_new(bus, STK_TOPIC_CONFIG, on_change, view, &view->follow, err);
    if (rc < 0)
        free(view);
    else
        *ret = view;
    return rc;
}

void stk_gw_view_free(stk_gw_view *view)
{
    stk_follow_free(view->follow);
    for (size_t i = 0; i < view->n; i++) {
        entry_clear(view->v[i]);
        free(view->v[i]);
    }
    free(view->v);
    free(view);
}

bool stk_gw_view_ready(const stk_gw_view *view)
{
    return stk_follow_caught_up(view->follow) && !stk_follow_error(view->follow);
}

const stk_config_record *stk_gw_view_record(const stk_gw_view *view, const char *tenant, const char *name)
{
    const entry *at = find(view, tenant, name);
    return at ? &at->rec : NULL;
}

int64_t stk_gw_view_version(const stk_gw_view *view, const char *tenant, const char *name)
{
    const entry *at = find(view, tenant, name);
    return at ? at->rec.version : 0;
}

const stk_sandbox_doc *stk_gw_view_sandbox(const stk_gw_view *view, const char *tenant)
{
    const entry *at = find(view, tenant, STK_CONF_AGENT_SANDBOX);
    return at && at->readable ? &at->sandbox : NULL;
}

const stk_token *stk_gw_view_token(const stk_gw_view *view, const uint8_t hash[STK_SHA256], stk_wall now)
{
    const stk_token *found = NULL;
    for (size_t i = 0; i < view->n; i++) {
        const stk_token *one = stk_tokens_find(&view->v[i]->tokens, hash, now);
        /* A tenant's document speaks for that tenant alone. */
        if (one && strcmp(one->tenant, view->v[i]->rec.tenant) == 0)
            found = one;
    }
    return found;
}

bool stk_gw_view_has_tokens(const stk_gw_view *view)
{
    for (size_t i = 0; i < view->n; i++)
        if (view->v[i]->tokens.n)
            return true;
    return false;
}
