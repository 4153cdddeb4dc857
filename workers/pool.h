/* Warm sandboxes of this worker: created ahead for the pools that stk.config asks for, registered in state
 * only after the runtime answered, taken by exactly one run, replaced when their template changes or their
 * time is up. */
#ifndef STK_WORKERS_POOL_H
#define STK_WORKERS_POOL_H

#include "workers/box.h"
#include "workers/ctx.h"

typedef struct stk_pool stk_pool;

typedef struct stk_pool_counts {
    int64_t ready, creating, removing;
    uint64_t failures;
} stk_pool_counts;

int stk_pool_new(stk_ctx *ctx, stk_pool **ret, stk_err *err) STK_MUST_USE;
/* Looks at the configuration again: makes what is missing (at most a few at once, with backoff after
 * failures), removes what is too much, stale or old. Cheap; called on changes and about once a second. */
void stk_pool_tend(stk_pool *pool);
/* The run's assignment says this one was taken for it. NULL when it is not here (any more). The caller owns
 * the box. */
stk_box *stk_pool_claim(stk_pool *pool, const char *sandbox);
stk_pool_counts stk_pool_counts_get(const stk_pool *pool);
/* State has ended this worker's incarnation: what is registered counts for nobody and is removed. */
void stk_pool_renounce(stk_pool *pool);
/* Removes all; done once nothing is left. */
void stk_pool_drain(stk_pool *pool, stk_fn done, void *arg);
void stk_pool_free(stk_pool *pool);

#endif
