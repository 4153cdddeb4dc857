#include "proto/message/secret.h"

/* POST …/run, …/plan and /v1/runs as a client writes it. */
typedef struct body {
    stk_request req;
    stk_run_secret secret;
    stk_jv command;
    stk_span deadline;
    stk_bytes stdin_base64;
} body;

/* Split after the rest is known: variables count for the total. */
static int command_read(stk_jv v, void *at, stk_err *err)
{
    *(stk_jv *)at = v;
    return 0;
}

static void never_written(stk_jw *w, const void *at)
{
    w->bad = true;
}

#define F(m) STK_FIELD_AT(body, m)
#define PLAN_FIELDS                                                                                          \
    {"agent", STK_F_TEXT, F(req.agent), STK_FIELD_REQUIRED},                                                 \
        {"command",          STK_F_CUSTOM,         F(command),                                               \
         STK_FIELD_REQUIRED, .read = command_read, .write = never_written},                                  \
        {"env", STK_F_MAP, F(secret.env), 0, 0, STK_ENV_MAX}, {"image", STK_F_TEXT, F(req.image)},           \
    {                                                                                                        \
        "backend", STK_F_TEXT, F(req.backend)                                                                \
    }

static const stk_field plan_fields[] = {PLAN_FIELDS, STK_FIELD_END};
static const stk_field run_fields[] = {
    PLAN_FIELDS,
    {"timeout_seconds", STK_F_CUSTOM, F(req.timeout), .read = stk__timeout_read, .write = stk__seconds_write},
    {"cwd", STK_F_TEXT, F(secret.cwd), 0, 1, STK_CWD_MAX - 1},
    {"files", STK_F_CUSTOM, F(secret.files), .read = stk__files_read, .write = stk__files_write,
     .done = stk__files_free},
    {"priority", STK_F_INT, F(req.priority), 0, 0, 9},
    {"deadline_seconds", STK_F_CUSTOM, F(deadline), .read = stk__deadline_read, .write = stk__seconds_write},
    {"retry", STK_F_TEXT, F(req.retry)},
    {"labels", STK_F_MAP, F(req.labels), 0, 0, STK_LABELS_MAX},
    {"stdin", STK_F_BYTES, F(secret.stdin_data)},
    {"stdin_base64", STK_F_CUSTOM, F(stdin_base64), .read = stk__base64_read, .write = stk__base64_write,
     .done = stk__bytes_free},
    {"collect", STK_F_STRV, F(secret.collect), 0, 0, STK_FILES_MAX},
    STK_FIELD_END,
};

#define C(m) .offset = offsetof(body, req.m)
static const stk__check checks[] = {
    {"agent", C(agent), STK__AGENT, NULL, STK__FULL},
    {"backend", C(backend), STK__WORD, STK__BACKENDS},
    {"image", C(image), STK__IMAGE},
    {"retry", C(retry), STK__WORD, "never|always", STK__FULL},
    {"labels", C(labels), STK__LABELS},
    {0},
};

static int stdin_take(body *in, stk_err *err)
{
    if (!in->stdin_base64.set)
        return 0;
    if (in->secret.stdin_data.set)
        return stk_err_field(err, STK_E_FIELD, "/stdin_base64", "give stdin or stdin_base64, not both");
    in->secret.stdin_data = in->stdin_base64;
    in->stdin_base64 = (stk_bytes){0};
    return 0;
}

static int fill(body *in, stk_jv v, bool plan, stk_wall now, stk_err *err)
{
    in->req.v = STK_MESSAGE_VERSION;
    memcpy(in->req.kind, plan ? "plan" : "run", plan ? 5 : 4);
    memcpy(in->req.retry, "never", 6);
    in->req.priority = 5;
    in->req.timeout = stk_ns(plan ? 0 : STK_TIMEOUT_DEF_NS);
    int rc = stk_fields_decode(plan ? plan_fields : run_fields, v, in, err);
    if (rc < 0) {
        stk__explain(run_fields, checks, err);
        return rc;
    }
    if ((rc = stk__checks_run(checks, in, err)) < 0 || (rc = stdin_take(in, err)) < 0 ||
        (rc = stk_command_decode(in->command, &in->secret.env, &in->secret.command, err)) < 0)
        return rc;
    if (in->deadline.ns > 0)
        in->req.deadline = stk_wall_add(now, in->deadline);
    return stk__paths_check(&in->secret.collect, "collect", err);
}

int stk_request_from_api(stk_jv v, bool plan, stk_wall now, stk_request *ret_req, stk_run_secret *ret_secret,
                         stk_err *err)
{
    if (!stk_jv_is(v, STK_J_OBJECT))
        return stk_err_field(err, STK_E_FIELD, "", "the body must be a JSON object, not %s",
                             stk_jtype_name(stk_jv_type(v)));
    body *in = stk_xcalloc(1, sizeof(*in));
    int rc = fill(in, v, plan, now, err);
    if (rc == 0) {
        *ret_req = in->req;
        *ret_secret = in->secret;
    } else {
        stk_fields_done(run_fields, in);
        stk_strv_done(&in->secret.command);
    }
    free(in);
    return rc;
}
