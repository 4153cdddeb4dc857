#include "proto/policy/set.h"
#include "proto/policy/weaken.h"
#include <stdio.h>

static int check_entries(const stk_strv *texts, const char *pointer, stk_err *err)
{
    stk_entries *set STK_AUTO(stk_entries_freep) = NULL;
    int rc = stk_entries_new(texts, &set, err);
    if (rc < 0)
        stk_err_prefix(err, pointer);
    return rc;
}

int stk_sandbox_doc_check(const stk_sandbox_doc *doc, stk_err *err)
{
    for (size_t i = 0; i < doc->nagents; i++) {
        const stk_agent_config *agent = &doc->agents[i];
        char at[192];
        stk_tls_mode mode;
        snprintf(at, sizeof(at), "/agents/%s/allow", agent->name);
        if (check_entries(&agent->allow, at, err) < 0)
            return -STK_E_FIELD;
        snprintf(at, sizeof(at), "/agents/%s/tls", agent->name);
        if (agent->tls[0] && stk_tls_mode_parse(agent->tls, &mode) < 0)
            return stk_err_field(err, STK_E_FIELD, at, "must be match, require or off");
    }
    return 0;
}

static int check_scope(const stk_org_scope *scope, const char *front, stk_err *err)
{
    char at[192];
    snprintf(at, sizeof(at), "%s/default", front);
    if (scope->def[0] && strcmp(scope->def, "allow") != 0 && strcmp(scope->def, "deny") != 0)
        return stk_err_field(err, STK_E_FIELD, at, "must be allow or deny");
    snprintf(at, sizeof(at), "%s/allow", front);
    if (check_entries(&scope->allow, at, err) < 0)
        return -STK_E_FIELD;
    snprintf(at, sizeof(at), "%s/deny", front);
    return check_entries(&scope->deny, at, err);
}

int stk_org_doc_check(const stk_org_doc *doc, stk_err *err)
{
    if (check_scope(&doc->all, "", err) < 0)
        return -STK_E_FIELD;
    for (size_t i = 0; i < doc->nagents; i++) {
        char front[160];
        snprintf(front, sizeof(front), "/agents/%s", doc->agents[i].agent);
        if (check_scope(&doc->agents[i], front, err) < 0)
            return -STK_E_FIELD;
    }
    return 0;
}

/* Entries in their canonical text. */
static int write_entries(stk_jw *w, const stk_strv *texts, stk_err *err)
{
    for (size_t i = 0; i < texts->n; i++) {
        stk_entry entry;
        char text[STK_NAME_MAX + 8];
        if (stk_entry_parse(stk_bytes_view(&texts->v[i]), &entry, err) < 0)
            return -STK_E_FIELD;
        stk_entry_text(&entry, text);
        stk_jw_text(w, text);
    }
    return 0;
}

static int write_list(stk_jw *w, const char *key, const stk_strv *all, const stk_strv *own, stk_err *err)
{
    stk_jw_key(w, key);
    stk_jw_array(w);
    if ((all && write_entries(w, all, err) < 0) || (own && write_entries(w, own, err) < 0))
        return -STK_E_FIELD;
    stk_jw_close(w, ']');
    return 0;
}

/* The scope for all and the agent's own are joined: both deny lists hold, both allow lists count, the nearer
 * default wins. */
static int write_org(stk_jw *w, const stk_org_doc *org, const char *agent, stk_err *err)
{
    const stk_org_scope *own = NULL;
    for (size_t i = 0; i < org->nagents; i++)
        if (strcmp(org->agents[i].agent, agent) == 0)
            own = &org->agents[i];
    bool listed = org->all.allow.n > 0 || (own && own->allow.n > 0);
    const char *def = own && own->def[0] ? own->def
                      : org->all.def[0]  ? org->all.def
                      : listed           ? "deny"
                                         : "allow";
    stk_jw_key(w, "organisation");
    stk_jw_object(w);
    stk_jw_ktext(w, "default", def);
    if (write_list(w, "allow", &org->all.allow, own ? &own->allow : NULL, err) < 0 ||
        write_list(w, "deny", &org->all.deny, own ? &own->deny : NULL, err) < 0)
        return -STK_E_FIELD;
    stk_jw_close(w, '}');
    return 0;
}

int stk_policy_document(const stk_agent_config *agent, const stk_org_doc *org, stk_str internal_json,
                        int64_t version, stk_buf *out, stk_err *err)
{
    stk_jw w;
    stk_jw_init(&w, out);
    stk_jw_object(&w);
    stk_jw_kint(&w, "version", version);
    if (write_list(&w, "allow", &agent->allow, NULL, err) < 0)
        return stk_err_wrap(err, "the list of %s", agent->name);
    if (org && write_org(&w, org, agent->name, err) < 0)
        return stk_err_wrap(err, "the organisation's policy");
    if (internal_json.n)
        stk_jw_kraw(&w, "internal", internal_json);
    stk_jw_ktext(&w, "tls", agent->tls[0] ? agent->tls : "match");
    stk_jw_close(&w, '}');
    return stk_jw_end(&w, err);
}
