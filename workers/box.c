#include "workers/box.h"
#include "workers/frames.h"

#define HEALTH_LIMIT stk_sec(10)
#define POLICY_LIMIT stk_sec(5) /* a proxy that does not say what it does with a policy is stuck */
#define HOST         "sandbox"

struct stk_box {
    stk_loop *loop;
    stk_syncer *syncer;
    stk_backend *be;
    stk_sandbox_spec spec;
    stk_sandbox *sbx;
    stk_proxy_link *proxy;
    stk_http_conn *health, *command;
    stk_http_conn *control; /* NULL until files are sent or fetched */
    stk_http_done control_done;
    void *control_arg;
    stk_frames frames;
    bool running; /* a command was sent and has not ended */
    bool lost;
    bool draining;
    stk_timer *policy_timer;
    size_t policies;    /* sent and not answered */
    bool destroy_asked; /* before create was done */
    const stk_box_ops *ops;
    void *arg;
    char *journal_out;
    stk_destroy_done destroy_done;
    void *destroy_arg;
};

static void report_lost(stk_box *box, bool oom, const char *why)
{
    if (box->lost || box->destroy_asked)
        return;
    box->lost = true;
    box->ops->on_lost(box, oom, why, box->arg);
}

static void on_sandbox_lost(stk_sandbox *sbx, bool oom, const char *why, void *arg)
{
    report_lost(arg, oom, why);
}

/* --- the proxy -------------------------------------------------------------------------------------------
 */

static void on_policy(bool ok, int64_t version, const char *detail, void *arg)
{
    stk_box *box = arg;
    box->policies -= box->policies > 0;
    if (box->policies == 0 && box->policy_timer)
        stk_timer_clear(box->policy_timer);
    if (box->ops->on_policy)
        box->ops->on_policy(box, ok, detail, box->arg);
}

static void on_policy_limit(void *arg)
{
    report_lost(arg, false, "the egress proxy did not answer to a policy in time");
}

static void on_record(const stk_egress_record *rec, stk_str json, void *arg)
{
    stk_box *box = arg;
    if (box->ops->on_record)
        box->ops->on_record(box, rec, json, box->arg);
}

static void on_drained(void *arg)
{
    stk_box *box = arg;
    if (!box->draining)
        return;
    box->draining = false;
    box->ops->on_drained(box, box->arg);
}

static void on_proxy_end(void *arg)
{
    report_lost(arg, false, "the egress proxy closed its control stream");
    on_drained(arg);
}

static const stk_proxy_link_ops proxy_ops = {
    .on_policy = on_policy, .on_record = on_record, .on_drained = on_drained, .on_end = on_proxy_end};

/* --- the command link --------------------------------------------------------------------------------------
 */

static void on_frame(const stk_frame *frame, void *arg)
{
    stk_box *box = arg;
    if (frame->kind == STK_FRAME_OUTPUT) {
        box->ops->on_output(box, frame->stderr_, frame->data, box->arg);
    } else if (frame->kind == STK_FRAME_GAP) {
        box->ops->on_gap(box, frame->stderr_, frame->bytes, box->arg);
    } else {
        box->running = false;
        box->ops->on_exit(box, &frame->end, box->arg);
    }
}

static void on_command_head(stk_http_conn *conn, const stk_head *head, void *arg)
{
    stk_box *box = arg;
    stk_frames_begin(&box->frames, head->status);
}

static void on_command_body(stk_http_conn *conn, stk_str data, void *arg)
{
    stk_box *box = arg;
    stk_err err;
    if (stk_frames_feed(&box->frames, data, on_frame, box, &err) < 0 && box->running)
        report_lost(box, false, err.detail);
}

static void on_command_end(stk_http_conn *conn, bool reusable, void *arg)
{
    stk_box *box = arg;
    if (!box->running)
        return;
    if (box->frames.status >= 400 && box->frames.status < 500) {
        box->running = false;
        char detail[512];
        stk_frames_refusal(&box->frames, detail, sizeof(detail));
        box->ops->on_refused(box, detail, box->arg);
    } else {
        report_lost(box, false, "the runtime's answer ended without an exit status");
    }
}

