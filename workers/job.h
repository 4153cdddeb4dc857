/* One assignment on its way through this worker. The steps and their order are the product's promise
 * (worker.h); each is one function of job.c, in that order. */
#ifndef STK_WORKERS_JOB_H
#define STK_WORKERS_JOB_H

#include "workers/box.h"
#include "proto/message/assignment.h"
#include "workers/ctx.h"

typedef struct stk_job stk_job;

typedef struct stk_job_ops {
    /* A warm sandbox that was taken for this run; NULL when this worker does not hold it (any more). */
    stk_box *(*take_warm)(const char *sandbox, void *arg);
    /* A sandbox is being created for a job, or is gone (for counts and the pool's ceiling). */
    void (*on_done)(stk_job *job,
                    void *arg); /* everything is durable, nothing is left; the job is freed after this */
    void *arg;
} stk_job_ops;

/* asg is taken over (and emptied). offset: its place on the lane. */
int stk_job_new(stk_ctx *ctx, stk_assignment *asg, int64_t offset, const stk_job_ops *ops, stk_job **ret,
                stk_err *err) STK_MUST_USE;
const char *stk_job_run(const stk_job *job);
const char *stk_job_assignment(const stk_job *job);
int64_t stk_job_offset(const stk_job *job);
bool stk_job_warm(const stk_job *job);
/* Somebody asked to cancel it: ends as soon as it can. */
void stk_job_cancel(stk_job *job);
/* The worker stops: what has not started goes back to the queue without counting, what runs is ended as
 * worker_lost (or repeated). */
void stk_job_abandon(stk_job *job, const char *why);
/* The configuration of this tenant changed: the newest policy goes to the proxy. */
void stk_job_policy_changed(stk_job *job);

#endif
