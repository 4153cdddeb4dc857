/* stk.requests: a run or plan request. The clear part is readable JSON; the secret part (command, env, cwd,
 * files, stdin, collect) is one sealed value bound to the clear part. Keys: run id. */
#ifndef STK_MESSAGE_REQUEST_H
#define STK_MESSAGE_REQUEST_H

#include "proto/base/crypto.h"
#include "proto/base/field.h"
#include "proto/message/limits.h"
#include "proto/message/run.h"

typedef struct stk_file_in {
    char path[1024]; /* relative to /workspace; no "..", no leading '/' */
    bool executable;
    stk_bytes content;
} stk_file_in;

typedef struct stk_files {
    stk_file_in *v;
    size_t n;
} stk_files;

/* What is sealed. */
typedef struct stk_run_secret {
    stk_strv command; /* argv, at least one, first not empty; no NUL bytes */
    stk_map env;      /* names [A-Za-z_][A-Za-z0-9_]*; no NUL bytes        */
    char cwd[STK_CWD_MAX];
    stk_files files;
    stk_bytes stdin_data;
    stk_strv collect;
} stk_run_secret;

typedef enum stk_request_kind { STK_REQ_RUN, STK_REQ_PLAN } stk_request_kind;

typedef struct stk_request {
    int64_t v;
    char kind[8]; /* "run" | "plan" */
    char id[STK_ID_SIZE];
    char tenant[STK_TENANT_MAX];
    char actor[STK_ACTOR_MAX];
    char agent[STK_AGENT_MAX];
    char backend[STK_BACKEND_MAX]; /* as asked in the request or by the agent's configuration; "auto" */
    char image[STK_IMAGE_MAX];
    int64_t priority; /* 0..9, 9 first; default 5 */
    stk_span timeout; /* of the command */
    stk_wall submitted;
    stk_wall deadline; /* ns == 0: none */
    char retry[8];     /* "never" | "always" */
    stk_map labels;
    int64_t config_version; /* of agent-sandbox, when it was accepted */
    char traceparent[STK_TRACE_MAX];
    stk_bytes secret; /* sealed */
} stk_request;

void stk_request_done(stk_request *req);
void stk_run_secret_done(stk_run_secret *secret);
STK_DEFINE_FREEP(stk_request, stk_request_donep, stk_request_done)

/* Bus form. Decode validates everything (ids, tenant, agent, bounds); -STK_E_NEWER for a later version. */
int stk_request_encode(const stk_request *req, stk_buf *out, stk_err *err) STK_MUST_USE;
int stk_request_decode(stk_str json, stk_request *ret, stk_err *err) STK_MUST_USE;
/* Seals into / opens req->secret; the additional data is the encoded clear part: seal last, when all of it is
 * set. The secret is checked like an API body's. Open: -STK_E_CORRUPT, -STK_E_NOT_FOUND as stk_unseal. */
int stk_request_seal(stk_request *req, const stk_run_secret *secret, const stk_keyring *ring,
                     stk_err *err) STK_MUST_USE;
int stk_request_open(const stk_request *req, const stk_keyring *ring, stk_run_secret *ret,
                     stk_err *err) STK_MUST_USE;

/* The API body of POST …/run, /v1/runs and …/plan -> request + secret (id, tenant, actor, submitted are the
 * caller's). `plan`: only agent, command, env, image, backend. A command string is split (POSIX shlex) here.
 * backend and image are what the client asked for, "" when nothing: whether it may is the caller's to decide.
 * Errors have pointers: -STK_E_FIELD, -STK_E_UNKNOWN_FIELD, -STK_E_MISSING_FIELD, -STK_E_TOO_LARGE (argument
 * sizes). */
int stk_request_from_api(stk_jv body, bool plan, stk_wall now, stk_request *ret_req,
                         stk_run_secret *ret_secret, stk_err *err) STK_MUST_USE;

/* POSIX shell splitting without expansion: quotes and backslashes as Python's shlex.split; $ ; | * stay
 * literal. "No closing quotation" / "No escaped character" are -STK_E_FIELD. */
int stk_shlex_split(stk_str text, stk_strv *ret, stk_err *err) STK_MUST_USE;
/* A command of an API or runtime body: a string (split as above) or a list, taken byte for byte. Checks argv
 * as stk_command_check does. env may be NULL; it counts for the total. Pointers begin with "/command" or
 * "/env". */
int stk_command_decode(stk_jv v, const stk_map *env, stk_strv *ret, stk_err *err) STK_MUST_USE;
/* What exec can take: at least one argument, the first not empty, no NUL, UTF-8, names of variables, counts:
 * -STK_E_FIELD; one entry over STK_ARG_MAX_ONE or all over STK_ARG_MAX_ALL (terminating NULs counted):
 * -STK_E_TOO_LARGE. */
int stk_command_check(const stk_strv *argv, const stk_map *env, stk_err *err) STK_MUST_USE;
bool stk_env_name_ok(stk_str name);
bool stk_tenant_ok(stk_str tenant);
bool stk_agent_ok(stk_str agent);

#endif
