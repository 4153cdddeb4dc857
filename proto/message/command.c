/* A command as it comes from outside: a string (split here) or a list, and the bounds of what exec can take.
 */
#include "proto/message/check.h"
#include "proto/message/request.h"
#include <stdio.h>

static int list_read(stk_jv v, stk_strv *out, stk_err *err)
{
    char pointer[32];
    for (stk_jv item = stk_jv_first(v); !stk_jv_is(item, STK_J_NONE); item = stk_jv_next(item)) {
        snprintf(pointer, sizeof(pointer), "/%zu", out->n);
        if (!stk_jv_is(item, STK_J_STRING))
            return stk_err_field(err, STK_E_FIELD, pointer, "must be a string, not %s",
                                 stk_jtype_name(stk_jv_type(item)));
        if (out->n >= STK_ARGS_MAX)
            return stk_err_field(err, STK_E_TOO_LARGE, "", "more than %d arguments", STK_ARGS_MAX);
        stk_strv_add(out, stk_jv_str(item));
    }
    return 0;
}

static int entry_check(stk_str s, const char *pointer, const char *what, size_t size, stk_err *err)
{
    if (s.n && memchr(s.p, '\0', s.n))
        return stk_err_field(err, STK_E_FIELD, pointer, "must not hold a NUL character");
    if (!stk_utf8_valid(s))
        return stk_err_field(err, STK_E_FIELD, pointer, "is not UTF-8");
    if (size > STK_ARG_MAX_ONE)
        return stk_err_field(err, STK_E_TOO_LARGE, pointer,
                             "%s of %zu bytes; the limit is %d bytes (128 KiB): send it as a file instead",
                             what, size - 1, STK_ARG_MAX_ONE - 1);
    return 0;
}

static int argv_check(const stk_strv *argv, bool list, size_t *total, stk_err *err)
{
    char pointer[32] = "/command";
    if (argv->n == 0)
        return stk_err_field(err, STK_E_FIELD, pointer, "must not be empty");
    if (argv->v[0].n == 0)
        return stk_err_field(err, STK_E_FIELD, list ? "/command/0" : pointer,
                             "the program's name must not be empty");
    for (size_t i = 0; i < argv->n; i++) {
        if (list)
            snprintf(pointer, sizeof(pointer), "/command/%zu", i);
        size_t size = argv->v[i].n + 1;
        int rc = entry_check(stk_bytes_view(&argv->v[i]), pointer, "an argument", size, err);
        if (rc < 0)
            return rc;
        *total += size;
    }
    return 0;
}

static int env_check(const stk_map *env, size_t *total, stk_err *err)
{
    for (size_t i = 0; i < env->n; i++) {
        char pointer[192] = "/env";
        stk_str name = stk_bytes_view(&env->v[i].key);
        stk__pointer_add(pointer, name);
        if (!stk_env_name_ok(name))
            return stk_err_field(err, STK_E_FIELD, pointer,
                                 "a variable's name is of A-Z a-z 0-9 _ and does not begin with a digit");
        size_t size = name.n + 1 + env->v[i].value.n + 1;
        int rc = entry_check(stk_bytes_view(&env->v[i].value), pointer, "a variable", size, err);
        if (rc < 0)
            return rc;
        *total += size;
    }
    if (env->n > STK_ENV_MAX)
        return stk_err_field(err, STK_E_FIELD, "/env", "at most %d variables", STK_ENV_MAX);
    return 0;
}

static int check(const stk_strv *argv, const stk_map *env, bool list, stk_err *err)
{
    size_t total = 0;
    int rc = argv_check(argv, list, &total, err);
    if (rc == 0 && env)
        rc = env_check(env, &total, err);
    if (rc == 0 && total > STK_ARG_MAX_ALL)
        rc = stk_err_field(
            err, STK_E_TOO_LARGE, "/command",
            "arguments and variables of %zu bytes; the limit is %d bytes (1 MiB) in all: send files instead",
            total, STK_ARG_MAX_ALL);
    return rc;
}

int stk_command_check(const stk_strv *argv, const stk_map *env, stk_err *err)
{
    return check(argv, env, true, err);
}

int stk_command_decode(stk_jv v, const stk_map *env, stk_strv *ret, stk_err *err)
{
    stk_strv argv = {0};
    bool list = stk_jv_is(v, STK_J_ARRAY);
    int rc;
    if (list)
        rc = list_read(v, &argv, err);
    else if (stk_jv_is(v, STK_J_STRING))
        rc = stk_shlex_split(stk_jv_str(v), &argv, err);
    else
        rc = stk_err_field(err, STK_E_FIELD, "", "must be a string or an array of strings, not %s",
                           stk_jtype_name(stk_jv_type(v)));
    if (rc < 0)
        stk_err_prefix(err, "/command");
    else
        rc = check(&argv, env, list, err);
    if (rc < 0)
        stk_strv_done(&argv);
    else
        *ret = argv;
    return rc;
}
