/* The answer to a plan request: what this host would do, without doing it. Made from the same pure functions
 * as a real run. */
#ifndef STK_WORKERS_PLAN_H
#define STK_WORKERS_PLAN_H

#include "proto/message/assignment.h"
#include "workers/ctx.h"

/* Waits (bounded) for the configuration that the request was made under, makes the plan and finishes the
 * request with it (state's `result`); done once, also when that failed (then it is logged). asg may be taken
 * over (and emptied). */
void stk_plan_answer(stk_ctx *ctx, stk_assignment *asg, stk_fn done, void *arg);

#endif
