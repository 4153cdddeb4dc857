#include "proto/base/launch_spec.h"

enum key {
    VERSION = 'v',
    PATH = 'p',
    CWD = 'd',
    ARG = 'a',
    ENV = 'e',
    FD = 'f',
    CGROUP = 'c',
    UNSHARE = 'u',
    UMOUNT = 'm',
    NOFILE = 'n',
    PARENT = 'k'
};

static void add(stk_buf *out, enum key key, const char *value)
{
    if (value)
        stk_buf_fmt(out, "%c%s", (char)key, value), stk_buf_byte(out, '\0');
}

static void add_all(stk_buf *out, enum key key, const char *const *values)
{
    for (; *values; values++)
        add(out, key, *values);
}

static void add_number(stk_buf *out, enum key key, int64_t value)
{
    if (value)
        stk_buf_fmt(out, "%c%lld", (char)key, (long long)value), stk_buf_byte(out, '\0');
}

int stk_launch_encode(stk_buf *out, const stk_launch *launch)
{
    add(out, VERSION, "1");
    add(out, PATH, launch->path);
    add(out, CWD, launch->cwd);
    add_all(out, ARG, launch->args);
    add_all(out, ENV, launch->env);
    add_all(out, CGROUP, launch->cgroups);
    for (size_t i = 0; i < launch->n_fds; i++) {
        stk_buf_fmt(out, "%c%d:%d", (char)FD, launch->fds[i].child, launch->fds[i].at);
        stk_buf_byte(out, '\0');
    }
    add_number(out, UNSHARE, launch->unshare_flags);
    add(out, UMOUNT, launch->umount);
    add_number(out, NOFILE, launch->nofile);
    add_number(out, PARENT, launch->parent);
    return out->over ? -STK_E_LIMIT : 0;
}

static bool number(const char *s, size_t n, int64_t most, int64_t *ret)
{
    int64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9' || v > most / 10)
            return false;
        v = v * 10 + (s[i] - '0');
    }
    *ret = v;
    return n > 0 && v <= most;
}

static bool append(const char **list, size_t *n, size_t most, const char *value)
{
    if (*n == most)
        return false;
    list[(*n)++] = value;
    return true;
}

static bool take_fd(stk_launch *l, const char *value, size_t n)
{
    const char *colon = memchr(value, ':', n);
    int64_t child;
    int64_t at;
    if (!colon || l->n_fds == STK_LAUNCH_FDS)
        return false;
    size_t first = (size_t)(colon - value);
    if (!number(value, first, STK_LAUNCH_LOW - 1, &child) ||
        !number(colon + 1, n - first - 1, INT32_MAX, &at) || at < STK_LAUNCH_LOW)
        return false;
    l->fds[l->n_fds].child = (int)child;
    l->fds[l->n_fds++].at = (int)at;
    return true;
}

static bool take(stk_launch *l, char key, const char *value, size_t n)
{
    int64_t flags = 0;
    switch ((enum key)key) {
    case VERSION:
        return n == 1 && value[0] == '1';
    case PATH:
        l->path = value;
        return n > 0 && value[0] == '/';
    case CWD:
        l->cwd = value;
        return n > 0;
    case UMOUNT:
        l->umount = value;
        return n > 0;
    case ARG:
        return append(l->args, &l->n_args, STK_LAUNCH_ARGS, value);
    case ENV:
        return append(l->env, &l->n_env, STK_LAUNCH_ENV, value);
    case CGROUP:
        return append(l->cgroups, &l->n_cgroups, STK_LAUNCH_CGROUPS, value);
    case FD:
        return take_fd(l, value, n);
    case UNSHARE:
        if (!number(value, n, INT32_MAX, &flags))
            return false;
        l->unshare_flags = (int)flags;
        return true;
    case NOFILE:
        return number(value, n, INT32_MAX, &l->nofile);
    case PARENT:
        return number(value, n, INT32_MAX, &l->parent);
    }
    return false;
}

int stk_launch_decode(const char *p, size_t n, stk_launch *ret)
{
    if (n < 3 || n > STK_LAUNCH_MOST || p[n - 1] != '\0' || p[0] != VERSION)
        return -STK_E_PROTOCOL;
    for (size_t at = 0; at < n;) {
        size_t len = strlen(p + at);
        if (len == 0 || !take(ret, p[at], p + at + 1, len - 1))
            return -STK_E_PROTOCOL;
        at += len + 1;
    }
    return ret->path && ret->cwd && ret->n_args ? 0 : -STK_E_PROTOCOL;
}
