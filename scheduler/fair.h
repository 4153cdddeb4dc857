/* Who is next: deficit round robin between tenants, priorities that age within a tenant, caps by parking.
 * Pure: no clock, no bus, no state; time comes in as a value. Bounded: at most `most` items, about 30 bytes
 * each and 1.2 KiB per tenant that has one.
 *
 * An item is a small number. It belongs to a tenant from `add` to `drop`; while it is listed it can be
 * picked. The caller keeps what it stands for in arrays of his own, by the same number. */
#ifndef STK_SCHEDULER_FAIR_H
#define STK_SCHEDULER_FAIR_H

#include "proto/base/buf.h"
#include "proto/base/time.h"

#define STK_FAIR_CLASSES    12 /* what an item needs; the caller says which are possible now */
#define STK_FAIR_PRIORITIES 10
#define STK_FAIR_COST_MAX   8
#define STK_FAIR_NONE       UINT32_MAX

typedef struct stk_fair stk_fair;

/* aging: waiting that long counts as one priority more. */
stk_fair *stk_fair_new(size_t most, stk_span aging);
void stk_fair_free(stk_fair *fair);
STK_DEFINE_FREEP(stk_fair, stk_fair_freep, stk_fair_free)

/* A new item, not listed. cost 1..8: how much of the tenant's share a start takes. -STK_E_LIMIT when it is
 * full. */
int stk_fair_add(stk_fair *fair, stk_str tenant, unsigned priority, unsigned cost, stk_mono arrived,
                 uint32_t *ret_item, stk_err *err) STK_MUST_USE;
/* Lists it behind the others of its tenant, class and priority. */
void stk_fair_enter(stk_fair *fair, uint32_t item, unsigned cls);
/* Lists one that was picked in front again and gives its cost back. */
void stk_fair_return(stk_fair *fair, uint32_t item);
/* Takes a listed one out of its list (it stays an item); false when it was not listed. */
bool stk_fair_unlist(stk_fair *fair, uint32_t item);
/* Forgets it, listed or not. */
void stk_fair_drop(stk_fair *fair, uint32_t item);

/* The next item whose class is in `classes` (a bit per class), unlisted, or STK_FAIR_NONE. */
uint32_t stk_fair_pick(stk_fair *fair, uint32_t classes, stk_mono now);
/* The item's tenant is passed over until stk_fair_unpark: its running cap is reached. */
void stk_fair_park(stk_fair *fair, uint32_t item);
void stk_fair_unpark(stk_fair *fair);

size_t stk_fair_count(const stk_fair *fair); /* items */
size_t stk_fair_listed(const stk_fair *fair);
size_t stk_fair_tenants(const stk_fair *fair);
/* How long the oldest listed item waits. */
stk_span stk_fair_oldest(const stk_fair *fair, stk_mono now);
/* Classes that somebody listed waits for, parked tenants left out. */
uint32_t stk_fair_classes(const stk_fair *fair);
unsigned stk_fair_class(const stk_fair *fair, uint32_t item);
stk_mono stk_fair_arrived(const stk_fair *fair, uint32_t item);
/* One more than the highest item number in use: bound of the caller's arrays. */
size_t stk_fair_span(const stk_fair *fair);
/* Calls fn for each listed item of a tenant; fn may unlist or drop that item. */
void stk_fair_each(stk_fair *fair, stk_str tenant, void (*fn)(uint32_t item, void *arg), void *arg);

#endif
