/* Errors are one table. A fallible function returns 0 or a negative stk_code and takes `stk_err *err` last.
 *
 * stk_err is a fixed buffer in the caller's frame: nothing allocates on a failure path. `err` may be NULL
 * everywhere. Functions set it once, where the fault is found; callers add context with stk_err_wrap. */
#ifndef STK_BASE_ERR_H
#define STK_BASE_ERR_H

#include "proto/base/base.h"

/* clang-format off */
/*        symbol             code (stable, in API)   title                                    retry  HTTP exit */
#define STK_ERR_TABLE(X)                                                                                     \
    X(INTERNAL,              "internal",             "internal error",                        false, 500, 125)   \
    X(NOMEM,                 "out_of_memory",        "out of memory",                         true,  503, 125)   \
    X(LIMIT,                 "limit_exceeded",       "a limit was exceeded",                  false, 422, 125)   \
    X(JSON,                  "invalid_json",         "not valid JSON",                        false, 400, 2)     \
    X(HTTP,                  "bad_request",          "malformed HTTP request",                false, 400, 2)     \
    X(FIELD,                 "invalid_field",        "a field is wrong",                      false, 422, 2)     \
    X(UNKNOWN_FIELD,         "unknown_field",        "unknown field",                         false, 422, 2)     \
    X(MISSING_FIELD,         "missing_field",        "a required field is missing",           false, 422, 2)     \
    X(USAGE,                 "usage",                "wrong command line",                    false, 400, 2)     \
    X(CONFIG,                "invalid_config",       "the configuration is wrong",            false, 422, 2)     \
    X(POLICY,                "policy_invalid",       "the egress policy is wrong",            false, 422, 2)     \
    X(UNAUTHENTICATED,       "unauthenticated",      "a valid token is needed",               false, 401, 125)   \
    X(FORBIDDEN,             "forbidden",            "the token lacks a scope",               false, 403, 125)   \
    X(NOT_FOUND,             "not_found",            "no such thing",                         false, 404, 125)   \
    X(METHOD,                "method_not_allowed",   "method not allowed",                    false, 405, 125)   \
    X(CONFLICT,              "conflict",             "conflicts with the present state",      false, 409, 125)   \
    X(NOT_SANDBOXED,         "not_sandboxed",        "this agent is not sandboxed",           false, 409, 125)   \
    X(PRECONDITION,          "version_mismatch",     "the document has another version",      false, 412, 125)   \
    X(TOO_LARGE,             "too_large",            "the body is too large",                 false, 413, 125)   \
    X(HEAD_TOO_LARGE,        "head_too_large",       "the request head is too large",         false, 431, 125)   \
    X(IDEMPOTENCY,           "idempotency_mismatch", "the key was used with another body",    false, 422, 125)   \
    X(BACKEND,               "backend_unavailable",  "the backend is not available",          false, 422, 125)   \
    X(BUSY,                  "too_many",             "too much is waiting",                   true,  429, 125)   \
    X(UNAVAILABLE,           "unavailable",          "not available now",                     true,  503, 125)   \
    X(OUTCOME_UNKNOWN,       "outcome_unknown",      "the outcome is not known",              true,  503, 125)   \
    X(TIMEOUT,               "timeout",              "timed out",                             true,  504, 124)   \
    X(CLOSED,                "closed",               "the peer closed the connection",        true,  502, 125)   \
    X(PROTOCOL,              "protocol",             "the peer broke the protocol",           false, 502, 125)   \
    X(SYSTEM,                "system",               "a system call failed",                  false, 500, 125)   \
    X(NO_SPACE,              "no_space",             "no space left",                         true,  507, 125)   \
    X(CORRUPT,               "corrupt",              "stored data is damaged",                false, 500, 125)   \
    X(NEWER,                 "newer_version",        "written by a newer version",            false, 500, 125)   \
    X(STALE,                 "stale",                "somebody else was first",               false, 409, 125)   \
    X(SANDBOX,               "sandbox_failed",       "the sandbox failed",                    true,  502, 125)   \
    X(CANCELLED,             "cancelled",            "cancelled",                             false, 499, 125)   \
    X(INJECTED,              "injected",             "a failure injected by a test",          true,  503, 125)
/* clang-format on */

typedef enum stk_code {
    STK_OK = 0,
#define X(sym, text, title, retry, http, exit) STK_E_##sym,
    STK_ERR_TABLE(X)
#undef X
        STK_CODE_COUNT
} stk_code;

typedef struct stk_err {
    stk_code code;
    int sys;           /* errno where one is at fault, else 0 */
    char pointer[192]; /* JSON Pointer (RFC 6901) into the request, or "" */
    char detail[512];  /* one line, for people */
} stk_err;

/* Table look-ups; a code out of range reads as STK_E_INTERNAL. */
const char *stk_code_text(stk_code code);
const char *stk_code_title(stk_code code);
bool stk_code_retryable(stk_code code);
int stk_code_http(stk_code code);
int stk_code_exit(stk_code code);

/* Sets *err (overwriting it) and returns -code. The text is cut to the buffer; control bytes become '?'. */
int stk_err_set(stk_err *err, stk_code code, const char *fmt, ...) STK_PRINTF(3, 4);
/* Same, for a field of a request: `pointer` is a JSON Pointer. */
int stk_err_field(stk_err *err, stk_code code, const char *pointer, const char *fmt, ...) STK_PRINTF(4, 5);
/* Same, from errno: code STK_E_NO_SPACE for ENOSPC/EDQUOT, else STK_E_SYSTEM; ": strerror" is appended. */
int stk_err_errno(stk_err *err, int errnum, const char *fmt, ...) STK_PRINTF(3, 4);
/* Puts "context: " before the detail and returns -err->code. */
int stk_err_wrap(stk_err *err, const char *fmt, ...) STK_PRINTF(2, 3);
/* Puts a prefix before the JSON Pointer ("/agents/x" + "/allow/0") and returns -err->code. */
int stk_err_prefix(stk_err *err, const char *prefix);

#endif
