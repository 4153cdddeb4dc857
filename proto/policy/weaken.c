#include "proto/policy/set.h"
#include "proto/policy/weaken.h"
#include <stdarg.h>
#include <stdio.h>

void stk_weakenings_done(stk_weakenings *list)
{
    free(list->v);
    *list = (stk_weakenings){.v = NULL};
}

void stk_weakenings_write(stk_jw *w, const stk_weakenings *list)
{
    stk_jw_array(w);
    for (size_t i = 0; i < list->n; i++) {
        stk_jw_object(w);
        stk_jw_ktext(w, "pointer", list->v[i].pointer);
        stk_jw_ktext(w, "what", list->v[i].what);
        stk_jw_close(w, '}');
    }
    stk_jw_close(w, ']');
}

static void STK_PRINTF(3, 4) add(stk_weakenings *list, const char *pointer, const char *fmt, ...)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i].pointer, pointer) == 0)
            return;
    if ((list->n & (list->n - 1)) == 0)
        list->v = stk_xrealloc(list->v, (list->n ? list->n * 2 : 1) * sizeof(*list->v));
    stk_weakening *one = &list->v[list->n++];
    snprintf(one->pointer, sizeof(one->pointer), "%s", pointer);
    va_list args;
    va_start(args, fmt);
    vsnprintf(one->what, sizeof(one->what), fmt, args);
    va_end(args);
}

/* Documents that were accepted compile; an empty set stands for whatever does not, so that nothing counts as
 * covered by it. */
static stk_entries *compiled(const stk_strv *texts)
{
    stk_entries *set = NULL;
    const stk_strv none = {.v = NULL};
    if ((!texts || stk_entries_new(texts, &set, NULL) < 0) && stk_entries_new(&none, &set, NULL) < 0)
        abort();
    return set;
}

/* Each entry of `now` that no set covers. */
static void added_entries(const stk_strv *now, const stk_entries *const *before, size_t nbefore,
                          const char *pointer, const char *whose, stk_weakenings *ret)
{
    for (size_t i = 0; i < now->n; i++) {
        stk_entry entry;
        bool known = false;
        if (stk_entry_parse(stk_bytes_view(&now->v[i]), &entry, NULL) < 0)
            continue;
        for (size_t k = 0; k < nbefore && !known; k++)
            known = stk__entries_cover(before[k], &entry, STK_PORTLESS_WEB);
        if (known)
            continue;
        char at[256], text[STK_NAME_MAX + 8];
        snprintf(at, sizeof(at), "%s/%zu", pointer, i);
        stk_entry_text(&entry, text);
        add(ret, at, "%s may reach %s, which it could not before", whose, text);
    }
}

/* --- the sandbox document --- */

typedef enum strength { ANY_NAMED, RUNTIME_CLASS, STRONGEST_THERE_IS, MICROVM } strength;

/* auto takes the strongest backend that the workers have, so that naming a lesser one gives that up; k8s
 * counts as more than a plain container while a runtime class is required. */
static strength strength_of(const char *backend, bool runtime_class)
{
    if (strcmp(backend, "firecracker") == 0)
        return MICROVM;
    if (!backend[0] || strcmp(backend, "auto") == 0)
        return STRONGEST_THERE_IS;
    return strcmp(backend, "k8s") == 0 && runtime_class ? RUNTIME_CLASS : ANY_NAMED;
}

static const char *backend_of(const stk_sandbox_doc *doc, const stk_agent_config *agent)
{
    const char *backend = agent->backend[0] ? agent->backend : doc->backend;
    return backend[0] ? backend : "auto";
}

static void weaker_backend(const stk_sandbox_doc *before, const stk_agent_config *was,
                           const stk_sandbox_doc *after, const stk_agent_config *now, stk_weakenings *ret)
{
    const char *old = backend_of(before, was), *new = backend_of(after, now);
    if (strength_of(new, after->require_runtime_class) >= strength_of(old, before->require_runtime_class))
        return;
    char at[256] = "/backend";
    if (now->backend[0])
        snprintf(at, sizeof(at), "/agents/%s/backend", now->name);
    add(ret, at, "%s runs on %s, where it was %s",
        now->backend[0] ? now->name : "every agent without a backend of its own", new, old);
}

