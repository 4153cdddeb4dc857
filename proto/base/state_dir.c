#include "proto/base/state_dir.h"
#include "proto/base/fd.h"

int stk_state_dir_default(char *out, size_t size, stk_err *err)
{
    const char *own = getenv("STOCKADE_STATE_DIR");
    const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (own && *own)
        return stk_path(out, size, err, "%s", own);
    if (geteuid() == 0)
        return stk_path(out, size, err, "/var/lib/stockade");
    if (xdg && *xdg == '/')
        return stk_path(out, size, err, "%s/stockade", xdg);
    return stk_path(out, size, err, "%s/.local/state/stockade", home ? home : "");
}
