#include "workers/job.h"
#include "proto/base/fail.h"
#include "workers/job_impl.h"
#include <stdio.h>

#define CREATE_LIMIT stk_sec(30)
#define EXTRA_TIME   stk_sec(5) /* beyond the command's own timeout, before we end the sandbox ourselves */
#define OUTPUT_LIMIT ((size_t)STK_OUTPUT_MAX)

static void step_acquire(stk_job *job);
static void step_create(stk_job *job);
static void step_policy(stk_job *job);
static void step_launch(stk_job *job);
static void step_start(stk_job *job);
static void step_execute(stk_job *job);

/* --- what the box says
 * -------------------------------------------------------------------------------------- */

static void on_box_ready(stk_box *box, const stk_err *err, void *arg)
{
    stk_job *job = arg;
    if (err)
        job->box = NULL; /* it is gone already */
    if (job->ending)
        return;
    if (err) {
        stk_log_err(STK_LOG_WARN, &job->who, err, "no sandbox");
        stk_job_give_back(job, err->detail, true);
        return;
    }
    job->box_ready = true;
    step_policy(job);
}

static void on_box_policy(stk_box *box, bool ok, const char *detail, void *arg)
{
    stk_job *job = arg;
    job->policies -= job->policies > 0;
    if (job->ending || job->stage.collecting)
        return;
    if (!ok) { /* a command must not run on under the policy before */
        stk_job_conclude(job, STK_REASON_REFUSED, detail);
    } else if (job->want_policy && job->policies == 0) {
        job->want_policy = false;
        stk_stage_in(job, step_launch);
    }
}

static void on_box_record(stk_box *box, const stk_egress_record *rec, stk_str json, void *arg)
{
    stk_job *job = arg;
    stk_audit_row row;
    stk_evidence_add(&job->evidence, rec, json);
    if (stk_row_from_record(&job->subject, rec, json, &row))
        stk_job_row(job, &row);
}

static void on_box_output(stk_box *box, bool stderr_, stk_str data, void *arg)
{
    stk_job *job = arg;
    if (job->ending)
        return;
    stk_output_add(&job->out[stderr_], data);
    stk_job_output(job, stderr_, data);
}

static void on_box_gap(stk_box *box, bool stderr_, int64_t bytes, void *arg)
{
    stk_job *job = arg;
    if (!job->ending)
        stk_output_gap(&job->out[stderr_], bytes);
}

static void on_box_exit(stk_box *box, const stk_exec_end *end, void *arg)
{
    stk_job *job = arg;
    if (job->ending)
        return;
    job->end = *end;
    job->end.oom_killed = end->oom_killed || stk_box_oom_kills(box) > 0;
    stk_job_exited(job);
}

static void on_box_refused(stk_box *box, const char *detail, void *arg)
{
    stk_job_conclude(arg, STK_REASON_REFUSED, detail);
}

static void on_box_lost(stk_box *box, bool oom, const char *why, void *arg)
{
    stk_job *job = arg;
    if (job->ending)
        return;
    job->box_ready = job->box_ready && job->launched;
    if (job->stage.collecting) {
        stk_stage_stop(job, why);
    } else if (job->warm && !job->launched) { /* nothing was tried in it: another one is made */
        stk_log_warn(&job->who, "pooled sandbox %s is lost, a new one is made: %s", job->subject.sandbox,
                     why);
        job->warm = false;
        job->policies = 0;
        stk_job_discard(job);
        step_create(job);
    } else if (oom && job->executing) {
        job->end = (stk_exec_end){.exit_code = 137, .signal = 9, .oom_killed = true};
        stk_job_conclude(job, STK_REASON_OOM, why);
    } else {
        stk_job_fail(job, STK_REASON_SANDBOX_FAILED, why, true);
    }
}

static const stk_box_ops box_ops = {.on_ready = on_box_ready,
                                    .on_policy = on_box_policy,
                                    .on_record = on_box_record,
                                    .on_drained = stk_job_on_drained,
                                    .on_output = on_box_output,
                                    .on_gap = on_box_gap,
                                    .on_exit = on_box_exit,
                                    .on_refused = on_box_refused,
                                    .on_lost = on_box_lost};

/* --- the steps
 * ------------------------------------------------------------------------------------------------ */

static void make_spec(stk_job *job, const stk_agent_config *agent, stk_sandbox_spec *ret)
{
    const stk_tenant_view *tenant = stk_view_tenant(job->ctx->view, job->req.tenant);
    *ret = (stk_sandbox_spec){.limits = agent->limits, .max_concurrent = 1};
    ret->require_runtime_class = tenant->sandbox.require_runtime_class;
    stk_id_new("sbx", stk_wall_now(), ret->id);
    memcpy(ret->run, job->req.id, sizeof(ret->run));
    memcpy(ret->tenant, job->req.tenant, sizeof(ret->tenant));
    memcpy(ret->agent, job->req.agent, sizeof(ret->agent));
    memcpy(ret->image, *job->req.image ? job->req.image : agent->image, sizeof(ret->image));
}