static void weaker_tls(const stk_agent_config *was, const stk_agent_config *now, stk_weakenings *ret)
{
    static const int rank[] = {[STK_TLS_OFF] = 0, [STK_TLS_MATCH] = 1, [STK_TLS_REQUIRE] = 2};
    stk_tls_mode old = STK_TLS_MATCH, new = STK_TLS_MATCH;
    if (was && was->tls[0] && stk_tls_mode_parse(was->tls, &old) < 0)
        old = STK_TLS_REQUIRE;
    if (now->tls[0] && stk_tls_mode_parse(now->tls, &new) < 0)
        new = STK_TLS_OFF;
    char at[256];
    snprintf(at, sizeof(at), "/agents/%s/tls", now->name);
    if (rank[new] < rank[old])
        add(ret, at, "the TLS check of %s is %s, where it was %s", now->name, stk_tls_mode_text(new),
            stk_tls_mode_text(old));
}

static void raised_limits(const stk_agent_config *was, const stk_agent_config *now, stk_weakenings *ret)
{
    const stk_agent_limits *a = &was->limits, *b = &now->limits;
    const struct {
        const char *name;
        int64_t old, new;
    } rows[] = {
        {"memory_bytes", a->memory_bytes, b->memory_bytes},
        {"cpu_millis", a->cpu_millis, b->cpu_millis},
        {"pids", a->pids, b->pids},
        {"open_files", a->open_files, b->open_files},
        {"workspace_bytes", a->workspace_bytes, b->workspace_bytes},
        {"tmp_bytes", a->tmp_bytes, b->tmp_bytes},
        {"file_bytes", a->file_bytes, b->file_bytes},
        {"timeout_seconds", a->timeout.ns / 1000000000, b->timeout.ns / 1000000000},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        char at[256];
        snprintf(at, sizeof(at), "/agents/%s/limits/%s", now->name, rows[i].name);
        bool timeout = i == STK_COUNT(rows) - 1;
        if (timeout ? b->timeout.ns > a->timeout.ns : rows[i].new > rows[i].old)
            add(ret, at, "%s of %s is raised from %lld to %lld", rows[i].name, now->name,
                (long long)rows[i].old, (long long)rows[i].new);
    }
}

static void weaken_agent(const stk_sandbox_doc *before, const stk_sandbox_doc *after,
                         const stk_agent_config *now, stk_weakenings *ret)
{
    const stk_agent_config *was = before ? stk_sandbox_doc_agent(before, stk_str_of(now->name)) : NULL;
    stk_entries *old STK_AUTO(stk_entries_freep) = compiled(was ? &was->allow : NULL);
    const stk_entries *sets[] = {old};
    char at[256];
    snprintf(at, sizeof(at), "/agents/%s/allow", now->name);
    added_entries(&now->allow, sets, 1, at, now->name, ret);
    weaker_tls(was, now, ret);
    if (!was)
        return;
    weaker_backend(before, was, after, now, ret);
    raised_limits(was, now, ret);
}

void stk_weaken_sandbox(const stk_sandbox_doc *before, const stk_sandbox_doc *after, stk_weakenings *ret)
{
    *ret = (stk_weakenings){.v = NULL};
    if (before && before->enabled && !after->enabled)
        add(ret, "/enabled", "the feature is turned off: every agent runs unsandboxed");
    if (before && before->require_runtime_class && !after->require_runtime_class)
        add(ret, "/require_runtime_class", "a runtime class is no longer required");
    for (size_t i = 0; before && i < before->nagents; i++) {
        char at[256];
        snprintf(at, sizeof(at), "/agents/%s", before->agents[i].name);
        if (!stk_sandbox_doc_agent(after, stk_str_of(before->agents[i].name)))
            add(ret, at, "%s is taken off the list: it runs unsandboxed", before->agents[i].name);
    }
    for (size_t i = 0; i < after->nagents; i++)
        weaken_agent(before, after, &after->agents[i], ret);
}

/* --- the organisation's policy --- */

static const stk_org_scope *scope_of(const stk_org_doc *doc, const char *agent)
{
    for (size_t i = 0; i < doc->nagents; i++)
        if (strcmp(doc->agents[i].agent, agent) == 0)
            return &doc->agents[i];
    return NULL;
}