static void on_command_fail(stk_http_conn *conn, const stk_err *err, bool sent, void *arg)
{
    report_lost(arg, false, err->detail);
}

static const stk_http_conn_ops command_ops = {.on_head = on_command_head,
                                              .on_body = on_command_body,
                                              .on_end = on_command_end,
                                              .on_fail = on_command_fail};

/* --- the health link ---------------------------------------------------------------------------------------
 */

static void on_health_fail(stk_http_conn *conn, const stk_err *err, bool sent, void *arg)
{
    report_lost(arg, false, "the runtime closed its health link");
}

static const stk_http_conn_ops health_ops = {.on_fail = on_health_fail};

static void on_health(const stk_err *err, bool sent, const stk_head *head, stk_str body, void *arg)
{
    stk_box *box = arg;
    stk_err why;
    if (!err && head->status != 200) {
        stk_err_set(&why, STK_E_SANDBOX, "the runtime answered its health check with %d", head->status);
        err = &why;
    }
    if (err)
        report_lost(box, false, err->detail);
    else if (!box->lost)
        box->ops->on_ready(box, NULL, box->arg);
}

void stk_box_probe(stk_box *box)
{
    stk_err err;
    if (stk_http_call(box->health, "GET", "/", HOST, "", STK_STR(""), 4096, HEALTH_LIMIT, on_health, box,
                      &err) < 0)
        report_lost(box, false, err.detail);
}

/* --- the control link --------------------------------------------------------------------------------------
 */

static void on_control_fail(stk_http_conn *conn, const stk_err *err, bool sent, void *arg)
{
    report_lost(arg, false, "the runtime closed its control link");
}

static const stk_http_conn_ops control_ops = {.on_fail = on_control_fail};

static void on_control(const stk_err *err, bool sent, const stk_head *head, stk_str body, void *arg)
{
    stk_box *box = arg;
    stk_http_done done = STK_TAKE(box->control_done);
    if (done)
        done(err, sent, head, body, box->control_arg);
}

int stk_box_call(stk_box *box, const char *method, const char *target, const char *headers, stk_str body,
                 uint64_t most, stk_span limit, stk_http_done done, void *arg, stk_err *err)
{
    if (!box->control) {
        int rc = stk_http_conn_new(stk_loop_base(box->loop), box->sbx->link_control, NULL, &control_ops, box,
                                   &box->control, err);
        if (rc < 0)
            return rc;
        box->sbx->link_control = -1;
    }
    box->control_done = done;
    box->control_arg = arg;
    return stk_http_call(box->control, method, target, HOST, headers, body, most, limit, on_control, box,
                         err);
}

/* --- life
 * ---------------------------------------------------------------------------------------------------- */

static void box_free(stk_box *box)
{
    if (box->proxy)
        stk_proxy_link_free(box->proxy);
    if (box->health)
        stk_http_conn_free(box->health);
    if (box->command)
        stk_http_conn_free(box->command);
    if (box->control)
        stk_http_conn_free(box->control);
    if (box->policy_timer)
        stk_timer_free(box->policy_timer);
    stk_frames_done(&box->frames);
    free(box);
}

static int take_links(stk_box *box, stk_err *err)
{
    stk_sandbox *sbx = box->sbx;
    struct event_base *base = stk_loop_base(box->loop);
    int rc = stk_http_conn_new(base, sbx->link_health, NULL, &health_ops, box, &box->health, err);
    if (rc < 0)
        return rc;
    sbx->link_health = -1;
    rc = stk_http_conn_new(base, sbx->link_commands[0], NULL, &command_ops, box, &box->command, err);
    if (rc < 0)
        return rc;
    sbx->link_commands[0] = -1;
    rc = stk_proxy_link_new(box->loop, box->syncer, sbx->proxy_control, sbx->journal, &proxy_ops, box,
                            &box->proxy, err);
    if (rc == 0)
        sbx->proxy_control = -1;
    return rc;
}

