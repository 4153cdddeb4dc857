/* The body of POST /execute, checked, as exec wants it. */
#ifndef STK_RUNTIME_EXEC_REQUEST_H
#define STK_RUNTIME_EXEC_REQUEST_H

#include "proto/base/time.h"
#include "proto/message/request.h"

/* What the answer depends on beside the body. */
typedef struct stk_exec_defaults {
    int root;              /* directory descriptor            */
    const char *root_path; /* HOME                            */
    const char *proxy;     /* "http://127.0.0.1:3128" or NULL */
    size_t max_output;
    bool ignore_unknown; /* fields; else they are refused   */
} stk_exec_defaults;

typedef struct stk_exec_request {
    stk_strv command;
    stk_map env;
    char **argv; /* NULL-terminated, into command */
    char **envp; /* NULL-terminated, one block    */
    const char *path;
    int cwd;
    stk_buf input;
    bool has_input;
    bool base64; /* the answer carries stdout_base64 and stderr_base64 as well */
    stk_span timeout;
    size_t max_output;
} stk_exec_request;

/* Errors have a pointer into the body: -STK_E_JSON, _FIELD, _MISSING_FIELD, _UNKNOWN_FIELD, and _TOO_LARGE
 * for what exec cannot carry. Call done in any case. */
int stk_exec_request_decode(stk_str body, const stk_exec_defaults *defaults, stk_exec_request *ret,
                            stk_err *err) STK_MUST_USE;
void stk_exec_request_done(stk_exec_request *req);

/* The built environment: defaults, proxy variables, then `env` (which may replace them). One block to free.
 */
char **stk_environ_build(const stk_exec_defaults *defaults, const stk_map *env);
const char *stk_environ_get(char *const *envp, const char *name);

#endif
