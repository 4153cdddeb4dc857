/* The state port: an index of the present (runs, workers, sandboxes, lanes, configuration heads) as small
 * atomic operations, each one a whole decision: never read-then-write from the caller. Adapters: SQLite
 * (state_sqlite.h), Redis. ONE conformance suite: tests/conformance/state. State can be lost and rebuilt; the
 * bus is the truth.
 *
 * How to call: allocate the operation's struct with its _new function, fill `in`, call stk_state_call. The
 * port owns it from then on; `done` is called once on the loop given at open, never from inside the call, and
 * the struct is freed after it returns. op->rc is 0 or a negative code with op->err; outcome members say what
 * a whole decision came to: a lost race is an outcome, not an error. Operations called from one loop happen
 * in the order of their calls (RUN_LIST sees at least what was answered before it was called). Leases use the
 * adapter's own clock (CLOCK_BOOTTIME and the boot id; Redis TIME).
 *
 * Runs: every change of a run's state notifies "run/<id>"; capacity that becomes free notifies "capacity";
 * records to a lane notify nothing (the bus does). Whoever wins a terminal state writes `finished` into the
 * outbox in the same operation and publishes it; a sweeper publishes what a dead winner left. */
#ifndef STK_STATE_STATE_H
#define STK_STATE_STATE_H

#include "proto/base/field.h"
#include "proto/base/loop.h"
#include "proto/message/event.h"
#include "proto/message/limits.h"
#include "proto/message/run.h"

typedef struct stk_state stk_state;
typedef struct stk_op stk_op;
typedef void (*stk_op_done)(stk_op *op, void *arg);

/* clang-format off */
#define STK_STATE_OPS(X)                                                                             \
    X(SUBMIT, submit) X(QUEUE, queue) X(ASSIGN, assign) X(START, start) X(FINISH, finish)            \
    X(CANCEL, cancel) X(REQUEUE, requeue) X(RUN_GET, run_get) X(RUN_LIST, run_list) X(JOIN, join)    \
    X(HEARTBEAT, heartbeat) X(LEAVE, leave) X(LANE_DONE, lane_done) X(WORKERS, workers)              \
    X(POOL_PUT, pool_put) X(POOL_TAKE, pool_take) X(POOL_DROP, pool_drop) X(POOL_LIST, pool_list)    \
    X(ADOPT, adopt) X(REAP, reap) X(CONFIG_GET, config_get) X(CONFIG_SET, config_set)                \
    X(CONFIG_DONE, config_done) X(OUTBOX_TAKE, outbox_take) X(OUTBOX_DONE, outbox_done)              \
    X(OUTPUT_ADD, output_add) X(OUTPUT_READ, output_read) X(COUNTS, counts) X(PUBLISHED, published)
/* clang-format on */
typedef enum stk_op_kind {
#define X(sym, name) STK_OP_##sym,
    STK_STATE_OPS(X)
#undef X
        STK_OP_KINDS
} stk_op_kind;

struct stk_op {
    stk_op_kind kind;
    int rc;
    stk_err err;
    stk_op_done done;
    void *arg;
    stk_op *next;  /* the adapter's */
    void *adapter; /* the adapter's */
};

/* One message that the winner of an operation must publish; it stays in the outbox until OUTBOX_DONE. */
typedef struct stk_outbox_item {
    int64_t id;
    char topic[32];
    char key[128];
    stk_bytes value;
} stk_outbox_item;
typedef struct stk_outbox_items {
    stk_outbox_item *v;
    size_t n;
} stk_outbox_items;

