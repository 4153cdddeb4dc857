/* Inside of the scheduler: what its files share. A job is one request on its way; an item of stk_fair stands
 * for it while it waits.
 *
 *   intake -> QUEUE -> (delay) -> waiting -> picked -> place -> ASSIGN
 *                                     |-> lane record durable -> offset finished
 *                                     |-> end: audit row -> FINISH -> event durable -> offset finished */
#ifndef STK_SCHEDULER_IMPL_H
#define STK_SCHEDULER_IMPL_H

#include "proto/base/fail.h"
#include "proto/base/log.h"
#include "proto/bus/follow.h"
#include "proto/message/assignment.h"
#include "proto/message/audit.h"
#include "proto/message/config.h"
#include "scheduler/fair.h"
#include "scheduler/fleet.h"
#include "scheduler/index.h"
#include "scheduler/scheduler.h"

#define STK_SCHED_GROUP       "schedulers"
#define STK_SCHED_BYTES       ((size_t)64 << 20) /* of payloads in memory; beyond it they are fetched again */
#define STK_SCHED_QUEUEING    1024               /* QUEUE operations in flight, then intake pauses */
#define STK_SCHED_ASSIGNING   256                /* placements in flight */
#define STK_SCHED_NOBODY      stk_sec(60)        /* how long a run waits for any live worker */
#define STK_SCHED_NOBODY_PLAN stk_sec(5)
#define STK_SCHED_SETTLE      stk_sec(2) /* after the first live worker: others may be joining too */

typedef struct stk_docs stk_docs;
typedef struct stk_job stk_job;

struct stk_job {
    stk_scheduler *s;
    uint32_t item;
    int32_t partition;
    int64_t offset;
    stk_request req;
    stk_bytes raw;
    int64_t attempts; /* that counted so far */
    bool plan;
    bool known; /* QUEUE was done: state has it, and the attempts are known */
    /* placing */
    char assignment[STK_ID_SIZE];
    uint64_t ticket; /* of the fleet's books */
    int32_t lane;
    stk_bytes record;
    /* ending */
    stk_reason reason;
    stk_code code;
    char *detail;
    stk_bytes event;
    int64_t outbox;
};

typedef struct stk_sched_counts {
    uint64_t read, assigned, warm, again, dead, retried;
    uint64_t ended[STK_REASONS];
    uint64_t waits[12]; /* histogram of arrival -> lane record durable */
    double wait_sum;
} stk_sched_counts;

struct stk_scheduler {
    stk_scheduler_spec spec;
    stk_fair *fair;
    stk_index index;
    stk_fleet fleet;
    stk_docs *docs;
    stk_consumer *consumer;
    stk_timer *sweep_timer, *due_timer;
    int64_t watch;
    size_t inflight;  /* asynchronous calls whose callback is to come */
    size_t queueing;  /* of them, QUEUE operations */
    size_t assigning; /* jobs between pick and the answer of ASSIGN */
    bool draining, dead, paused, newer, pumping, again, closed, sweeping;
    stk_mono closed_until; /* state failed: nothing is placed before */
    stk_mono nobody_since; /* ns == 0: somebody is live */
    stk_mono somebody_since;
    stk_sched_counts counts;
};

/* Bookkeeping of asynchronous calls. leave: true when the scheduler was freed meanwhile; then the caller only
 * frees what it owns. */
void stk__enter(stk_scheduler *s);
bool stk__leave(stk_scheduler *s);

/* job.c: takes ownership of nothing but copies of the message. */
int stk__job_new(stk_scheduler *s, const stk_bus_msg *msg, stk_job **ret, stk_err *err);
void stk__job_free(stk_job *job);
STK_DEFINE_FREEP(stk_job, stk__job_freep, stk__job_free)
size_t stk__job_bytes(const stk_job *job);
/* Its work is done: the offset is finished and the job is gone. */
void stk__job_close(stk_job *job);
/* It waits in its tenant's queue (behind the others, or in front when it was picked before). */
void stk__job_wait(stk_job *job, bool in_front);
/* Tried again after a while; `queue`: from the QUEUE operation on. */
void stk__job_delay(stk_job *job, stk_span after);
/* What it needs, by the newest configuration. */
void stk__job_need(const stk_job *job, stk_place_need *ret);
unsigned stk__job_class(const stk_job *job);
void stk__class_need(unsigned cls, stk_place_need *ret);

/* intake.c */
extern const stk_consumer_ops stk__intake_ops;
/* The QUEUE operation; what comes of it decides how it goes on. */
void stk__job_queue(stk_job *job);
void stk__intake_flow(stk_scheduler *s);

/* assign.c */
/* The lane record until it is durable, then the offset. Moves `record`. */
void stk__job_to_lane(stk_job *job, int32_t lane, stk_bytes *record);
/* Reserves the place in state, then hands the lane record out. */
void stk__job_assign(stk_job *job, const stk_place_choice *choice);

/* pick.c */
/* One that was just read, when nobody else waits and there is room: ASSIGN without QUEUE. False: it goes the
 * long way. */
bool stk__job_fast(stk_job *job);
void stk__pump(stk_scheduler *s);
/* A listed item was picked, or a delayed one is due: it goes on from where it was. */
void stk__item_go(stk_scheduler *s, uint32_t item);

/* end.c */
void stk__job_end(stk_job *job, stk_reason reason, stk_code code, const char *fmt, ...) STK_PRINTF(4, 5);
/* Its FINISH operation, again after a failure. */
void stk__job_finish(stk_job *job);

/* plan.c: the answer of a scheduler that found no worker for a plan. */
int stk__plan_answer(const stk_job *job, const char *why, stk_buf *out, stk_err *err);

/* letter.c: a message that is offered until it is durable. */
typedef struct stk_letter stk_letter;
typedef void (*stk_letter_done)(void *arg);
/* value is moved. partition -1 = by key. */
stk_letter *stk__letter_new(stk_scheduler *s, const char *topic, int32_t partition, const char *key,
                            stk_bytes *value);
/* At most 5; name must be static. */
void stk__letter_header(stk_letter *letter, const char *name, const char *fmt, ...) STK_PRINTF(3, 4);
/* done is not called any more once the scheduler was freed; then drop(arg) is. Either may be NULL. */
void stk__letter_send(stk_letter *letter, stk_letter_done done, stk_letter_done drop, void *arg);
/* Raw bytes to stk.dead with their origin and why. */
stk_letter *stk__dead_letter(stk_scheduler *s, stk_str key, stk_str value, int32_t partition, int64_t offset,
                             const char *why);
/* An audit row as a letter; NULL when it can't be encoded (logged). Details: JSON object text. */
stk_letter *stk__audit_letter(stk_scheduler *s, stk_audit_row *row, stk_str details);

/* sweep.c */
void stk__sweep(void *scheduler);
void stk__due(void *scheduler);
void stk__due_arm(stk_scheduler *s);

/* docs.c: agent-sandbox of every tenant, as stk.config says. */
int stk__docs_new(stk_scheduler *s, void (*ready)(void *scheduler), stk_err *err);
void stk__docs_free(stk_docs *docs);
/* NULL: never set. */
const stk_sandbox_doc *stk__docs_get(const stk_docs *docs, const char *tenant, int64_t *ret_version);
bool stk__docs_ready(const stk_docs *docs);

#endif
