/* A group of batches in one transaction; included by store_postgres_append.c and store_postgres_copy.c. */
#ifndef STK_STORE_POSTGRES_GROUP_H
#define STK_STORE_POSTGRES_GROUP_H

#include "proto/store/chain.h"
#include "proto/store/store_postgres_impl.h"

typedef struct stk_pg_lane {
    const char *topic;
    int32_t partition;
    int64_t next;
} stk_pg_lane;

typedef struct stk_pg_chain {
    int32_t partition;
    stk_chain chain;
} stk_pg_chain;

typedef struct stk_pg_group {
    stk_pg_link *link;
    stk_append_job **jobs;
    size_t n;
    /* one each for every job at most */
    stk_pg_lane *lanes;
    stk_pg_chain *chains;
    size_t nlanes, nchains;
    stk_pg_ids ids; /* of the rows of jobs that are not STALE, in order */
} stk_pg_group;

static inline bool stk__pg_accepted(const stk_append_job *job)
{
    return job->base.err.code == STK_OK;
}
stk_pg_chain *stk__pg_chain_of(stk_pg_group *g, int32_t partition);
/* Hashes and copies the new rows among the first `most`; counts what is stored. */
int stk__pg_copy_rows(stk_pg_group *g, size_t most, stk_err *err);

#endif