/* A run as state knows it. */
typedef struct stk_run_row {
    char id[STK_ID_SIZE];
    char tenant[STK_TENANT_MAX];
    char agent[STK_AGENT_MAX];
    char kind[8];
    stk_run_state state;
    char reason[16];
    char assignment[STK_ID_SIZE];
    char worker[STK_WORKER_MAX];
    char sandbox[STK_ID_SIZE];
    int32_t lane; /* -1 = none */
    int64_t attempt;
    bool cancel_asked;
    int64_t priority;
    stk_wall submitted, started, finished;
    int32_t partition; /* of stk.requests; -1 = not known yet */
    int64_t offset;
    stk_map labels;
    stk_bytes result; /* encoded stk_event (at most 64 KiB, secret tails included when they fit), or a plan's
                       * JSON; unset before the end, and from 10 minutes after it; without `secret` although
                       * bytes were produced = it did not fit: the store has all */
} stk_run_row;
void stk_run_row_done(stk_run_row *row);

/* --- runs
 * --------------------------------------------------------------------------------------------------- */

/* Reserves a run before its request is published: new -> submitted. With a key: same key and body -> the same
 * run. */
typedef struct stk_op_submit {
    stk_op op;
    struct {
        char run[STK_ID_SIZE], tenant[STK_TENANT_MAX], agent[STK_AGENT_MAX], kind[8];
        char retry[8];
        int64_t priority;
        stk_wall submitted, deadline;
        stk_map labels;
        bool has_key;
        uint8_t key_hash[STK_SHA256], body_hash[STK_SHA256];
        int64_t queued_cap; /* most unfinished runs of the tenant; 0 = none */
    } in;
    enum {
        STK_SUBMIT_NEW,
        STK_SUBMIT_SAME /* publish again when it is still `submitted` */,
        STK_SUBMIT_MISMATCH,
        STK_SUBMIT_OVER_CAP
    } outcome;
    stk_run_state state; /* of the run that is there now */
    char run[STK_ID_SIZE];
} stk_op_submit;

/* A scheduler has read the request: submitted -> queued, with its place on the topic. A run that state does
 * not know is created (state was lost, or the request came from a requeue). Idempotent. */
typedef struct stk_op_queue {
    stk_op op;
    struct {
        char run[STK_ID_SIZE], tenant[STK_TENANT_MAX], agent[STK_AGENT_MAX], kind[8];
        char retry[8];
        int64_t priority;
        stk_wall submitted, deadline;
        stk_map labels;
        int32_t partition;
        int64_t offset;
    } in;
    enum {
        STK_QUEUE_OK,
        STK_QUEUE_ASSIGNED /* publish the stored assignment again */,
        STK_QUEUE_PASSED /* running or finished: drop */
    } outcome;
    int64_t attempt; /* attempts that counted so far */
    bool cancel_asked;
    stk_bytes assignment; /* STK_QUEUE_ASSIGNED: the stored lane record */
    int32_t lane;
} stk_op_queue;

/* The request is durable on stk.requests, at this place: the reservation does not expire any more, however
 * long the schedulers take to read it. Nothing needs to wait for this. A run that state does not know, or
 * that is further on, stays as it is. */
typedef struct stk_op_published {
    stk_op op;
    struct {
        char run[STK_ID_SIZE];
        int32_t partition;
        int64_t offset;
    } in;
} stk_op_published;

/* Placement and reservation in one: queued or submitted -> assigned. `record` is the lane record, stored
 * until start so that a re-read publishes the same one. Takes one slot of the worker and, when `sandbox` is
 * set, that pooled sandbox. */
