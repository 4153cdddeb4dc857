/* Inside of stk_fair: fair.c lists and picks, fair_tenant.c keeps tenants and whose turn it is. */
#ifndef STK_SCHEDULER_FAIR_IMPL_H
#define STK_SCHEDULER_FAIR_IMPL_H

#include "scheduler/fair.h"

#define NONE STK_FAIR_NONE

typedef enum place { FREE, OUT, LISTED } place;

typedef struct item {
    stk_mono arrived;
    uint32_t next, prev; /* of its list; next also chains the free ones */
    uint32_t tenant;
    uint8_t where, cls, priority, cost;
} item;

typedef struct queue {
    uint32_t head, tail;
} queue;

typedef struct tenant {
    char name[64];
    uint32_t chain;      /* next of its bucket, or of the free list */
    uint32_t next, prev; /* ring of those that can be picked */
    uint32_t items, listed;
    uint32_t deficit;
    uint16_t waiting[STK_FAIR_CLASSES];  /* a bit per priority that has somebody */
    uint32_t in_class[STK_FAIR_CLASSES]; /* listed */
    uint32_t classes;
    bool parked, in_ring;
    queue queues[STK_FAIR_CLASSES][STK_FAIR_PRIORITIES];
} tenant;

struct stk_fair {
    size_t most;
    stk_span aging;
    item *items;
    size_t nitems, items_size; /* nitems: high-water mark */
    uint32_t free_item;
    size_t count, listed;
    tenant **tenants; /* apart, so that growing moves no ring */
    size_t ntenants, tenants_size;
    uint32_t free_tenant;
    size_t live_tenants;
    uint32_t *buckets;
    size_t nbuckets;                      /* power of two */
    uint32_t cursor;                      /* the tenant whose turn it is, or NONE */
    uint32_t per_class[STK_FAIR_CLASSES]; /* listed items of tenants that are not parked */
    size_t parked;
};

/* By name, or NONE. */
uint32_t stk__fair_find(const stk_fair *fair, stk_str name);
/* By name, made when it is new. */
uint32_t stk__fair_tenant(stk_fair *fair, stk_str name);
/* It has no item left. */
void stk__fair_forget(stk_fair *fair, uint32_t i);
/* A newcomer waits for its turn behind everybody else. */
void stk__fair_ring_in(stk_fair *fair, uint32_t i);
void stk__fair_ring_out(stk_fair *fair, uint32_t i);
/* The next tenant's turn: its deficit grows by one. */
void stk__fair_pass_turn(stk_fair *fair);

#endif
