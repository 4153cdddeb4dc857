#include "proto/policy/parts.h"

static const char *const tls_texts[] = {
    [STK_TLS_MATCH] = "match", [STK_TLS_REQUIRE] = "require", [STK_TLS_OFF] = "off"};

int stk_tls_mode_parse(const char *text, stk_tls_mode *ret)
{
    for (size_t i = 0; i < STK_COUNT(tls_texts); i++)
        if (strcmp(text, tls_texts[i]) == 0) {
            *ret = (stk_tls_mode)i;
            return 0;
        }
    return -STK_E_FIELD;
}

const char *stk_tls_mode_text(stk_tls_mode mode)
{
    return (unsigned)mode < STK_COUNT(tls_texts) ? tls_texts[mode] : "match";
}

int64_t stk_policy_version(const stk_policy *policy)
{
    return policy->version;
}

stk_tls_mode stk_policy_tls(const stk_policy *policy)
{
    return policy->tls;
}

const stk_policy_limits *stk_policy_limits_of(const stk_policy *policy)
{
    return &policy->limits;
}

bool stk__policy_org(const stk_policy *policy, const char *host, uint16_t port, const stk_entry **ret_rule)
{
    *ret_rule = stk__entries_find(policy->org_deny, host, port, STK_PORTLESS_ANY, NULL);
    if (*ret_rule)
        return false;
    if (!policy->org_deny_default)
        return true;
    *ret_rule = stk__entries_find(policy->org_allow, host, port, STK_PORTLESS_WEB, NULL);
    return *ret_rule != NULL;
}

static stk_verdict refuse(const char *reason, const stk_entry *rule)
{
    stk_verdict verdict = {.allow = false, .reason = reason};
    if (rule)
        stk_entry_text(rule, verdict.rule);
    return verdict;
}

stk_verdict stk_policy_judge(const stk_policy *policy, const char *host, uint16_t port)
{
    const stk_entry *named, *org_rule;
    const stk_entry *entry = stk__entries_find(policy->allow, host, port, STK_PORTLESS_WEB, &named);
    if (!entry)
        return refuse(named ? "port_not_allowed" : "host_not_allowed", named);
    if (!stk__policy_org(policy, host, port, &org_rule))
        return refuse("org_policy", org_rule);
    stk_verdict verdict = {.allow = true, .reason = "allowed"};
    stk_entry_text(entry, verdict.rule);
    return verdict;
}

static bool port_listed(const stk_internal *in, uint16_t port)
{
    for (size_t i = 0; i < in->nports; i++)
        if (in->ports[i] == port)
            return true;
    return in->nports == 0;
}

bool stk_policy_address_ok(const stk_policy *policy, const struct sockaddr *addr, const char *host,
                           uint16_t port, stk_addr_class *ret_class)
{
    *ret_class = stk_addr_classify(addr);
    if (*ret_class == STK_ADDR_PUBLIC)
        return true;
    if (stk_addr_never(*ret_class))
        return false;
    for (size_t i = 0; i < policy->ninternal; i++) {
        const stk_internal *in = &policy->internal[i];
        if (stk_cidr_has(&in->cidr, addr) && port_listed(in, port) &&
            stk__entries_find(in->hosts, host, port, STK_PORTLESS_ANY, NULL))
            return true;
    }
    return false;
}
