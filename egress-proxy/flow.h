/* What the sandbox's connections move together: the total (a limit ends them), the rate (a limit slows them),
 * one scratch buffer and the pool of pipes. Everything on one loop. */
#ifndef STK_EGRESS_PROXY_FLOW_H
#define STK_EGRESS_PROXY_FLOW_H

#include "egress-proxy/bucket.h"
#include "egress-proxy/pipes.h"
#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/queue.h>

#define STK_SCRATCH ((size_t)65536)

/* Somebody who waits for tokens. Zeroed at first. */
typedef struct stk_flow_wait {
    TAILQ_ENTRY(stk_flow_wait) link;
    bool waiting;
    void (*on_tokens)(void *arg);
    void *arg;
} stk_flow_wait;

typedef struct stk_flow {
    struct event_base *base;
    int64_t moved; /* bytes of the run so far */
    int64_t most;  /* 0 = no limit            */
    stk_bucket rate;
    TAILQ_HEAD(, stk_flow_wait) waiting;
    struct event timer;
    stk_pipes pipes;
    char scratch[STK_SCRATCH];
} stk_flow;

void stk_flow_init(stk_flow *flow, struct event_base *base);
void stk_flow_done(stk_flow *flow);
/* New limits; the total goes on. bytes_per_second 0: no limit. */
void stk_flow_limits(stk_flow *flow, int64_t most, int64_t bytes_per_second);
/* How many of `want` bytes may be read now: 0 puts `wait` on the list (on_tokens is called later), -1 when
 * the total is used up. */
int64_t stk_flow_take(stk_flow *flow, int64_t want, stk_flow_wait *wait);
/* `took` were granted, `used` were moved. */
void stk_flow_moved(stk_flow *flow, int64_t took, int64_t used);
void stk_flow_forget(stk_flow *flow, stk_flow_wait *wait);

#endif
