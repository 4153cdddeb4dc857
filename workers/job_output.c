#include "proto/message/live.h"
#include "workers/job_impl.h"

/* Live output goes to state in pieces: when enough has gathered, when the stream changes, or a little later.
 */
#define PIECE_BYTES ((size_t)32 << 10)
#define PIECE_AFTER stk_ms(50)

static void on_added(stk_op *op, void *arg)
{
    stk_job *job = arg;
    job->rows--;
    stk_job_end_step(job);
}

void stk_job_output_flush(stk_job *job)
{
    stk_err err;
    if (!job->live.n)
        return;
    stk_op_output_add *op = stk_op_new(STK_OP_OUTPUT_ADD, on_added, job);
    memcpy(op->in.run, job->asg.run, sizeof(op->in.run));
    memcpy(op->in.assignment, job->asg.assignment, sizeof(op->in.assignment));
    op->in.offset = job->live_offset;
    op->in.length = (int64_t)job->live.n;
    if (stk_live_seal(job->ctx->ring, job->asg.run, job->live_offset, job->live_stderr,
                      stk_buf_view(&job->live), &op->in.sealed, &err) < 0) {
        stk_log_err(STK_LOG_ERROR, &job->who, &err, "live output is lost");
        stk_op_free(&op->op);
    } else {
        job->rows++;
        stk_state_call(job->ctx->state, op);
    }
    job->live_offset += (int64_t)job->live.n;
    stk_buf_reset(&job->live);
}

static void on_timer(void *arg)
{
    stk_job_output_flush(arg);
}

void stk_job_output(stk_job *job, bool stderr_, stk_str data)
{
    if (stderr_ != job->live_stderr)
        stk_job_output_flush(job);
    job->live_stderr = stderr_;
    while (data.n) {
        size_t n = stk_min(data.n, PIECE_BYTES);
        stk_buf_add(&job->live, data.p, n);
        data = stk_str_n(data.p + n, data.n - n);
        if (job->live.n >= PIECE_BYTES)
            stk_job_output_flush(job);
    }
    if (!job->live_timer)
        job->live_timer = stk_timer_new(job->ctx->loop, on_timer, job);
    if (job->live.n)
        stk_timer_set(job->live_timer, PIECE_AFTER);
}
