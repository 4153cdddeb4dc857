/* A scheduler on the embedded bus and state in a directory of its own, a worker that only speaks to state,
 * and everything that is published, all on one loop that turns only while a test waits. */
#ifndef STK_TEST_SCHEDULER_FIXTURE_H
#define STK_TEST_SCHEDULER_FIXTURE_H

#include "proto/bus/bus_sqlite.h"
#include "proto/bus/follow.h"
#include "proto/message/assignment.h"
#include "proto/message/audit.h"
#include "proto/message/config.h"
#include "proto/message/request.h"
#include "proto/state/state_sqlite.h"
#include "scheduler/scheduler.h"
#include "tests/unit/scheduler/unit.h"

#define LANES 4

typedef struct heard { /* one message of a topic */
    char key[128];
    char *value;
    int32_t partition;
} heard;
typedef struct ear {
    stk_consumer *consumer;
    heard *v;
    size_t n;
} ear;

typedef struct rig {
    char dir[64];
    stk_bus_file *bus_file;
    stk_state_file *state_file;
    stk_loop *loop;
    stk_bus *bus;
    stk_state *st;
    stk_scheduler *sched;
    stk_scheduler_spec spec;
    ear assignments, events, audit, dead;
    int64_t clock_ahead; /* of state, in nanoseconds */
    int64_t config_version;
    size_t flying; /* publishes of the test itself */
} rig;

typedef struct hand { /* a worker */
    char id[STK_WORKER_MAX], incarnation[STK_ID_SIZE];
    int32_t lane;
} hand;

rig *rig_new(void);
void rig_free(rig *r);
void rig_start(rig *r);
/* Quiet, then gone. */
void rig_stop(rig *r);
/* Turns the loop until it holds; fails after ten seconds. */
void rig_until(rig *r, bool (*holds)(rig *r, void *arg), void *arg);
/* Turns it for as long as that. */
void rig_turn(rig *r, stk_span span);

/* Publishes and waits until it is durable. */
void rig_publish(rig *r, const char *topic, const char *key, stk_str value);
void rig_config(rig *r, const char *tenant, const char *doc);
/* Makes a worker that is live for `lease`. */
hand rig_worker(rig *r, int64_t slots, const char *backends, stk_span lease);
void rig_pool_put(rig *r, const hand *w, const char *tenant, const stk_agent_limits *limits,
                  const char *sandbox);

typedef struct ask {
    const char *tenant, *agent, *kind, *backend, *retry;
    int64_t priority;
    stk_span deadline; /* from now; 0 = none */
    int64_t config_version;
} ask;
/* The request's text; out_run gets its id. */
char *rig_request(const ask *a, char out_run[STK_ID_SIZE]);
void rig_submit(rig *r, const ask *a, char out_run[STK_ID_SIZE]);

/* State operations, waited for. Free with stk_op_free. */
void *rig_call(rig *r, void *op);
/* What state says of a run: state text, or "finished:<reason>". */
const char *rig_state(rig *r, const char *run);
bool rig_begin(rig *r, const hand *w, const stk_assignment *asg); /* start */
bool rig_end(rig *r, const stk_assignment *asg, const char *tenant);

/* The n-th assignment that was published, decoded. */
void rig_assignment(rig *r, size_t n, stk_assignment *ret);
/* How many rows of that action name this run. */
size_t rig_rows(rig *r, const char *action, const char *run);
size_t rig_count(const ear *e, const char *key);

#endif
