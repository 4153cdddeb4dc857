#include "workers/runtime/exec_request.h"
#include <stdio.h>

typedef struct entry {
    stk_str name, value;
} entry;

static const char *const proxied[] = {"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY",
                                      "http_proxy", "https_proxy", "all_proxy"};
static const char *const unproxied[] = {"NO_PROXY", "no_proxy"};

#define FIXED (6 + STK_COUNT(proxied) + STK_COUNT(unproxied))

static size_t fixed_entries(const stk_exec_defaults *defaults, entry out[FIXED])
{
    size_t n = 0;
    out[n++] =
        (entry){STK_STR("PATH"), STK_STR("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")};
    out[n++] = (entry){STK_STR("HOME"), stk_str_of(defaults->root_path)};
    out[n++] = (entry){STK_STR("LANG"), STK_STR("C.UTF-8")};
    out[n++] = (entry){STK_STR("TZ"), STK_STR("UTC")};
    out[n++] = (entry){STK_STR("PYTHONUNBUFFERED"), STK_STR("1")};
    out[n++] = (entry){STK_STR("PYTHONUTF8"), STK_STR("1")};
    if (!defaults->proxy)
        return n;
    for (size_t i = 0; i < STK_COUNT(proxied); i++)
        out[n++] = (entry){stk_str_of(proxied[i]), stk_str_of(defaults->proxy)};
    for (size_t i = 0; i < STK_COUNT(unproxied); i++)
        out[n++] = (entry){stk_str_of(unproxied[i]), STK_STR("")};
    return n;
}

static char *put(char *to, const entry *e)
{
    memcpy(to, e->name.p, e->name.n);
    to[e->name.n] = '=';
    if (e->value.n)
        memcpy(to + e->name.n + 1, e->value.p, e->value.n);
    to += e->name.n + e->value.n + 1;
    *to = '\0';
    return to + 1;
}

char **stk_environ_build(const stk_exec_defaults *defaults, const stk_map *env)
{
    entry fixed[FIXED];
    size_t n = fixed_entries(defaults, fixed);
    size_t bytes = (n + env->n + 1) * sizeof(char *);
    for (size_t i = 0; i < n; i++)
        bytes += fixed[i].name.n + fixed[i].value.n + 2;
    for (size_t i = 0; i < env->n; i++)
        bytes += env->v[i].key.n + env->v[i].value.n + 2;
    char **envp = stk_xcalloc(1, bytes);
    char *to = (char *)(envp + n + env->n + 1);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        if (stk_map_get(env, fixed[i].name))
            continue;
        envp[at++] = to;
        to = put(to, &fixed[i]);
    }
    for (size_t i = 0; i < env->n; i++) {
        envp[at++] = to;
        to = put(to, &(entry){stk_bytes_view(&env->v[i].key), stk_bytes_view(&env->v[i].value)});
    }
    return envp;
}

const char *stk_environ_get(char *const *envp, const char *name)
{
    size_t n = strlen(name);
    for (; *envp; envp++)
        if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=')
            return *envp + n + 1;
    return NULL;
}
