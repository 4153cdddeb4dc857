/* Configuration of `stockade up`: one typed table (settings.c) gives file, flags, --help and the reference
 * page. */
#ifndef STK_STANDALONE_SETTINGS_H
#define STK_STANDALONE_SETTINGS_H

#include "proto/base/config.h"

typedef struct stk_settings {
    char *state_dir, *run_dir;
    char *listen;
    int auth; /* STK_AUTH_* */
    int64_t body_max;
    stk_span wait_default;
    int log_format; /* 0 text, 1 json */
    int log_level;  /* stk_level */
    int64_t slots;
    char *runtime, *rootfs, *cgroup;
    stk_span lease, heartbeat, drain;
    int64_t queued_cap, running_cap, max_attempts;
    stk_strv resolvers;
    stk_bytes internal;
} stk_settings;

enum { STK_AUTH_TOKENS, STK_AUTH_NONE };

extern const stk_conf stk_settings_table[];
/* Cross-checks: lease > 3 x heartbeat, absolute paths, resolvers. Fills in run_dir. */
int stk_settings_load(const char *file, const char *const *overrides, stk_settings *ret,
                      stk_err *err) STK_MUST_USE;
void stk_settings_done(stk_settings *settings);

#endif
