#include "egress-proxy/explain.h"
#include "egress-proxy/own.h"
#include "egress-proxy/resolver.h"
#include "egress-proxy/standalone.h"

typedef struct answer {
    struct event_base *base;
    stk_reason reason;
    stk_sock addrs[STK_LOOKUP_ADDRS];
    size_t n;
} answer;

static void on_resolved(stk_reason reason, stk_sock *addrs, size_t n, void *arg)
{
    answer *got = arg;
    got->reason = reason;
    got->n = n;
    memcpy(got->addrs, addrs, n * sizeof(*addrs));
    event_base_loopbreak(got->base);
}

static int verdict(FILE *out, stk_reason reason)
{
    bool allow = reason == STK_R_ALLOWED;
    fprintf(out, "verdict    %s: %s (%s)\n", allow ? "allow" : "refuse", stk_reason_code(reason),
            stk_reason_text(reason));
    return allow ? 0 : 1;
}

static void show_addresses(FILE *out, const stk_policy *policy, const stk_target *target, stk_own_addrs own,
                           answer *got)
{
    for (size_t i = 0; i < got->n; i++) {
        char text[64];
        const char *class;
        bool ok = stk_decide_addresses(policy, target->host, target->port, own, &got->addrs[i], 1, &class) ==
                  STK_R_ALLOWED;
        stk_addr_text(&got->addrs[i].any, text);
        fprintf(out, "address    %s %s: %s\n", text, class, ok ? "may be dialled" : "refuses them all");
    }
}

static int explain_addresses(const stk_px_options *opt, const stk_policy *policy, const stk_target *target,
                             FILE *out, stk_err *err)
{
    answer got = {.base = event_base_new()};
    stk_own *own = NULL;
    int rc = stk_own_new(got.base, &own, err);
    if (rc < 0) {
        event_base_free(got.base);
        return rc;
    }
    stk_resolver *resolver = stk_resolver_new(got.base, &opt->servers);
    stk_lookup_new(resolver, target->host, on_resolved, &got);
    event_base_dispatch(got.base);
    const char *class;
    stk_reason reason = got.reason;
    if (reason == STK_R_ALLOWED) {
        show_addresses(out, policy, target, stk_own_view(own), &got);
        reason = stk_decide_addresses(policy, target->host, target->port, stk_own_view(own), got.addrs, got.n,
                                      &class);
    } else {
        fprintf(out, "address    none: %s\n", stk_reason_text(reason));
    }
    stk_resolver_free(resolver);
    stk_own_free(own);
    event_base_free(got.base);
    return verdict(out, reason);
}

int stk_explain(const stk_px_options *opt, FILE *out, stk_err *err)
{
    stk_buf json STK_AUTO(stk_buf_done) = STK_BUF((size_t)16 << 20);
    stk_policy *policy STK_AUTO(stk_policy_freep) = NULL;
    stk_target target;
    const stk_usage nothing = {0};
    int rc = stk_standalone_policy(opt->policy, &json, &policy, err);
    if (rc < 0)
        return stk_err_wrap(err, "%s%s%s", opt->policy, err->pointer[0] ? ": " : "", err->pointer);
    stk_reason reason = stk_target_hostport(stk_str_of(opt->explain), &target, err);
    if (reason != STK_R_ALLOWED) {
        fprintf(out, "target     %.300s: %s\n", opt->explain, err->detail);
        return verdict(out, reason);
    }
    fprintf(out, "target     %s port %u\n", target.host, target.port);
    stk_decision decision = stk_decide_name(policy, target.host, target.literal, target.port, &nothing);
    fprintf(out, "policy     version %lld: %s%s%s\n", (long long)stk_policy_version(policy),
            decision.reason == STK_R_ALLOWED ? "allowed" : "refused",
            decision.rule[0] ? " by " : ", no entry names it", decision.rule);
    if (decision.reason != STK_R_ALLOWED)
        return verdict(out, decision.reason);
    if (!opt->servers.n) {
        fprintf(out, "address    not asked: no --resolver\n");
        return verdict(out, STK_R_ALLOWED);
    }
    return explain_addresses(opt, policy, &target, out, err);
}
