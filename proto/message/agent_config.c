#include "proto/message/agent_config.h"
#include "proto/message/request.h"
#include <stdio.h>

#define ALLOW_MAX 10000
#define F(m)      STK_FIELD_AT(stk_agent_config, m)
static const stk_field fields[] = {
    {"allow", STK_F_STRV, F(allow), 0, 0, ALLOW_MAX},
    {"backend", STK_F_TEXT, F(backend)},
    {"env", STK_F_MAP, F(env), 0, 0, STK_ENV_MAX},
    {"image", STK_F_TEXT, F(image)},
    {"limits", STK_F_CUSTOM, F(limits), .read = stk__agent_limits_read, .write = stk__agent_limits_write},
    {"template", STK_F_TEXT, F(template_)},
    {"tls", STK_F_TEXT, F(tls)},
    STK_FIELD_END,
};

static const stk__check checks[] = {
    {STK__CHECK_AT(stk_agent_config, backend), STK__WORD, STK__BACKENDS},
    {STK__CHECK_AT(stk_agent_config, image), STK__IMAGE},
    {"template", offsetof(stk_agent_config, template_), STK__AGENT, NULL, STK__MAY},
    {STK__CHECK_AT(stk_agent_config, tls), STK__WORD, "match|require|off"},
    {0},
};

static const char sealed[] = "sealed:";

static const char *value_bad(stk_str value, bool stored)
{
    if (stored) {
        stk_buf bytes STK_AUTO(stk_buf_done) = STK_BUF(STK_BODY_MAX);
        if (!stk_str_starts(value, stk_str_of(sealed)))
            return "a stored value must be sealed";
        value = stk_str_n(value.p + strlen(sealed), value.n - strlen(sealed));
        return value.n && stk_base64_decode(&bytes, value) == 0 ? NULL : "the sealed value is damaged";
    }
    if (stk_str_eq(value, STK_STR("***")))
        return "*** is how a value is shown; write \"unchanged\" to keep the one that is set";
    return NULL;
}

static int env_check(const stk_map *env, bool stored, stk_err *err)
{
    for (size_t i = 0; i < env->n; i++) {
        char pointer[192] = "/env";
        stk_str name = stk_bytes_view(&env->v[i].key), value = stk_bytes_view(&env->v[i].value);
        stk__pointer_add(pointer, name);
        if (!stk_env_name_ok(name))
            return stk_err_field(err, STK_E_FIELD, pointer,
                                 "a variable's name is of A-Z a-z 0-9 _ and does not begin with a digit");
        const char *bad = value_bad(value, stored);
        if (bad)
            return stk_err_field(err, STK_E_FIELD, pointer, "%s", bad);
        if (!stored && name.n + value.n + 2 > STK_ARG_MAX_ONE)
            return stk_err_field(err, STK_E_TOO_LARGE, pointer,
                                 "a variable of %zu bytes; the limit is %d (128 KiB)", name.n + value.n + 1,
                                 STK_ARG_MAX_ONE - 1);
    }
    return 0;
}

int stk__agent_config_read(stk_jv v, bool stored, stk_agent_config *ret, stk_err *err)
{
    stk_agent_limits_default(&ret->limits);
    int rc = stk_fields_decode(fields, v, ret, err);
    if (rc < 0)
        stk__explain(fields, checks, err);
    else
        rc = stk__checks_run(checks, ret, err);
    return rc < 0 ? rc : env_check(&ret->env, stored, err);
}

void stk__agent_config_free(stk_agent_config *agent)
{
    stk_fields_done(fields, agent);
}

static int by_key(const void *a, const void *b)
{
    return stk__str_order(stk_bytes_view(&(*(const stk_pair *const *)a)->key),
                          stk_bytes_view(&(*(const stk_pair *const *)b)->key));
}

static void write_env(stk_jw *w, const stk_map *env, bool blank)
{
    const stk_pair **sorted STK_AUTO(stk_freep) = stk_xcalloc(env->n + 1, sizeof(*sorted));
    for (size_t i = 0; i < env->n; i++)
        sorted[i] = &env->v[i];
    qsort(sorted, env->n, sizeof(*sorted), by_key);
    stk_jw_object(w);
    for (size_t i = 0; i < env->n; i++) {
        stk_jw_key_str(w, stk_bytes_view(&sorted[i]->key));
        stk_jw_str(w, blank ? STK_STR("***") : stk_bytes_view(&sorted[i]->value));
    }
    stk_jw_close(w, '}');
}

static void put_text(stk_jw *w, const char *key, const char *text)
{
    if (text[0])
        stk_jw_ktext(w, key, text);
}

void stk__agent_config_write(stk_jw *w, const stk_agent_config *agent, bool blank)
{
    stk_jw_object(w);
    stk__strv_write(w, "allow", &agent->allow);
    put_text(w, "backend", agent->backend);
    if (agent->env.n) {
        stk_jw_key(w, "env");
        write_env(w, &agent->env, blank);
    }
    put_text(w, "image", agent->image);
    stk_jw_key(w, "limits");
    stk__agent_limits_write(w, &agent->limits);
    put_text(w, "template", agent->template_);
    put_text(w, "tls", agent->tls);
    stk_jw_close(w, '}');
}
