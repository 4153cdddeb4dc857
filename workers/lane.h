/* The worker's lane: one partition of stk.assignments, read from the offset that state knows. Records of
 * ended incarnations are dropped, cancels find their job, offsets are reported done in order (the longest
 * finished prefix). */
#ifndef STK_WORKERS_LANE_H
#define STK_WORKERS_LANE_H

#include "workers/ctx.h"
#include "workers/job.h"
#include "workers/pool.h"

typedef struct stk_lane stk_lane;

typedef struct stk_lane_counts {
    int64_t running; /* jobs here, whatever their step */
    uint64_t runs, warm, dropped;
} stk_lane_counts;

int stk_lane_new(stk_ctx *ctx, stk_pool *pool, int64_t offset, stk_lane **ret, stk_err *err) STK_MUST_USE;
stk_lane_counts stk_lane_counts_get(const stk_lane *lane);
/* The job of that assignment; NULL when it is not here. */
stk_job *stk_lane_job(const stk_lane *lane, const char *assignment);
void stk_lane_each(stk_lane *lane, void (*fn)(stk_job *job, void *arg), void *arg);
/* No new records from now on. */
void stk_lane_pause(stk_lane *lane);
/* idle runs once no job is left (at once when there is none). */
void stk_lane_when_idle(stk_lane *lane, stk_fn idle, void *arg);
void stk_lane_free(stk_lane *lane);

#endif