static void step_acquire(stk_job *job)
{
    stk_err err;
    if (job->cancelled) {
        stk_job_conclude(job, STK_REASON_CANCELLED, "");
        return;
    }
    job->backend = stk_ctx_backend(job->ctx, job->asg.backend);
    if (!stk_view_agent(job->ctx->view, job->req.tenant, job->req.agent, &err)) {
        stk_job_conclude(job, STK_REASON_REFUSED, err.detail);
        return;
    }
    if (!job->backend || !job->backend->probe.ok) {
        snprintf(err.detail, sizeof(err.detail), "backend_unavailable: %s: %s", job->asg.backend,
                 job->backend ? job->backend->probe.reason : "this worker has no such backend");
        stk_job_conclude(job, STK_REASON_REFUSED, err.detail);
        return;
    }
    snprintf(job->subject.backend, sizeof(job->subject.backend), "%s", job->asg.backend);
    snprintf(job->subject.isolation, sizeof(job->subject.isolation), "%s",
             stk_strength_text(job->backend->probe.strength));
    job->box = *job->asg.sandbox ? job->ops.take_warm(job->asg.sandbox, job->ops.arg) : NULL;
    job->warm = job->box != NULL;
    if (job->warm) {
        stk_box_own(job->box, &box_ops, job);
        snprintf(job->subject.sandbox, sizeof(job->subject.sandbox), "%s", stk_box_id(job->box));
        stk_box_probe(job->box);
    } else {
        step_create(job);
    }
}

static void step_create(stk_job *job)
{
    stk_err err;
    stk_sandbox_spec spec;
    const stk_agent_config *agent = stk_view_agent(job->ctx->view, job->req.tenant, job->req.agent, &err);
    if (!agent) {
        stk_job_conclude(job, STK_REASON_REFUSED, err.detail);
        return;
    }
    make_spec(job, agent, &spec);
    memcpy(job->subject.sandbox, spec.id, sizeof(job->subject.sandbox));
    if (stk_box_new(job->ctx->loop, job->ctx->syncer, job->backend->be, &spec, CREATE_LIMIT, &box_ops, job,
                    &job->box, &err) < 0)
        stk_job_give_back(job, err.detail, true);
}

static int send_policy(stk_job *job, stk_err *err)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_CONTROL_LINE_MAX);
    int64_t version = 0;
    int rc = stk_job_policy_text(job, &text, &version, err);
    if (rc == 0)
        rc = stk_box_policy(job->box, version, job->req.id, stk_buf_view(&text), err);
    job->policies += rc == 0;
    return rc;
}

static void step_policy(stk_job *job)
{
    stk_err err;
    job->want_policy = true;
    if (job->cancelled)
        stk_job_conclude(job, STK_REASON_CANCELLED, "");
    else if (send_policy(job, &err) < 0)
        stk_job_conclude(job, STK_REASON_REFUSED, err.detail);
}

static void on_launch(stk_publish_outcome outcome, void *arg)
{
    stk_job *job = arg;
    job->calls--;
    if (outcome == STK_PUBLISH_REFUSED) { /* it is not there: nothing has to be closed either */
        job->launched = false;
        stk_launch_file_remove(job->ctx, job->subject.sandbox);
    }
    if (job->ending)
        stk_job_end_step(job);
    else if (outcome != STK_PUBLISHED || stk_failpoint("worker.after_launch", NULL) < 0)
        stk_job_give_back(job, "the launch row could not be made durable", true);
    else
        step_start(job);
}

static void step_launch(stk_job *job)
{
    stk_audit_row row;
    stk_err err;
    stk_buf details STK_AUTO(stk_buf_done) = STK_BUF(4096);
    if (stk_failpoint("worker.before_launch", &err) < 0) {
        stk_job_give_back(job, err.detail, true);
        return;
    }
    stk_job_launch_details(job, &details);
    stk_row_make(&job->subject, STK_AUDIT_LAUNCH, 0, stk_buf_view(&details), &row);
    job->launched = true;
    if (stk_launch_file_write(job->ctx, &row, &err) < 0) {
        stk_log_err(STK_LOG_ERROR, &job->who, &err, "no launch");
        job->launched = false;
        stk_job_give_back(job, err.detail, true);
    } else {
        job->calls++;
        stk_row_offer(job->ctx, &row, on_launch, job);
    }
    stk_audit_row_done(&row);
}

static void on_start(stk_op *base, void *arg)
{
    stk_job *job = arg;
    stk_op_start *op = (stk_op_start *)base;
    job->calls--;
    if (job->ending) {
        job->started = job->started || (base->rc == 0 && op->outcome == STK_START_OK);
        stk_job_end_step(job);
    } else if (base->rc < 0) {
        stk_job_give_back(job, base->err.detail, false);
    } else if (op->outcome == STK_START_STALE) {
        job->lost_race = true;
        stk_job_conclude(job, STK_REASON_WORKER_LOST, "the assignment is not ours any more");
    } else if (op->outcome == STK_START_CANCELLED) {
        stk_job_conclude(job, STK_REASON_CANCELLED, "");
    } else {
        job->started = true;
        step_execute(job);
    }
}

