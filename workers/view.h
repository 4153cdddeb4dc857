/* What stk.config says now, decoded: per tenant the agent-sandbox document, the organisation's egress policy
 * and the pools. A worker acts only on this. A document that does not decode is kept out (its tenant counts
 * as switched off) and reported. */
#ifndef STK_WORKERS_VIEW_H
#define STK_WORKERS_VIEW_H

#include "proto/bus/follow.h"
#include "proto/message/config.h"

typedef struct stk_view stk_view;

typedef struct stk_tenant_view {
    char tenant[STK_TENANT_MAX];
    stk_sandbox_doc sandbox;
    stk_org_doc org;
    stk_pools_doc pools;
    int64_t sandbox_version, org_version, pools_version; /* 0 = never set */
} stk_tenant_view;

/* changed runs after each change once the topic was read to its end, and once when it was. tenant: whose
 * documents changed. */
int stk_view_new(stk_bus *bus, void (*changed)(const stk_tenant_view *tenant, void *arg), void *arg,
                 stk_view **ret, stk_err *err) STK_MUST_USE;
bool stk_view_ready(const stk_view *view);
/* NULL: nothing was ever set for this tenant. Valid until the next change. */
const stk_tenant_view *stk_view_tenant(const stk_view *view, const char *tenant);
/* Version of the tenant's agent-sandbox document; 0 = none was seen. */
int64_t stk_view_version(const stk_view *view, const char *tenant);
/* How long one waits for a version that a request names and that is not here yet. */
#define STK_VIEW_LIMIT stk_sec(5)
size_t stk_view_count(const stk_view *view);
const stk_tenant_view *stk_view_at(const stk_view *view, size_t i);
void stk_view_free(stk_view *view);
STK_DEFINE_FREEP(stk_view, stk_view_freep, stk_view_free)

/* The agent's entry if the feature is on and it is listed, else NULL with why (-STK_E_NOT_SANDBOXED in err).
 */
const stk_agent_config *stk_view_agent(const stk_view *view, const char *tenant, const char *agent,
                                       stk_err *err);

#endif
