/* A batch as the writers get it: encoded on the caller's thread, so that the call may return. */
#ifndef STK_STORE_BATCH_H
#define STK_STORE_BATCH_H

#include "proto/store/jobs.h"

typedef struct stk_store_entry {
    size_t at, n;         /* canonical bytes in job->bytes */
    char id[STK_ID_SIZE]; /* of an event: the assignment */
    char tenant[STK_TENANT_MAX], agent[STK_AGENT_MAX], run[STK_ID_SIZE];
    char action[40]; /* of an event: its kind */
    int64_t ms;
    bool late;
} stk_store_entry;

typedef struct stk_append_job {
    stk_store_job base;
    char *topic;
    int32_t partition;
    int64_t from, to;
    stk_store_entry *rows, *events;
    size_t nrows, nevents;
    stk_buf bytes;
    int64_t offset;     /* told */
    size_t stored, bad; /* told */
} stk_append_job;

static inline stk_append_job *stk__append_of(stk_store_job *job)
{
    return STK_CONTAINER(job, stk_append_job, base);
}
static inline stk_str stk__entry_bytes(const stk_append_job *job, const stk_store_entry *e)
{
    return stk_str_n(job->bytes.p + e->at, e->n);
}
/* The batch's offset in the store is not the one it begins at: sets STALE and what is told. */
void stk__append_stale(stk_append_job *job, int64_t there);
void stk__store_append(stk_store *store, const stk_store_batch *batch, stk_store_done done, void *arg);

#endif