static void step_start(stk_job *job)
{
    stk_op_start *op = stk_op_new(STK_OP_START, on_start, job);
    memcpy(op->in.run, job->req.id, sizeof(op->in.run));
    memcpy(op->in.assignment, job->asg.assignment, sizeof(op->in.assignment));
    memcpy(op->in.worker, job->ctx->worker, sizeof(op->in.worker));
    memcpy(op->in.incarnation, job->ctx->incarnation, sizeof(op->in.incarnation));
    op->in.now = stk_wall_now();
    job->calls++;
    stk_state_call(job->ctx->state, op);
}

static void on_limit(void *arg)
{
    stk_job *job = arg;
    job->end = (stk_exec_end){.exit_code = 124, .timed_out = true};
    stk_job_conclude(job, STK_REASON_TIMEOUT,
                     "the runtime did not end the command in time; the sandbox was ended");
}

static void step_execute(stk_job *job)
{
    stk_err err;
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    job->begun = stk_wall_now();
    if (stk_failpoint("worker.before_execute", &err) < 0 ||
        !stk_mono_before(stk_mono_now(), job->ctx->lease_until)) {
        stk_job_fail(job, STK_REASON_WORKER_LOST, "the lease ended just before the command started", false);
        return;
    }
    stk_span limit = stk_ns(job->req.timeout.ns + EXTRA_TIME.ns);
    if (stk_job_execute_body(job, &body, &err) < 0) {
        stk_job_conclude(job, STK_REASON_REFUSED, err.detail);
        return;
    }
    if (stk_box_execute(job->box, stk_buf_view(&body), limit, &err) < 0) {
        stk_job_fail(job, STK_REASON_SANDBOX_FAILED, err.detail, true);
        return;
    }
    job->executing = true;
    job->limit_timer = stk_timer_new(job->ctx->loop, on_limit, job);
    stk_timer_set(job->limit_timer, limit);
}

/* --- from outside
 * ------------------------------------------------------------------------------------------------ */

static void begin(void *arg)
{
    stk_job *job = arg;
    if (!job->ending)
        stk_job_open(job, step_acquire);
}

int stk_job_new(stk_ctx *ctx, stk_assignment *asg, int64_t offset, const stk_job_ops *ops, stk_job **ret,
                stk_err *err)
{
    stk_job *job = stk_xcalloc(1, sizeof(*job));
    job->ctx = ctx;
    job->ops = *ops;
    job->asg = *asg;
    *asg = (stk_assignment){0};
    job->offset = offset;
    memcpy(job->subject.run, job->asg.run, sizeof(job->subject.run));
    memcpy(job->subject.assignment, job->asg.assignment, sizeof(job->subject.assignment));
    memcpy(job->subject.worker, ctx->worker, sizeof(job->subject.worker));
    job->who =
        (stk_who){.run = job->asg.run, .tenant = job->subject.tenant, .assignment = job->asg.assignment};
    stk_evidence_init(&job->evidence);
    stk_output_init(&job->out[0], OUTPUT_LIMIT);
    stk_output_init(&job->out[1], OUTPUT_LIMIT);
    job->live = STK_BUF(1 << 16);
    stk_loop_post(ctx->loop, begin, job);
    *ret = job;
    return 0;
}

const char *stk_job_run(const stk_job *job)
{
    return job->asg.run;
}

const char *stk_job_assignment(const stk_job *job)
{
    return job->asg.assignment;
}

int64_t stk_job_offset(const stk_job *job)
{
    return job->offset;
}

bool stk_job_warm(const stk_job *job)
{
    return job->warm;
}

void stk_job_cancel(stk_job *job)
{
    job->cancelled = true; /* seen by the next step when nothing runs yet */
    if (job->box_ready && !job->stage.collecting)
        stk_job_conclude(job, STK_REASON_CANCELLED, "");
}

void stk_job_abandon(stk_job *job, const char *why)
{
    if (job->stage.collecting)
        stk_stage_stop(job, why);
    else
        stk_job_fail(job, STK_REASON_WORKER_LOST, why, false);
}

void stk_job_policy_changed(stk_job *job)
{
    stk_err err;
    if (!job->box_ready || job->ending)
        return;
    if (!job->started && !stk_view_agent(job->ctx->view, job->req.tenant, job->req.agent, &err))
        stk_job_conclude(job, STK_REASON_REFUSED, err.detail);
    else if (send_policy(job, &err) < 0)
        stk_log_err(STK_LOG_WARN, &job->who, &err, "the new policy was not sent");
}
