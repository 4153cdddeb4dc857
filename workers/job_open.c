/* From an assignment to a run that may go on: the request is read and opened, and the configuration that it
 * was accepted under is here. */
#include "workers/job_impl.h"

#define VIEW_PAUSE stk_ms(2)

static void step_view(stk_job *job);

static void on_view(void *arg)
{
    stk_job *job = arg;
    if (!job->ending)
        step_view(job);
}

/* A run never goes by a configuration older than the one it was accepted under. */
static void step_view(stk_job *job)
{
    bool behind = stk_view_version(job->ctx->view, job->req.tenant) < job->req.config_version;
    if (behind && !job->limit_timer) {
        job->limit_timer = stk_timer_new(job->ctx->loop, on_view, job);
        job->view_until = stk_mono_add(stk_mono_now(), STK_VIEW_LIMIT);
    }
    if (behind && !job->cancelled && stk_mono_before(stk_mono_now(), job->view_until)) {
        stk_timer_set(job->limit_timer, VIEW_PAUSE);
        return;
    }
    if (job->limit_timer)
        stk_timer_free(STK_TAKE(job->limit_timer));
    if (behind && !job->cancelled)
        stk_job_give_back(job, "the configuration it was accepted under is not here", true);
    else
        job->next(job);
}

void stk_job_open(stk_job *job, void (*next)(stk_job *job))
{
    stk_err err;
    if (stk_request_decode(stk_bytes_view(&job->asg.request), &job->req, &err) < 0) {
        stk_log_err(STK_LOG_ERROR, &job->who, &err, "a request that can't be read"); /* it has no tenant */
        stk_job_give_back(job, err.detail, true);
        return;
    }
    memcpy(job->subject.tenant, job->req.tenant, sizeof(job->subject.tenant));
    memcpy(job->subject.agent, job->req.agent, sizeof(job->subject.agent));
    memcpy(job->subject.actor, job->req.actor, sizeof(job->subject.actor));
    if (stk_request_open(&job->req, job->ctx->ring, &job->secret, &err) < 0)
        stk_job_conclude(job, STK_REASON_REFUSED, err.detail);
    else {
        job->next = next;
        step_view(job);
    }
}
