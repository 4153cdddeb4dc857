/* All paths in one table. */
#ifndef STK_GATEWAY_ROUTES_H
#define STK_GATEWAY_ROUTES_H

#include "api-gateway/impl.h"

typedef enum stk_gw_body { STK_GW_NO_BODY, STK_GW_JSON, STK_GW_MAYBE /* nothing or {} */ } stk_gw_body;

typedef struct stk_gw_route {
    const char *method, *path; /* at most one part is "{…}" */
    unsigned scope;            /* 0 = for everybody */
    stk_gw_body body;
    const char *query; /* names it takes: "a|b" or "" */
    void (*handle)(stk_gw_exchange *ex);
} stk_gw_route;

extern const stk_gw_route stk_gw_routes[];
extern const size_t stk_gw_nroutes;

/* The route, or NULL with -STK_E_NOT_FOUND, or -STK_E_METHOD and `allow` ("GET, PUT"). param gets the decoded
 * {part}. */
const stk_gw_route *stk_gw_route_find(stk_str method, stk_str path, char param[STK_AGENT_MAX], char allow[64],
                                      stk_err *err);

/* Handlers. Each answers, at once or later. */
void stk_gw_plan(stk_gw_exchange *ex);
void stk_gw_run(stk_gw_exchange *ex);
void stk_gw_sandbox_get(stk_gw_exchange *ex);
void stk_gw_sandbox_put(stk_gw_exchange *ex);
void stk_gw_org_get(stk_gw_exchange *ex);
void stk_gw_org_put(stk_gw_exchange *ex);
void stk_gw_runs_post(stk_gw_exchange *ex);
void stk_gw_runs_list(stk_gw_exchange *ex);
void stk_gw_run_get(stk_gw_exchange *ex);
void stk_gw_run_cancel(stk_gw_exchange *ex);
void stk_gw_run_events(stk_gw_exchange *ex);
void stk_gw_pools_list(stk_gw_exchange *ex);
void stk_gw_pool_get(stk_gw_exchange *ex);
void stk_gw_pool_put(stk_gw_exchange *ex);
void stk_gw_audit_list(stk_gw_exchange *ex);
void stk_gw_workers_list(stk_gw_exchange *ex);
void stk_gw_tokens_list(stk_gw_exchange *ex);
void stk_gw_tokens_post(stk_gw_exchange *ex);
void stk_gw_token_delete(stk_gw_exchange *ex);
void stk_gw_healthz(stk_gw_exchange *ex);
void stk_gw_readyz(stk_gw_exchange *ex);
void stk_gw_metrics(stk_gw_exchange *ex);
void stk_gw_openapi(stk_gw_exchange *ex);
void stk_gw_console(stk_gw_exchange *ex);

#endif
