#include "proto/policy/parts.h"
#include <stdio.h>

static void narrowed(stk_effective *out, const char *by, const stk_entry *rule)
{
    char text[STK_NAME_MAX + 8] = "";
    if (rule)
        stk_entry_text(rule, text);
    snprintf(out->narrowed_by, sizeof(out->narrowed_by), "organisation %s%s%s", by, rule ? " " : "", text);
}

/* A name of its own is judged as it stands, port by port. */
static void judge_exact(const stk_policy *policy, const stk_entry *entry, stk_effective *out)
{
    const uint16_t web[] = {443, 80};
    size_t n = entry->port ? 1 : 2;
    for (size_t i = 0; i < n; i++) {
        const stk_entry *rule;
        if (stk__policy_org(policy, entry->name, entry->port ? entry->port : web[i], &rule))
            out->effective = true;
        else if (!out->narrowed_by[0])
            narrowed(out, rule ? "deny" : "default deny", rule);
    }
}

/* The rule names something below, or the same, and could meet one of the entry's ports. */
static bool overlaps(const stk_entry *rule, const stk_entry *entry, bool any_port)
{
    stk_entry wide = *entry, name = *rule;
    wide.port = name.port = 0;
    if (!stk_entry_covers(&wide, &name) && !stk_entry_covers(&name, &wide))
        return false;
    if (rule->port == entry->port || (any_port && !rule->port))
        return true;
    uint16_t a = rule->port ? rule->port : entry->port;
    return (!rule->port || !entry->port) && (a == 80 || a == 443);
}

static const stk_entry *first_overlap(const stk_entries *set, const stk_entry *entry, bool any_port)
{
    for (size_t i = 0; i < stk_entries_count(set); i++)
        if (overlaps(stk_entries_at(set, i), entry, any_port))
            return stk_entries_at(set, i);
    return NULL;
}

static void judge_wildcard(const stk_policy *policy, const stk_entry *entry, stk_effective *out)
{
    const stk_entry *deny = stk__entries_cover(policy->org_deny, entry, STK_PORTLESS_ANY);
    if (deny) {
        narrowed(out, "deny", deny);
        return;
    }
    deny = first_overlap(policy->org_deny, entry, true);
    out->effective = true;
    if (policy->org_deny_default && !stk__entries_cover(policy->org_allow, entry, STK_PORTLESS_WEB)) {
        const stk_entry *allow = first_overlap(policy->org_allow, entry, false);
        out->effective = allow != NULL;
        narrowed(out, allow ? "allows only" : "default deny", allow);
    } else if (deny) {
        narrowed(out, "deny", deny);
    }
}

int stk_policy_effective(const stk_policy *policy, stk_effective **ret_v, size_t *ret_n, stk_err *err)
{
    size_t n = stk_entries_count(policy->allow);
    stk_effective *v = stk_xcalloc(n, sizeof(*v));
    for (size_t i = 0; i < n; i++) {
        const stk_entry *entry = stk_entries_at(policy->allow, i);
        stk_entry_text(entry, v[i].entry);
        v[i].warn_public_suffix = stk_entry_over_public_suffix(entry);
        if (entry->wildcard)
            judge_wildcard(policy, entry, &v[i]);
        else
            judge_exact(policy, entry, &v[i]);
    }
    *ret_v = v;
    *ret_n = n;
    (void)err;
    return 0;
}