/* As stk_policy_document joins them. */
static bool denies_by_default(const stk_org_doc *doc, const stk_org_scope *scope)
{
    if (scope && scope->def[0])
        return strcmp(scope->def, "deny") == 0;
    if (doc->all.def[0])
        return strcmp(doc->all.def, "deny") == 0;
    return doc->all.allow.n > 0 || (scope && scope->allow.n > 0);
}

/* An entry that an agent's list could hold and that neither of the new deny lists refuses any more. */
static void removed_denials(const stk_strv *was, const stk_entries *const *now, size_t nnow,
                            const char *pointer, stk_weakenings *ret)
{
    for (size_t i = 0; i < was->n; i++) {
        stk_entry entry;
        bool kept = false;
        if (stk_entry_parse(stk_bytes_view(&was->v[i]), &entry, NULL) < 0)
            continue;
        for (size_t k = 0; k < nnow && !kept; k++)
            kept = stk__entries_cover(now[k], &entry, STK_PORTLESS_ANY);
        if (!kept) {
            char text[STK_NAME_MAX + 8];
            stk_entry_text(&entry, text);
            add(ret, pointer, "%s is no longer denied", text);
        }
    }
}

static void weaken_scope(const stk_org_doc *before, const stk_org_doc *after, const char *agent,
                         bool wide_open, stk_weakenings *ret)
{
    const stk_org_scope *was = scope_of(before, agent), *now = scope_of(after, agent);
    bool denied = denies_by_default(before, was);
    char at[256];
    snprintf(at, sizeof(at), "/agents/%s/default", agent);
    if (denied && !denies_by_default(after, now) && !wide_open)
        add(ret, at, "%s may reach whatever is not denied, where only listed hosts were", agent);
    stk_entries *old_all STK_AUTO(stk_entries_freep) = compiled(&before->all.allow);
    stk_entries *old STK_AUTO(stk_entries_freep) = compiled(was ? &was->allow : NULL);
    const stk_entries *allowed[] = {old_all, old};
    snprintf(at, sizeof(at), "/agents/%s/allow", agent);
    if (denied && now)
        added_entries(&now->allow, allowed, 2, at, agent, ret);
    stk_entries *new_all STK_AUTO(stk_entries_freep) = compiled(&after->all.deny);
    stk_entries *new STK_AUTO(stk_entries_freep) = compiled(now ? &now->deny : NULL);
    const stk_entries *refused[] = {new_all, new};
    snprintf(at, sizeof(at), "/agents/%s/deny", agent);
    if (was)
        removed_denials(&was->deny, refused, 2, at, ret);
}

static bool any_denies(const stk_org_doc *doc)
{
    bool any = denies_by_default(doc, NULL);
    for (size_t i = 0; i < doc->nagents; i++)
        any |= denies_by_default(doc, &doc->agents[i]);
    return any;
}

void stk_weaken_org(const stk_org_doc *before, const stk_org_doc *after, stk_weakenings *ret)
{
    *ret = (stk_weakenings){.v = NULL};
    if (!before) /* nothing was narrowed */
        return;
    bool wide_open = denies_by_default(before, NULL) && !denies_by_default(after, NULL);
    if (wide_open)
        add(ret, "/default", "whatever is not denied may be reached, where only listed hosts were");
    stk_entries *old STK_AUTO(stk_entries_freep) = compiled(&before->all.allow);
    const stk_entries *allowed[] = {old};
    if (any_denies(before))
        added_entries(&after->all.allow, allowed, 1, "/allow", "every agent that lists it", ret);
    stk_entries *new STK_AUTO(stk_entries_freep) = compiled(&after->all.deny);
    const stk_entries *refused[] = {new};
    removed_denials(&before->all.deny, refused, 1, "/deny", ret);
    for (size_t i = 0; i < before->nagents; i++)
        weaken_scope(before, after, before->agents[i].agent, wide_open, ret);
    for (size_t i = 0; i < after->nagents; i++)
        if (!scope_of(before, after->agents[i].agent))
            weaken_scope(before, after, after->agents[i].agent, wide_open, ret);
}
