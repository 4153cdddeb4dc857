#include "audit-consumer/lane.h"
#include <stdio.h>

static void item_done(const stk_audit_lane *lane, stk_lane_item *item)
{
    if (lane->kind == STK_LANE_AUDIT)
        stk_audit_row_done(&item->row);
    else
        stk_event_done(&item->event);
    stk_bytes_done(&item->raw);
}

stk_lane_item *stk_lane_push(stk_audit_lane *lane, int64_t offset)
{
    if (lane->n == lane->size) {
        lane->size = lane->size ? lane->size * 2 : 16;
        lane->items = stk_xrealloc(lane->items, lane->size * sizeof(*lane->items));
    }
    stk_lane_item *item = &lane->items[lane->n++];
    memset(item, 0, sizeof(*item));
    item->offset = offset;
    return item;
}

void stk_lane_pop_last(stk_audit_lane *lane)
{
    lane->n--;
    item_done(lane, &lane->items[lane->n]);
}

void stk_lane_drop(stk_audit_lane *lane, size_t n)
{
    for (size_t i = 0; i < n; i++)
        item_done(lane, &lane->items[i]);
    lane->n -= n;
    memmove(lane->items, lane->items + n, lane->n * sizeof(*lane->items));
}

size_t stk_lane_repeated(const stk_audit_lane *lane)
{
    size_t n = 0;
    while (n < lane->n && lane->items[n].offset < lane->next)
        n++;
    return n;
}

size_t stk_lane_storable(const stk_audit_lane *lane, size_t most)
{
    size_t n = 0;
    while (n < lane->n && n < most &&
           (lane->items[n].state == STK_ITEM_ROW || lane->items[n].state == STK_ITEM_BURIED))
        n++;
    return n;
}

void stk_lane_batch(const stk_audit_lane *lane, size_t n, stk_store_batch *ret, void **ret_array)
{
    size_t each = lane->kind == STK_LANE_AUDIT ? sizeof(stk_audit_row) : sizeof(stk_event);
    char *array = stk_xcalloc(n, each);
    size_t filled = 0;
    for (size_t i = 0; i < n; i++)
        if (lane->items[i].state == STK_ITEM_ROW)
            memcpy(array + each * filled++, &lane->items[i].row, each);
    *ret = (stk_store_batch){.topic = lane->topic,
                             .partition = lane->partition,
                             .from = lane->next,
                             .to = lane->items[n - 1].offset + 1};
    if (lane->kind == STK_LANE_AUDIT) {
        ret->rows = (const stk_audit_row *)(const void *)array;
        ret->nrows = filled;
    } else {
        ret->events = (const stk_event *)(const void *)array;
        ret->nevents = filled;
    }
    *ret_array = array;
}

stk_lane_item *stk_lane_row(stk_audit_lane *lane, size_t row)
{
    for (size_t i = 0; i < lane->n; i++)
        if (lane->items[i].state == STK_ITEM_ROW && row-- == 0)
            return &lane->items[i];
    return NULL;
}

void stk_lane_condemn(const stk_audit_lane *lane, stk_lane_item *item, stk_str raw, const char *why)
{
    if (lane->kind == STK_LANE_AUDIT)
        stk_audit_row_done(&item->row);
    else
        stk_event_done(&item->event);
    item->state = STK_ITEM_TO_BURY;
    stk_bytes_set(&item->raw, raw);
    snprintf(item->why, sizeof(item->why), "%s", why);
}

stk_lane_item *stk_lane_find(stk_audit_lane *lane, int64_t offset)
{
    for (size_t i = 0; i < lane->n; i++)
        if (lane->items[i].offset == offset)
            return &lane->items[i];
    return NULL;
}

void stk_lane_done(stk_audit_lane *lane)
{
    stk_lane_drop(lane, lane->n);
    free(lane->items);
    lane->items = NULL;
    lane->size = 0;
}
