/* POST /execute: a request, a command, an answer in one of two forms. */
#include "workers/runtime/answer.h"
#include "workers/runtime/problem.h"
#include "workers/runtime/routes.h"
#include "workers/runtime/stream.h"
#include <stdio.h>

#define BODY_MAX (8u << 20)

typedef struct execution {
    stk_runtime *rt;
    stk_http_x *x; /* NULL once the client is gone */
    stk_buf body;
    stk_exec_request req;
    bool decoded;
    stk_command_spec spec;
    stk_command *cmd;
    bool ended; /* the command's `done` was called */
    bool streaming;
    stk_stream stream;
    bool answering;
    stk_kept kept[2];
    stk_exec_end end;
    stk_answer answer;
} execution;

static void free_execution(execution *e)
{
    if (e->cmd)
        stk_command_free(e->cmd);
    if (e->decoded)
        stk_exec_request_done(&e->req);
    if (e->answering)
        stk_answer_done(&e->answer);
    stk_stream_done(&e->stream);
    stk_buf_done(&e->body);
    free(e);
}

static execution *state_of(stk_exchange *ex)
{
    if (!ex->state) {
        execution *e = stk_xcalloc(1, sizeof(*e));
        e->rt = ex->rt;
        e->x = ex->x;
        e->body = STK_BUF(BODY_MAX);
        stk_stream_init(&e->stream);
        ex->state = e;
    }
    return ex->state;
}

static void on_data(stk_exchange *ex, stk_str data)
{
    stk_buf_str(&state_of(ex)->body, data);
}

static void on_started(stk_command *cmd, void *arg)
{
    execution *e = arg;
    if (e->streaming && e->x)
        stk_stream_pump(&e->stream, cmd, e->x);
}

/* What never ran is not a result: the client may try again. */
static void answer_not_started(execution *e, int errnum, stk_start_stage stage)
{
    stk_err err;
    if (stage == STK_STAGE_CWD)
        stk_err_field(&err, STK_E_FIELD, "/cwd", "cwd: %s", strerrordesc_np(errnum));
    else if (stage == STK_STAGE_FORK)
        stk_err_set(&err, STK_E_UNAVAILABLE, "no process could be started: %s", strerrordesc_np(errnum));
    else
        stk_err_set(&err, STK_E_TOO_LARGE,
                    "arguments and environment are over this system's limit (ARG_MAX); send them as a file "
                    "with POST /upload");
    stk_rt_refuse(e->x, &err);
}

static void answer_whole(execution *e)
{
    for (int which = 0; which < 2; which++)
        e->kept[which] = stk_output_finish(stk_command_output(e->cmd, which));
    e->end = *stk_command_end(e->cmd);
    stk_answer_init(&e->answer, e->kept, &e->end, e->req.base64);
    e->answering = true;
    stk_answer_pump(&e->answer, e->x);
}

static void on_command_done(stk_command *cmd, void *arg)
{
    execution *e = arg;
    e->rt->running--;
    e->ended = true;
    if (!e->x) {
        free_execution(e);
        return;
    }
    stk_start_stage stage;
    int errnum = stk_command_not_started(cmd, &stage);
    if (errnum)
        answer_not_started(e, errnum, stage);
    else if (e->streaming)
        stk_stream_finish(&e->stream, cmd, e->x);
    else
        answer_whole(e);
}

static const stk_command_events events = {
    .started = on_started, .output = on_started, .done = on_command_done};

static bool wants_stream(stk_http_x *x)
{
    stk_buf value STK_AUTO(stk_buf_done) = STK_BUF(16);
    if (!stk_query_get(stk_http_query(x), "stream", &value))
        return false;
    stk_str v = stk_buf_view(&value);
    return stk_str_eq(v, STK_STR("1")) || stk_str_eq(v, STK_STR("true"));
}

static int start(execution *e, stk_err *err)
{
    stk_runtime *rt = e->rt;
    if (rt->running >= rt->opt->max_concurrent)
        return stk_err_set(err, STK_E_BUSY, "%zu commands are running already", rt->running);
    e->decoded = true;
    int rc = stk_exec_request_decode(stk_buf_view(&e->body), &rt->defaults, &e->req, err);
    if (rc < 0)
        return rc;
    stk_buf_done(&e->body);
    e->body = STK_BUF(BODY_MAX);
    e->streaming = wants_stream(e->x);
    e->spec = (stk_command_spec){
        .argv = e->req.argv,
        .envp = e->req.envp,
        .path = e->req.path,
        .cwd = e->req.cwd,
        .input = e->req.has_input ? stk_str_n(e->req.input.p ? e->req.input.p : "", e->req.input.n)
                                  : (stk_str){NULL, 0},
        .timeout = e->req.timeout,
        .cap = e->req.max_output,
    };
    rc = stk_command_start(&rt->commands, &e->spec, &events, e, &e->cmd, err);
    if (rc == 0)
        rt->running++;
    return rc;
}

static void on_end(stk_exchange *ex)
{
    execution *e = state_of(ex);
    stk_err err;
    if (start(e, &err) < 0)
        stk_rt_refuse(e->x, &err);
}

static void on_writable(stk_exchange *ex)
{
    execution *e = state_of(ex);
    if (e->streaming && e->cmd)
        stk_stream_pump(&e->stream, e->cmd, e->x);
    else if (e->answering)
        stk_answer_pump(&e->answer, e->x);
}

static void on_done(stk_exchange *ex, bool gone)
{
    execution *e = ex->state;
    if (!e)
        return;
    e->x = NULL;
    if (e->cmd && !e->ended)
        stk_command_cancel(e->cmd);
    else
        free_execution(e);
}

const stk_call stk_call_execute = {
    .body = BODY_MAX,
    .data = on_data,
    .end = on_end,
    .writable = on_writable,
    .done = on_done,
};
