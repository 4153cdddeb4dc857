/* The audit consumer: stk.audit and stk.events -> store, with the consumer's offset in the store's own
 * transaction.
 *
 * One lane per topic and partition; one batch in flight per lane, the next one gathers meanwhile (that is the
 * whole batching policy: no timer). The offset in the store decides: whatever lies below it was stored by
 * somebody and is finished without storing it again. A store that is down pauses the lanes and is asked again
 * with backoff: nothing is skipped. What can't be decoded, or what the store says it can never take, goes to
 * stk.dead with why, and the rest of its batch is stored. A record of a newer version pauses everything (an
 * upgrade is under way). */
#ifndef STK_AUDIT_CONSUMER_H
#define STK_AUDIT_CONSUMER_H

#include "proto/bus/bus.h"
#include "proto/store/store.h"

typedef struct stk_auditor stk_auditor;

/* All borrowed; all on one loop. */
typedef struct stk_auditor_spec {
    stk_loop *loop;
    stk_bus *bus;
    stk_store *store;
    size_t batch; /* most records a transaction takes of one lane; 0 = 1000 */
} stk_auditor_spec;

typedef struct stk_auditor_stats {
    uint64_t stored;   /* rows and results written by us */
    uint64_t repeated; /* records that were stored before */
    uint64_t dead;     /* records sent to stk.dead */
    uint64_t waiting;  /* records read and not stored yet */
    bool store_down;
    bool newer; /* paused: a newer version's record was read */
} stk_auditor_stats;

/* Joins group "audit" on both topics. */
int stk_auditor_new(const stk_auditor_spec *spec, stk_auditor **ret, stk_err *err) STK_MUST_USE;
stk_auditor_stats stk_auditor_stats_get(const stk_auditor *auditor);
/* Leaves the group; what was not stored stays on the bus. Appends in flight must have ended: see
 * stk_auditor_quiet. */
void stk_auditor_free(stk_auditor *auditor);
/* Stops reading; true once nothing is in flight or waiting. Call again until it is. */
bool stk_auditor_quiet(stk_auditor *auditor);

/* `stockade audit verify [--state-dir DIR | --file FILE] [--json]`: exit status 0 = whole, 1 = broken or
 * unreadable, 2 = usage. */
int stk_verb_audit_verify(int argc, char **argv);

#endif
