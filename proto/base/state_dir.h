/* Where the state directory is when nobody says: one answer for `up`, `token` and `audit verify`. */
#ifndef STK_BASE_STATE_DIR_H
#define STK_BASE_STATE_DIR_H

#include "proto/base/err.h"

#define STK_STATE_DIR_HELP                                                                                   \
    "$STOCKADE_STATE_DIR; /var/lib/stockade as root, else $XDG_STATE_HOME/stockade or "                      \
    "~/.local/state/stockade"

/* $STOCKADE_STATE_DIR as it stands, else the default of this user. -STK_E_LIMIT when it does not fit. */
int stk_state_dir_default(char *out, size_t size, stk_err *err) STK_MUST_USE;

#endif
