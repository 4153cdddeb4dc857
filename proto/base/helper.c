#include "proto/base/fd.h"
#include "proto/base/proc.h"
#include <errno.h>
#include <stdio.h>

/* Seen from the folder of the running program: installed beside it or in libexec; then the build tree. */
static const char *const places[] = {"",         "../libexec/stockade",   "../../proto",
                                     "../proto", "../../workers/runtime", "../../egress-proxy"};

static bool runnable(const char *dir, size_t n, const char *place, const char *name, char *out, size_t size)
{
    int len = snprintf(out, size, "%.*s/%s%s%s", (int)n, dir, place, *place ? "/" : "", name);
    return len > 0 && (size_t)len < size && access(out, X_OK) == 0;
}

static bool in_list(const char *list, const char *name, char *out, size_t size)
{
    while (list && *list) {
        size_t n = strcspn(list, ":");
        if (n > 0 && list[0] == '/' && runnable(list, n, "", name, out, size))
            return true;
        list += n + (list[n] == ':');
    }
    return false;
}

int stk_proc_find_helper(const char *name, char *out, size_t size, stk_err *err)
{
    if (in_list(secure_getenv("STOCKADE_LIBEXEC"), name, out, size))
        return 0;
    char exe[4096];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    if (n <= 0)
        return stk_err_errno(err, errno, "find our own program");
    exe[n] = '\0';
    char *slash = strrchr(exe, '/');
    size_t dir = slash ? (size_t)(slash - exe) : 0;
    for (size_t i = 0; i < STK_COUNT(places); i++)
        if (runnable(exe, dir, places[i], name, out, size))
            return 0;
    exe[dir] = '\0';
    return stk_err_set(err, STK_E_NOT_FOUND,
                       "%s is neither beside %s nor in ../libexec/stockade nor in STOCKADE_LIBEXEC", name,
                       exe);
}