typedef struct stk_op_assign {
    stk_op op;
    struct {
        char run[STK_ID_SIZE], tenant[STK_TENANT_MAX], agent[STK_AGENT_MAX], kind[8];
        char retry[8];
        int64_t priority;
        stk_wall submitted, deadline;
        stk_map labels;
        int32_t partition;
        int64_t offset;
        char assignment[STK_ID_SIZE];
        char worker[STK_WORKER_MAX], incarnation[STK_ID_SIZE];
        char sandbox[STK_ID_SIZE]; /* "" = none */
        int64_t attempt;
        int64_t running_cap; /* most assigned + running of the tenant; 0 = none */
        bool plan;           /* takes no slot */
        bool first;          /* not QUEUEd before: only while no attempt counted */
        stk_bytes record;
    } in;
    enum {
        STK_ASSIGN_OK,
        STK_ASSIGN_ALREADY,    /* by another: `record` is the stored one, publish it again */
        STK_ASSIGN_PASSED,     /* running or finished: drop the request                    */
        STK_ASSIGN_NO_WORKER,  /* not live, other incarnation, or no free slot             */
        STK_ASSIGN_NO_SANDBOX, /* the warm one is gone: choose again                       */
        STK_ASSIGN_CAP,        /* the tenant's running cap                                 */
        STK_ASSIGN_CANCELLED,  /* a cancel was asked: finish it                            */
        STK_ASSIGN_CLOSED,     /* state was lost and is not open yet                       */
        STK_ASSIGN_COUNTED     /* `first`, but attempts counted: QUEUE it                  */
    } outcome;
    int32_t lane;
    stk_bytes record;
} stk_op_assign;

/* assigned -> running, only for this assignment, this incarnation, a live lease, and no cancel asked. */
typedef struct stk_op_start {
    stk_op op;
    struct {
        char run[STK_ID_SIZE], assignment[STK_ID_SIZE], worker[STK_WORKER_MAX], incarnation[STK_ID_SIZE];
        stk_wall now;
    } in;
    enum { STK_START_OK, STK_START_STALE /* not ours (any more) */, STK_START_CANCELLED } outcome;
} stk_op_start;

/* -> finished, once: compare-and-set on (state not finished, assignment id; "" matches a run that has none).
 * Frees slot and sandbox, puts `finished` into the outbox, wakes waiters. */
typedef struct stk_op_finish {
    stk_op op;
    struct {
        char run[STK_ID_SIZE], tenant[STK_TENANT_MAX], assignment[STK_ID_SIZE];
        char reason[16];
        stk_wall now;
        bool plan;        /* no outbox */
        stk_bytes event;  /* encoded `finished` stk_event for stk.events */
        stk_bytes result; /* what RUN_GET answers; unset = event */
    } in;
    enum {
        STK_FINISH_WON,
        STK_FINISH_LOST /* somebody else, or another assignment: keep the evidence as late */
    } outcome;
    int64_t outbox; /* id of the item to publish; 0 = none */
} stk_op_finish;

/* Intent first. Not started: finished(cancelled) at once. Assigned or running: cancel_asked, and the caller
 * publishes a cancel record to `lane`. */
typedef struct stk_op_cancel {
    stk_op op;
    struct {
        char run[STK_ID_SIZE], tenant[STK_TENANT_MAX];
        stk_wall now;
        stk_bytes event; /* `finished` event for the not-started case */
    } in;
    enum {
        STK_CANCEL_FINISHED /* now */,
        STK_CANCEL_ASKED,
        STK_CANCEL_PASSED /* already finished */,
        STK_CANCEL_UNKNOWN
    } outcome;
    int64_t outbox;
    int32_t lane;
    char assignment[STK_ID_SIZE], worker[STK_WORKER_MAX], incarnation[STK_ID_SIZE];
} stk_op_cancel;

/* assigned -> queued (or running -> queued with repeat), with the request in the outbox, then published to
 * stk.requests. */
typedef struct stk_op_requeue {
    stk_op op;
    struct {
        char run[STK_ID_SIZE], assignment[STK_ID_SIZE];
        bool count;        /* this attempt counts (its launch row exists) */
        bool repeat;       /* retry: always, from running */
        stk_bytes request; /* as it stood on stk.requests */
    } in;
    enum { STK_REQUEUE_OK, STK_REQUEUE_STALE } outcome;
    int64_t outbox;
    int64_t attempt;
} stk_op_requeue;

