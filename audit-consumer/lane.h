/* What one partition of one topic still has to store: decoded records in order of offset. Pure bookkeeping.
 */
#ifndef STK_AUDIT_LANE_H
#define STK_AUDIT_LANE_H

#include "proto/store/store.h"

typedef enum stk_lane_kind { STK_LANE_AUDIT, STK_LANE_EVENTS } stk_lane_kind;

/* A record that can't be stored goes to stk.dead first; only then its offset is passed, without a row. */
typedef enum stk_item_state {
    STK_ITEM_ROW,
    STK_ITEM_TO_BURY,
    STK_ITEM_BURYING,
    STK_ITEM_BURIED
} stk_item_state;

typedef struct stk_lane_item {
    int64_t offset;
    stk_item_state state;
    stk_bytes raw; /* not STK_ITEM_ROW: the record's bytes */
    char why[256];
    union {
        stk_audit_row row;
        stk_event event;
    };
} stk_lane_item;

typedef struct stk_audit_lane {
    stk_lane_kind kind;
    const char *topic;
    int32_t partition;
    int64_t next; /* the store's offset; -1 = not asked yet */
    bool asking;  /* for the offset */
    bool storing; /* a batch is with the store */
    size_t taken; /* items of that batch, at the front */
    stk_lane_item *items;
    size_t n, size;
} stk_audit_lane;

/* Makes room for one more and returns it zeroed. */
stk_lane_item *stk_lane_push(stk_audit_lane *lane, int64_t offset);
/* Frees the last item (decoding failed) or the first n. */
void stk_lane_pop_last(stk_audit_lane *lane);
void stk_lane_drop(stk_audit_lane *lane, size_t n);
/* Items at the front whose offset is below the store's: already stored. */
size_t stk_lane_repeated(const stk_audit_lane *lane);
/* How many items at the front (at most `most`) could be stored now: it ends before one that is not buried
 * yet. */
size_t stk_lane_storable(const stk_audit_lane *lane, size_t most);
/* Fills a batch from the first n items: the array is allocated for the caller (shallow copies; the items keep
 * ownership). */
void stk_lane_batch(const stk_audit_lane *lane, size_t n, stk_store_batch *ret, void **ret_array);
/* The item of the batch's row number `row`. */
stk_lane_item *stk_lane_row(stk_audit_lane *lane, size_t row);
/* Marks it TO_BURY with its bytes and the reason. */
void stk_lane_condemn(const stk_audit_lane *lane, stk_lane_item *item, stk_str raw, const char *why);
stk_lane_item *stk_lane_find(stk_audit_lane *lane, int64_t offset);
void stk_lane_done(stk_audit_lane *lane);

#endif
