#include "api-gateway/routes.h"
#include "proto/message/request.h"
#include <stdio.h>

#define ADMIN "/api/admin/platform/"

const stk_gw_route stk_gw_routes[] = {
    {"POST", ADMIN "agent-sandbox/plan", STK_SCOPE_PLAN, STK_GW_JSON, "tenant", stk_gw_plan},
    {"POST", ADMIN "agent-sandbox/run", STK_SCOPE_RUNS_WRITE, STK_GW_JSON, "wait|tenant", stk_gw_run},
    {"GET", ADMIN "agent-sandbox", STK_SCOPE_CONFIG_READ, STK_GW_NO_BODY, "tenant", stk_gw_sandbox_get},
    {"PUT", ADMIN "agent-sandbox", STK_SCOPE_CONFIG_WRITE, STK_GW_JSON, "tenant", stk_gw_sandbox_put},
    {"GET", ADMIN "egress-policy", STK_SCOPE_CONFIG_READ, STK_GW_NO_BODY, "tenant", stk_gw_org_get},
    {"PUT", ADMIN "egress-policy", STK_SCOPE_CONFIG_WRITE, STK_GW_JSON, "tenant", stk_gw_org_put},
    {"POST", "/v1/runs", STK_SCOPE_RUNS_WRITE, STK_GW_JSON, "wait|tenant", stk_gw_runs_post},
    {"GET", "/v1/runs", STK_SCOPE_RUNS_READ, STK_GW_NO_BODY, "agent|state|label|cursor|limit|tenant",
     stk_gw_runs_list},
    {"GET", "/v1/runs/{id}", STK_SCOPE_RUNS_READ, STK_GW_NO_BODY, "tenant", stk_gw_run_get},
    {"POST", "/v1/runs/{id}/cancel", STK_SCOPE_RUNS_WRITE, STK_GW_MAYBE, "tenant", stk_gw_run_cancel},
    {"GET", "/v1/runs/{id}/events", STK_SCOPE_RUNS_READ, STK_GW_NO_BODY, "tenant", stk_gw_run_events},
    {"GET", "/v1/pools", STK_SCOPE_CONFIG_READ, STK_GW_NO_BODY, "tenant", stk_gw_pools_list},
    {"GET", "/v1/pools/{name}", STK_SCOPE_CONFIG_READ, STK_GW_NO_BODY, "tenant", stk_gw_pool_get},
    {"PUT", "/v1/pools/{name}", STK_SCOPE_POOLS_WRITE, STK_GW_JSON, "tenant", stk_gw_pool_put},
    {"GET", "/v1/audit", STK_SCOPE_AUDIT_READ, STK_GW_NO_BODY,
     "agent|run|action|since|until|order|cursor|limit|tenant", stk_gw_audit_list},
    {"GET", "/v1/workers", STK_SCOPE_CONFIG_READ, STK_GW_NO_BODY, "", stk_gw_workers_list},
    {"GET", "/v1/tokens", STK_SCOPE_ADMIN, STK_GW_NO_BODY, "tenant", stk_gw_tokens_list},
    {"POST", "/v1/tokens", STK_SCOPE_ADMIN, STK_GW_JSON, "tenant", stk_gw_tokens_post},
    {"DELETE", "/v1/tokens/{id}", STK_SCOPE_ADMIN, STK_GW_NO_BODY, "tenant", stk_gw_token_delete},
    {"GET", "/healthz", 0, STK_GW_NO_BODY, "", stk_gw_healthz},
    {"GET", "/readyz", 0, STK_GW_NO_BODY, "", stk_gw_readyz},
    {"GET", "/metrics", 0, STK_GW_NO_BODY, "", stk_gw_metrics},
    {"GET", "/openapi.json", 0, STK_GW_NO_BODY, "", stk_gw_openapi},
    {"GET", "/", 0, STK_GW_NO_BODY, "", stk_gw_console},
};
const size_t stk_gw_nroutes = STK_COUNT(stk_gw_routes);

/* The part of a path up to the next '/', which is taken off with it. */
static stk_str next_part(stk_str *path)
{
    const char *slash = memchr(path->p, '/', path->n);
    stk_str part = {path->p, slash ? (size_t)(slash - path->p) : path->n};
    size_t used = part.n + (slash != NULL);
    *path = stk_str_n(path->p + used, path->n - used);
    return part;
}

static bool take_param(stk_str part, char param[STK_AGENT_MAX])
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_AGENT_MAX - 1);
    return part.n && stk_percent_decode(part, &text, NULL) == 0 &&
           stk_str_copy(stk_buf_view(&text), param, STK_AGENT_MAX);
}

static bool path_fits(const char *pattern, stk_str path, char param[STK_AGENT_MAX])
{
    stk_str want = stk_str_of(pattern);
    bool slash = path.n > 1 && path.p[path.n - 1] == '/';
    while (want.n && path.n) {
        stk_str a = next_part(&want), b = next_part(&path);
        if (a.n && a.p[0] == '{' ? !take_param(b, param) : !stk_str_eq(a, b))
            return false;
    }
    return !want.n && !path.n && !slash;
}

const stk_gw_route *stk_gw_route_find(stk_str method, stk_str path, char param[STK_AGENT_MAX], char allow[64],
                                      stk_err *err)
{
    size_t n = 0;
    if (stk_str_eq(method, STK_STR("HEAD")))
        method = STK_STR("GET");
    param[0] = allow[0] = '\0';
    for (size_t i = 0; i < stk_gw_nroutes; i++) {
        const stk_gw_route *route = &stk_gw_routes[i];
        if (!path_fits(route->path, path, param))
            continue;
        if (stk_str_eq(method, stk_str_of(route->method)))
            return route;
        n += (size_t)snprintf(allow + n, 64 - n, "%s%s%s", n ? ", " : "", route->method,
                              strcmp(route->method, "GET") == 0 ? ", HEAD" : "");
    }
    if (n)
        stk_err_set(err, STK_E_METHOD, "this path takes %s", allow);
    else
        stk_err_set(err, STK_E_NOT_FOUND, "no such path: %.*s (see /openapi.json)", (int)stk_min(path.n, 200),
                    path.p);
    return NULL;
}