typedef struct stk_op_run_get {
    stk_op op;
    struct {
        char run[STK_ID_SIZE], tenant[STK_TENANT_MAX]; /* tenant "" = any */
    } in;
    bool found;
    stk_run_row row;
} stk_op_run_get;

/* Newest first; cursor = id of the last row seen. */
typedef struct stk_op_run_list {
    stk_op op;
    struct {
        char tenant[STK_TENANT_MAX], agent[STK_AGENT_MAX]; /* "" = any */
        stk_run_state state;                               /* NONE = any */
        char label_key[64], label_value[128];
        char cursor[STK_ID_SIZE];
        int64_t limit; /* 1..1000 */
    } in;
    stk_run_row *rows; /* without results */
    size_t n;
    bool more;
} stk_op_run_list;

/* --- workers, lanes
 * ------------------------------------------------------------------------------------------ */

typedef struct stk_worker_row {
    char id[STK_WORKER_MAX], incarnation[STK_ID_SIZE], host[64];
    int64_t slots, used;
    bool draining, live;
    stk_bytes backends; /* JSON of the probes: [{"name","ok","isolation","reason","remedy","runtime"}] */
    stk_bytes stats;    /* JSON, for /metrics and `stockade workers` */
    stk_wall joined, seen;
} stk_worker_row;
void stk_worker_row_done(stk_worker_row *row);

typedef struct stk_lost_run { /* a run that a dead or older incarnation held */
    char run[STK_ID_SIZE], tenant[STK_TENANT_MAX], agent[STK_AGENT_MAX], assignment[STK_ID_SIZE],
        worker[STK_WORKER_MAX], sandbox[STK_ID_SIZE];
    bool started; /* its start operation happened */
    bool requeued;
    int64_t outbox;
} stk_lost_run;

/* Ends older incarnations of the worker at once (unstarted runs are requeued, started ones become worker_lost
 * or are repeated), then takes one lane. Lane records for an ended incarnation are dropped by the new holder.
 */
typedef struct stk_op_join {
    stk_op op;
    struct {
        char worker[STK_WORKER_MAX], incarnation[STK_ID_SIZE], host[64];
        int64_t slots;
        int32_t lanes; /* how many lanes exist */
        stk_span lease;
        stk_bytes backends;
        stk_wall now;
    } in;
    enum { STK_JOIN_OK, STK_JOIN_NO_LANE } outcome;
    int32_t lane;
    int64_t lane_offset; /* first record not yet done */
    char epoch[STK_ID_SIZE];
    stk_lost_run *lost;
    size_t nlost;
} stk_op_join;

typedef struct stk_op_heartbeat {
    stk_op op;
    struct {
        char worker[STK_WORKER_MAX], incarnation[STK_ID_SIZE];
        stk_span lease;
        bool draining;
        int64_t slots;
        stk_bytes backends, stats; /* unset = unchanged */
    } in;
    enum {
        STK_HEARTBEAT_OK,
        STK_HEARTBEAT_ENDED /* lease lost or newer incarnation: stop everything */
    } outcome;
    char epoch[STK_ID_SIZE];
    stk_strv cancels; /* assignment ids of ours with a cancel asked (the backstop of lost lane records) */
} stk_op_heartbeat;

/* Clean end: unstarted runs are requeued without counting, the lane is given back. */
typedef struct stk_op_leave {
    stk_op op;
    struct {
        char worker[STK_WORKER_MAX], incarnation[STK_ID_SIZE];
        stk_wall now;
    } in;
    stk_lost_run *lost;
    size_t nlost;
} stk_op_leave;

/* The lane's records below `offset` are done. */
typedef struct stk_op_lane_done {
    stk_op op;
    struct {
        int32_t lane;
        char worker[STK_WORKER_MAX], incarnation[STK_ID_SIZE];
        int64_t offset;
    } in;
    bool held; /* false: the lane is not ours any more */
} stk_op_lane_done;

