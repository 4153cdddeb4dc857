/* The inside of a job, shared by job.c (steps up to the command), job_end.c (from its end to the last row)
 * and job_texts.c (documents). */
#ifndef STK_WORKERS_JOB_IMPL_H
#define STK_WORKERS_JOB_IMPL_H

#include "proto/base/log.h"
#include "workers/evidence.h"
#include "workers/job.h"
#include "workers/launch_file.h"
#include "workers/rows.h"
#include "workers/stage.h"

struct stk_job {
    stk_ctx *ctx;
    stk_job_ops ops;
    stk_assignment asg;
    stk_request req;
    stk_run_secret secret;
    stk_row_subject subject;
    stk_who who;
    int64_t offset;

    stk_worker_backend *backend;
    stk_box *box;
    bool box_ready, warm;
    bool launched;  /* the launch row is (or may be) durable */
    bool started;   /* state says running */
    bool executing; /* the command was, or may have been, sent */
    bool ending;    /* the verdict is made: nothing but the end may follow */
    bool cancelled;
    bool want_policy;
    size_t policies; /* sent to the proxy and not answered yet */
    size_t calls;    /* launch row and start operation under way: the end waits for them */
    size_t rows;     /* other rows, outbox items and removals under way */
    int end_at;      /* the step of the end that is under way (job_end.c) */
    int entered;     /* … and that was begun */
    bool step_posted;
    bool giving_back, counts;
    char journal[256];

    stk_stage stage;
    stk_evidence evidence;
    stk_output out[2]; /* stdout, stderr */
    stk_buf live;      /* output not yet given to state */
    bool live_stderr;
    int64_t live_offset;
    stk_timer *live_timer, *limit_timer, *drain_timer;
    stk_exec_end end;
    stk_reason reason;
    char detail[512];
    stk_wall begun, ended;
    void (*next)(stk_job *job); /* after stk_job_open */
    stk_mono view_until;        /* the configuration that the run was accepted under is awaited until then */
    int64_t outbox;
    bool lost_race; /* somebody else made the verdict */
};

/* job_open.c */
/* Reads and opens the request, waits (bounded) for the configuration it was accepted under, then goes on with
 * `next`, or ends the run. */
void stk_job_open(stk_job *job, void (*next)(stk_job *job));

/* job_texts.c */
int stk_job_execute_body(stk_job *job, stk_buf *out, stk_err *err) STK_MUST_USE;
int stk_job_policy_text(stk_job *job, stk_buf *out, int64_t *ret_version, stk_err *err) STK_MUST_USE;
void stk_job_launch_details(stk_job *job, stk_buf *out);
void stk_job_teardown_details(stk_job *job, stk_buf *out);
/* kind "result" or "finished"; `seal`: with output, as much of it as fits into one record. */
int stk_job_event_text(stk_job *job, const char *kind, bool seal, stk_buf *out, stk_err *err) STK_MUST_USE;

/* job_end.c */
/* The verdict: everything from here on is the way out. Repeated calls are ignored. */
void stk_job_conclude(stk_job *job, stk_reason reason, const char *detail);
/* The command ended by itself, as job->end says: its files are fetched, then it is concluded. */
void stk_job_exited(stk_job *job);
/* Ours, before the command was sent: back to the queue. count: this attempt counts. */
void stk_job_give_back(stk_job *job, const char *why, bool count);
/* Ours, whenever: given back when the command was not sent, or is asked to be repeated always; else `reason`
 * ends it. */
void stk_job_fail(stk_job *job, stk_reason reason, const char *why, bool count);
/* Goes on with the end after something that it waited for. */
void stk_job_end_step(stk_job *job);
void stk_job_on_drained(stk_box *box, void *arg);
/* Removes the job's box beside the job, which waits for it before it ends. */
void stk_job_discard(stk_job *job);
/* Adds a row that the job waits for. */
void stk_job_row(stk_job *job, stk_audit_row *row);
/* job_output.c */
void stk_job_output(stk_job *job, bool stderr_, stk_str data);
void stk_job_output_flush(stk_job *job);

#endif
