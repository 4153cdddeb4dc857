#include "api-gateway/auth.h"
#include "proto/message/request.h"
#include <stdio.h>

#define PRESENTED_MAX 256

static bool is_port(stk_str s)
{
    uint64_t n;
    return s.n == 0 || (s.p[0] == ':' && stk_str_u64(stk_str_n(s.p + 1, s.n - 1), 65535, &n));
}

static bool is_127(stk_str s)
{
    int dots = 0;
    if (!stk_str_starts(s, STK_STR("127.")))
        return false;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '.')
            dots++;
        else if (s.p[i] < '0' || s.p[i] > '9')
            return false;
    }
    return dots == 3;
}

bool stk_gw_host_is_loopback(stk_str host)
{
    if (stk_str_starts(host, STK_STR("[::1]")))
        return is_port(stk_str_n(host.p + 5, host.n - 5));
    const char *colon = host.n ? memchr(host.p, ':', host.n) : NULL;
    size_t n = colon ? (size_t)(colon - host.p) : host.n;
    stk_str name = {host.p, n};
    return (stk_str_ieq(name, STK_STR("localhost")) || is_127(name)) &&
           is_port(stk_str_n(host.p + n, host.n - n));
}

int stk_gw_guard(const stk_head *head, bool is_unix, stk_err *err)
{
    const stk_head_field *site = stk_head_get(head, "Sec-Fetch-Site");
    if (stk_head_get(head, "Origin"))
        return stk_err_set(
            err, STK_E_FORBIDDEN,
            "without tokens a request with an Origin is refused: a web page must not reach this server");
    if (site && !stk_str_eq(site->value, STK_STR("same-origin")) && !stk_str_eq(site->value, STK_STR("none")))
        return stk_err_set(err, STK_E_FORBIDDEN, "without tokens a request from another site is refused");
    if (!is_unix && head->host.p && !stk_gw_host_is_loopback(head->host))
        return stk_err_set(err, STK_E_FORBIDDEN,
                           "without tokens only requests to a loopback host are answered");
    return 0;
}

static const stk_token *find(const stk_gateway *gw, stk_str presented)
{
    uint8_t hash[STK_SHA256];
    stk_wall now = stk_wall_now();
    stk_token_hash(presented, hash);
    const stk_token *a = stk_gw_view_token(gw->view, hash, now);
    const stk_token *b = stk_tokens_find(&gw->bootstrap, hash, now);
    return a ? a : b;
}

static int bearer(const stk_head *head, stk_str *ret, stk_err *err)
{
    const stk_head_field *field = stk_head_get(head, "Authorization");
    if (!field)
        return stk_err_set(err, STK_E_UNAUTHENTICATED, "send `Authorization: Bearer TOKEN`");
    stk_str v = field->value;
    if (v.n < 7 || !stk_str_ieq(stk_str_n(v.p, 7), STK_STR("Bearer ")) || v.n > PRESENTED_MAX)
        return stk_err_set(err, STK_E_UNAUTHENTICATED, "the Authorization header is not `Bearer TOKEN`");
    *ret = stk_str_n(v.p + 7, v.n - 7);
    return 0;
}

static int identify(const stk_gateway *gw, const stk_head *head, stk_gw_caller *ret, stk_err *err)
{
    stk_str presented;
    *ret = (stk_gw_caller){.tenant = "default", .actor = "local", .scopes = STK_SCOPE_ALL};
    if (gw->spec.auth_none)
        return 0;
    int rc = bearer(head, &presented, err);
    if (rc < 0)
        return rc;
    const stk_token *token = find(gw, presented);
    if (!token && !stk_gw_view_ready(gw->view))
        return stk_err_set(err, STK_E_UNAVAILABLE, "the configuration is still being read");
    if (!token)
        return stk_err_set(err, STK_E_UNAUTHENTICATED, "the token is not known or has expired");
    memcpy(ret->tenant, token->tenant, sizeof(ret->tenant));
    snprintf(ret->actor, sizeof(ret->actor), "token/%s", token->label[0] ? token->label : token->id);
    ret->scopes = token->scopes;
    return 0;
}

int stk_gw_auth(const stk_gateway *gw, const stk_head *head, unsigned scope, const char *tenant,
                stk_gw_caller *ret, stk_err *err)
{
    int rc = identify(gw, head, ret, err);
    if (rc < 0)
        return rc;
    if ((ret->scopes & scope) != scope)
        return stk_err_set(err, STK_E_FORBIDDEN, "the token lacks the scope %s", stk_scope_text(scope));
    if (!tenant || strcmp(tenant, ret->tenant) == 0)
        return 0;
    if (!(ret->scopes & STK_SCOPE_ADMIN))
        return stk_err_set(err, STK_E_FORBIDDEN, "naming another tenant needs the scope admin");
    if (!stk_tenant_ok(stk_str_of(tenant)))
        return stk_err_set(err, STK_E_FIELD, "tenant: 1 to 63 of a-z 0-9 -");
    memcpy(ret->tenant, tenant, strlen(tenant) + 1);
    return 0;
}
