/* Files into a sandbox before its command starts, and out of it after it ended: one call after another on the
 * box's control link. What comes out is bounded, and what can't be had is listed with its error: it never
 * fails a run. */
#ifndef STK_WORKERS_STAGE_H
#define STK_WORKERS_STAGE_H

#include "proto/base/buf.h"
#include "proto/base/time.h"

#define STK_COLLECT_MAX 262144 /* bytes of all collected files of a run together */

typedef struct stk_job stk_job;
typedef void (*stk_stage_next)(stk_job *job);

/* Embedded in a job. */
typedef struct stk_stage {
    size_t at; /* the file under way */
    stk_stage_next next;
    bool collecting; /* the command has ended; its verdict waits for the files */
    stk_mono until;
    size_t left;   /* bytes that may still be collected */
    stk_buf files; /* entries of the result's "files", with commas */
    char why[160]; /* why the rest is not collected */
} stk_stage;

/* Sends the request's files, each whole before the next; then `next`. A file that the runtime refuses ends
 * the run as refused, a runtime that does not answer gives it back. */
void stk_stage_in(stk_job *job, stk_stage_next next);
/* Fetches what the request asks to collect; then `next`, always. */
void stk_stage_out(stk_job *job, stk_stage_next next);
/* No more will come: the rest is listed with `why`, and `next` follows. */
void stk_stage_stop(stk_job *job, const char *why);
/* Appends the JSON array of collected files: every path that was asked for once, in that order, as {"path",
 * "size", "content_base64"} or {"path", "error"}. */
void stk_stage_write(stk_job *job, stk_buf *out);
void stk_stage_done(stk_stage *stage);

#endif