typedef struct stk_op_workers {
    stk_op op;
    stk_worker_row *rows;
    size_t n;
} stk_op_workers;

/* --- warm pool
 * ------------------------------------------------------------------------------------------------ */

typedef struct stk_pool_row {
    char sandbox[STK_ID_SIZE], template_key[STK_ID_SIZE], tenant[STK_TENANT_MAX], pool[64];
    char worker[STK_WORKER_MAX], incarnation[STK_ID_SIZE];
    char backend[STK_BACKEND_MAX];
    stk_wall made;
} stk_pool_row;

/* Only after the runtime answered through the path that runs will use. Refused when the worker is not live.
 */
typedef struct stk_op_pool_put {
    stk_op op;
    stk_pool_row in;
    bool taken_in;
} stk_op_pool_put;
/* Takes this one (worker's own use: expiry, replacement) or, with sandbox "", the oldest of the template of a
 * live worker. Exactly one taker. */
typedef struct stk_op_pool_take {
    stk_op op;
    struct {
        char sandbox[STK_ID_SIZE], template_key[STK_ID_SIZE];
    } in;
    bool found;
    stk_pool_row row;
} stk_op_pool_take;
/* Forgets a dead one; missing is fine. */
typedef struct stk_op_pool_drop {
    stk_op op;
    struct {
        char sandbox[STK_ID_SIZE], worker[STK_WORKER_MAX];
    } in;
} stk_op_pool_drop;
typedef struct stk_op_pool_list {
    stk_op op;
    stk_pool_row *rows;
    size_t n;
} stk_op_pool_list;

/* --- after loss, reaping
 * ---------------------------------------------------------------------------------------- */

/* A worker says what it really holds (after an epoch change): the run is put back as assigned or running. */
typedef struct stk_op_adopt {
    stk_op op;
    struct {
        char worker[STK_WORKER_MAX], incarnation[STK_ID_SIZE];
        char run[STK_ID_SIZE], tenant[STK_TENANT_MAX], agent[STK_AGENT_MAX], assignment[STK_ID_SIZE],
            sandbox[STK_ID_SIZE];
        bool started;
    } in;
    bool ok;
} stk_op_adopt;

/* Ends what nobody holds: leases past their end (after a gap of more than two heartbeats everybody first gets
 * one lease of grace), `submitted` older than a minute that nobody published (reservation and key are gone as
 * if they had never been), output and results after 10 minutes, finished runs with their keys after 24 h (the
 * store answers from then on). Opens state again after a loss, once the runs of the lost time are settled.
 * Anybody may call it, about once a second. */
typedef struct stk_op_reap {
    stk_op op;
    struct {
        stk_span heartbeat;
        stk_span submitted_for; /* default 60 s */
        stk_wall now;
    } in;
    stk_lost_run *lost; /* the caller writes their teardown rows and publishes the outbox items */
    size_t nlost;
    stk_strv workers; /* whose lease ended now */
} stk_op_reap;

/* --- configuration head
 * ------------------------------------------------------------------------------------------ */

typedef struct stk_op_config_get {
    stk_op op;
    struct {
        char tenant[STK_TENANT_MAX], name[32];
    } in;
    int64_t version;  /* 0 = never set; the newest that was decided, pending ones included */
    stk_bytes record; /* encoded stk_config_record */
} stk_op_config_get;

/* Compare-and-set to the next version, pending, with the document and its audit row in the outbox (audit
 * first, then stk.config). */
typedef struct stk_op_config_set {
    stk_op op;
    struct {
        char tenant[STK_TENANT_MAX], name[32];
        int64_t expect; /* the version that was read */
        stk_bytes record, audit;
    } in;
    enum { STK_CONFIG_SET_OK, STK_CONFIG_SET_STALE } outcome;
    int64_t version; /* new, or the one that is there */
    int64_t outbox_audit, outbox_config;
} stk_op_config_set;
/* The record is on stk.config: not pending any more. With `record`, whoever follows the topic teaches a state
 * that lost its head: an older head is brought up to this one; a newer one stays. */
