/* The command line (flags are stable: backends and images spell them). */
#ifndef STK_RUNTIME_OPTIONS_H
#define STK_RUNTIME_OPTIONS_H

#include "proto/base/err.h"

#define STK_RT_LISTEN_MAX     4
#define STK_RT_CONCURRENT_MAX 64

/* Texts point into argv. */
typedef struct stk_rt_options {
    const char *listen[STK_RT_LISTEN_MAX];
    size_t nlisten;
    const char *dial;      /* NULL = none */
    const char *root;      /* default /workspace */
    char relay_from[64];   /* "" = no relay */
    const char *relay_to;  /* unix:PATH | vsock:PORT */
    int token_fd;          /* -1 = none */
    size_t max_output;     /* default 1 MiB */
    size_t max_concurrent; /* default 8 */
    size_t max_upload;     /* bytes of a body of POST /upload; default 4 GiB */
    bool compat_upstream;
    bool help, version;
} stk_rt_options;

/* -STK_E_USAGE names the flag. At least one of --listen and --dial is needed. */
int stk_rt_options_parse(int argc, char *const *argv, stk_rt_options *ret, stk_err *err) STK_MUST_USE;
const char *stk_rt_usage(void);

#endif
