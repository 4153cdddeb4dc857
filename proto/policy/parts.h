/* Inside of a policy, for policy.c, judge.c and effective.c. */
#ifndef STK_POLICY_PARTS_H
#define STK_POLICY_PARTS_H

#include "proto/policy/set.h"

#define STK_INTERNAL_MAX       256
#define STK_INTERNAL_PORTS_MAX 64

typedef struct stk_internal {
    stk_cidr cidr;
    stk_entries *hosts;
    uint16_t ports[STK_INTERNAL_PORTS_MAX]; /* none = whatever the allow-list lets through */
    size_t nports;
} stk_internal;

struct stk_policy {
    int64_t version;
    stk_tls_mode tls;
    stk_policy_limits limits;
    stk_entries *allow;
    bool org_deny_default;
    stk_entries *org_allow;
    stk_entries *org_deny;
    stk_internal *internal;
    size_t ninternal;
};

/* Step 4 alone: the organisation's verdict on a name. rule: the entry that decided, or NULL for its default.
 */
bool stk__policy_org(const stk_policy *policy, const char *host, uint16_t port, const stk_entry **ret_rule);

#endif