static void on_destroyed(const stk_err *err, void *arg)
{
    stk_box *box = arg;
    stk_destroy_done done = box->destroy_done;
    void *destroy_arg = box->destroy_arg;
    free(box);
    done(err, destroy_arg);
}

static void destroy_now(stk_box *box)
{
    stk_sandbox *sbx = box->sbx;
    if (box->journal_out)
        memcpy(box->journal_out, sbx->journal_path, sizeof(sbx->journal_path));
    stk_box *shell = stk_xcalloc(1, sizeof(*shell));
    shell->destroy_done = box->destroy_done;
    shell->destroy_arg = box->destroy_arg;
    stk_backend *be = box->be;
    box_free(box);
    be->ops->destroy(sbx, on_destroyed, shell);
}

static void on_created(const stk_err *err, stk_sandbox *sbx, void *arg)
{
    stk_box *box = arg;
    if (err && box->destroy_asked) {
        on_destroyed(NULL, box);
        return;
    }
    if (err) {
        const stk_box_ops *ops = box->ops;
        ops->on_ready(box, err, box->arg);
        box_free(box);
        return;
    }
    stk_err own;
    box->sbx = sbx;
    if (box->destroy_asked)
        destroy_now(box);
    else if (take_links(box, &own) < 0)
        report_lost(box, false, own.detail);
    else
        stk_box_probe(box);
}

int stk_box_new(stk_loop *loop, stk_syncer *syncer, stk_backend *be, const stk_sandbox_spec *spec,
                stk_span limit, const stk_box_ops *ops, void *arg, stk_box **ret, stk_err *err)
{
    stk_box *box = stk_xcalloc(1, sizeof(*box));
    *box = (stk_box){.loop = loop, .syncer = syncer, .be = be, .spec = *spec, .ops = ops, .arg = arg};
    be->ops->create(be, spec, limit, on_created, on_sandbox_lost, box);
    *ret = box;
    return 0;
}

void stk_box_own(stk_box *box, const stk_box_ops *ops, void *arg)
{
    box->ops = ops;
    box->arg = arg;
    box->control_done = NULL;
}

const char *stk_box_id(const stk_box *box)
{
    return box->spec.id;
}

const stk_sandbox *stk_box_sandbox(const stk_box *box)
{
    return box->sbx;
}

const stk_sandbox_spec *stk_box_spec(const stk_box *box)
{
    return &box->spec;
}

int stk_box_policy(stk_box *box, int64_t version, const char *run, stk_str policy, stk_err *err)
{
    int rc = stk_proxy_link_policy(box->proxy, version, run, policy, err);
    if (rc < 0)
        return rc;
    if (box->policies++ == 0) {
        if (!box->policy_timer)
            box->policy_timer = stk_timer_new(box->loop, on_policy_limit, box);
        stk_timer_set(box->policy_timer, POLICY_LIMIT);
    }
    return 0;
}

int stk_box_execute(stk_box *box, stk_str body, stk_span limit, stk_err *err)
{
    stk_http_conn_limits limits = {.body = STK_RECORD_MAX, .first = limit, .stall = STK_SPAN_NEVER};
    box->running = true;
    return stk_http_conn_send(box->command, "POST", "/execute?stream=1", HOST,
                              "Content-Type: application/json\r\n", body, &limits, err);
}

bool stk_box_drain(stk_box *box)
{
    box->draining = box->proxy && stk_proxy_link_drain(box->proxy);
    return box->draining;
}

int64_t stk_box_oom_kills(const stk_box *box)
{
    return box->be->ops->oom_kills ? box->be->ops->oom_kills(box->sbx) : -1;
}

void stk_box_destroy(stk_box *box, char *journal, stk_destroy_done done, void *arg)
{
    box->destroy_asked = true;
    box->journal_out = journal;
    box->destroy_done = done;
    box->destroy_arg = arg;
    if (journal)
        journal[0] = '\0';
    if (box->sbx)
        destroy_now(box);
}
