/* The scheduler: reads stk.requests ahead into bounded per-tenant queues, picks fairly, places, and hands out
 * assignments.
 *
 * Decisions are pure (fair.h, place.h); placement and reservation are one state operation; an offset is
 * finished when its assignment (or its end) is durable. Any number may run; state fences them. All on one
 * loop. */
#ifndef STK_SCHEDULER_H
#define STK_SCHEDULER_H

#include "proto/base/crypto.h"
#include "proto/bus/bus.h"
#include "proto/state/state.h"

typedef struct stk_scheduler stk_scheduler;

typedef struct stk_scheduler_spec { /* borrowed until free */
    stk_loop *loop;
    stk_bus *bus;
    stk_state *state;
    int64_t running_cap;  /* assigned + running per tenant; 0 = none */
    int64_t max_attempts; /* 0 = 3 */
    int64_t index_max;    /* unfinished requests held; 0 = 1,000,000 */
    stk_span heartbeat;   /* the workers', for reaping */
    size_t
        payload_bytes; /* of waiting requests kept in memory; beyond it they are fetched again; 0 = 64 MiB */
} stk_scheduler_spec;

int stk_scheduler_new(const stk_scheduler_spec *spec, stk_scheduler **ret, stk_err *err) STK_MUST_USE;
/* Prometheus text. */
void stk_scheduler_metrics(const stk_scheduler *scheduler, stk_buf *out);
/* Takes no new requests; true once no operation is in flight (call again). */
bool stk_scheduler_quiet(stk_scheduler *scheduler);
void stk_scheduler_free(stk_scheduler *scheduler);

#endif
