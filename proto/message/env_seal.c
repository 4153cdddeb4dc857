#include "proto/message/env_seal.h"

#define CONTEXT  "config.env"
#define PREFIX   STK_STR("sealed:")
#define TEXT_MAX ((size_t)1 << 20)

/* Additional data: each part with its length, so that no two bindings read the same. */
static int binding(stk_buf *out, const char *tenant, const char *agent, stk_str name)
{
    return stk_buf_fmt(out, "%zu:%s %zu:%s %zu:%.*s", strlen(tenant), tenant, strlen(agent), agent, name.n,
                       (int)name.n, name.p);
}

int stk_env_seal(const stk_keyring *ring, const char *tenant, const char *agent, stk_str name, stk_str value,
                 stk_bytes *ret, stk_err *err)
{
    stk_buf aad STK_AUTO(stk_buf_done) = STK_BUF(4096);
    stk_buf raw STK_AUTO(stk_buf_done) = STK_BUF(TEXT_MAX);
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(2 * TEXT_MAX);
    if (binding(&aad, tenant, agent, name) < 0)
        return stk_err_set(err, STK_E_LIMIT, "the name of an environment variable is too long");
    int rc = stk_seal(ring, CONTEXT, stk_buf_view(&aad), value, &raw, err);
    if (rc < 0)
        return rc;
    if (stk_buf_str(&text, PREFIX) < 0 || stk_base64_encode(&text, stk_buf_view(&raw)) < 0)
        return stk_err_set(err, STK_E_LIMIT, "an environment value is too long");
    stk_bytes_set(ret, stk_buf_view(&text));
    return 0;
}

int stk_env_open(const stk_keyring *ring, const char *tenant, const char *agent, stk_str name, stk_str sealed,
                 stk_buf *out, stk_err *err)
{
    stk_buf aad STK_AUTO(stk_buf_done) = STK_BUF(4096);
    stk_buf raw STK_AUTO(stk_buf_done) = STK_BUF(TEXT_MAX);
    if (!stk_str_starts(sealed, PREFIX) || binding(&aad, tenant, agent, name) < 0 ||
        stk_base64_decode(&raw, stk_str_n(sealed.p + PREFIX.n, sealed.n - PREFIX.n)) < 0)
        return stk_err_set(err, STK_E_CORRUPT, "the value of environment variable %.*s is not sealed",
                           (int)stk_min(name.n, 64), name.p);
    return stk_unseal(ring, CONTEXT, stk_buf_view(&aad), stk_buf_view(&raw), out, err);
}