typedef struct stk_op_config_done {
    stk_op op;
    struct {
        char tenant[STK_TENANT_MAX], name[32];
        int64_t version;
        stk_bytes record; /* unset = only the mark */
    } in;
} stk_op_config_done;

/* --- outbox, live output, counts
 * ---------------------------------------------------------------------------------- */

/* Items older than `older` that nobody published, in order of id; each is handed to one sweeper for `hold`. A
 * configuration document is handed out only when its audit row is done. */
typedef struct stk_op_outbox_take {
    stk_op op;
    struct {
        stk_span older, hold;
        int64_t most; /* default 100 */
        int64_t id;   /* != 0: exactly this item, whatever its age (the winner's own publish) */
    } in;
    stk_outbox_items items;
} stk_op_outbox_take;
typedef struct stk_op_outbox_done {
    stk_op op;
    struct {
        int64_t id;
    } in;
} stk_op_outbox_done;

/* Sealed live output: kept 10 minutes, at most 256 KiB a run. offset = byte offset of this piece in the run's
 * clear output; the caller keeps it. */
typedef struct stk_op_output_add {
    stk_op op;
    struct {
        char run[STK_ID_SIZE], assignment[STK_ID_SIZE];
        int64_t offset;
        int64_t length;   /* clear bytes */
        stk_bytes sealed; /* of {"stream","data"} */
    } in;
    bool kept;
} stk_op_output_add;
typedef struct stk_output_piece {
    int64_t offset;
    int64_t length;
    stk_bytes sealed;
} stk_output_piece;
typedef struct stk_op_output_read {
    stk_op op;
    struct {
        char run[STK_ID_SIZE];
        int64_t from; /* pieces that end behind this byte */
    } in;
    stk_output_piece *pieces;
    size_t n;
} stk_op_output_read;

typedef struct stk_op_counts {
    stk_op op;
    int64_t by_state[STK_RUN_STATES];
    int64_t outbox, workers_live, slots, used;
    stk_wall oldest_queued; /* ns == 0: none */
    bool open;              /* state may assign */
    char epoch[STK_ID_SIZE];
} stk_op_counts;

/* --- the port
 * ------------------------------------------------------------------------------------------------------ */

typedef void (*stk_state_note)(const char *what, void *arg);

typedef struct stk_state_ops {
    void (*call)(stk_state *st, stk_op *op);
    int64_t (*watch)(stk_state *st, const char *what, stk_state_note note, void *arg);
    void (*unwatch)(stk_state *st, int64_t id);
    bool (*ready)(const stk_state *st);
    void (*close)(stk_state *st);
} stk_state_ops;
struct stk_state {
    const stk_state_ops *ops;
};

/* Makes a zeroed operation of its kind (all of them start with `op`): stk_op_submit *op =
 * stk_op_new(STK_OP_SUBMIT, done, arg). */
void *stk_op_new(stk_op_kind kind, stk_op_done done, void *arg);
/* Frees it with everything it owns (in and out). The port does this after `done`. */
void stk_op_free(stk_op *op);
const char *stk_op_name(stk_op_kind kind);

/* Takes ownership. */
void stk_state_call(stk_state *st, void *op);
/* Calls note(what) on the loop after each change of "run/<id>", "capacity", "output/<run>", "config". May be
 * lost (Redis) or come twice: look again, and sweep every second. Returns an id for unwatch. */
int64_t stk_state_watch(stk_state *st, const char *what, stk_state_note note, void *arg);
void stk_state_unwatch(stk_state *st, int64_t id);
bool stk_state_ready(const stk_state *st);
/* No calls may be in flight. */
void stk_state_close(stk_state *st);
STK_DEFINE_FREEP(stk_state, stk_state_closep, stk_state_close)

#endif
