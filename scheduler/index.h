/* What the scheduler remembers of each unfinished request beside stk_fair: where it stands on the topic, when
 * it is due, and its payload while there is room. By item number. About 50 bytes each. */
#ifndef STK_SCHEDULER_INDEX_H
#define STK_SCHEDULER_INDEX_H

#include "proto/base/time.h"

struct stk_job;

typedef enum stk_slot_state {
    STK_SLOT_FREE,
    STK_SLOT_BUSY,    /* an operation is under way; its job travels with it */
    STK_SLOT_DELAYED, /* due = when it goes on                              */
    STK_SLOT_WAITING  /* due = its deadline, if it has one                  */
} stk_slot_state;

typedef struct stk_slot {
    int64_t offset;
    stk_mono due;        /* ns == 0: never */
    struct stk_job *job; /* NULL while busy, or when the payload was put away */
    uint32_t heap_at;    /* place in the heap + 1; 0 = not in it */
    int32_t partition;
    uint8_t state;
    uint8_t attempts;
} stk_slot;

typedef struct stk_index {
    stk_slot *slots;
    size_t size;
    uint32_t *heap; /* items by due */
    size_t nheap, heap_size;
    size_t bytes; /* of payloads held by slots */
} stk_index;

void stk_index_done(stk_index *index);
/* Room for item numbers below n; new slots are free. */
void stk_index_grow(stk_index *index, size_t n);
/* due.ns == 0 takes it out of the heap. */
void stk_index_set_due(stk_index *index, uint32_t item, stk_mono due);
/* The item that is due first, or UINT32_MAX. */
uint32_t stk_index_first(const stk_index *index);

#endif
