/* What a consumer holds: records appended by the writer (from memory) or the reader (from SQL), in order of
 * offset per partition. Everything here needs the file's lock. */
#include "proto/bus/bus_sqlite_impl.h"

#define HOLD_MAX   1024 /* records in inbox and ready */
#define HOLD_BYTES ((size_t)8 << 20)

void stk__bus_inbox_init(stk_bus_inbox *inbox)
{
    inbox->head = NULL;
    inbox->tail = &inbox->head;
}

void stk__bus_inbox_move(stk_bus_inbox *from, stk_bus_inbox *to)
{
    if (!from->head)
        return;
    *to->tail = from->head;
    to->tail = from->tail;
    stk__bus_inbox_init(from);
}

void stk__bus_node_free(stk_bus_node *node)
{
    stk__bus_rec_unref(node->rec);
    free(node);
}

static void drop(stk_bus_inbox *inbox, const stk_bus_sub *sub, stk_bus_reader *c)
{
    stk_bus_node **at = &inbox->head;
    inbox->tail = &inbox->head;
    for (stk_bus_node *node; (node = *at);) {
        if (node->sub != sub) {
            at = &node->next;
            inbox->tail = at;
            continue;
        }
        *at = node->next;
        c->held--;
        c->held_bytes -= stk__bus_rec_size(node->rec);
        stk__bus_node_free(node);
    }
}

void stk__bus_sub_drop(stk_bus_sub *sub)
{
    drop(&sub->consumer->inbox, sub, sub->consumer);
    drop(&sub->consumer->ready, sub, sub->consumer);
}

void stk__bus_flag(stk_bus_reader *c)
{
    c->flagged = true;
    c->bus->need_wake = true;
}

void stk__bus_append(stk_bus_sub *sub, stk_bus_rec *rec)
{
    stk_bus_reader *c = sub->consumer;
    stk_bus_node *node = stk_xcalloc(1, sizeof(*node));
    *node = (stk_bus_node){.rec = stk__bus_rec_ref(rec), .sub = sub};
    *c->inbox.tail = node;
    c->inbox.tail = &node->next;
    c->held++;
    c->held_bytes += stk__bus_rec_size(rec);
    sub->want = rec->offset + 1;
    stk__bus_flag(c);
}

void stk__bus_offer(stk_bus_sub *sub, stk_bus_rec *rec)
{
    stk_bus_reader *c = sub->consumer;
    if (sub->state != STK_SUB_LIVE || sub->broken || rec->offset < sub->want)
        return;
    if (sub->want == rec->offset && c->held < HOLD_MAX && c->held_bytes < HOLD_BYTES)
        stk__bus_append(sub, rec);
    else if (c->held < STK__BUS_HOLD_LOW && !c->read)
        stk__bus_flag(c);
}

void stk__bus_sub_attach(stk_bus_sub *sub, int64_t start)
{
    sub->state = STK_SUB_LIVE;
    sub->fresh = true;
    sub->revoke = sub->broken = false;
    sub->start = sub->want = start;
    sub->mark = sub->part->end;
    sub->next = sub->part->subs;
    sub->part->subs = sub;
    stk__bus_flag(sub->consumer);
}

void stk__bus_sub_detach(stk_bus_sub *sub)
{
    if (sub->state == STK_SUB_NONE)
        return;
    stk_bus_sub **at = &sub->part->subs;
    while (*at != sub)
        at = &(*at)->next;
    *at = sub->next;
    sub->state = STK_SUB_NONE;
    sub->fresh = sub->revoke = false;
    stk__bus_sub_drop(sub);
}
