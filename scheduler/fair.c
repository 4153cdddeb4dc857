#include "scheduler/fair_impl.h"

stk_fair *stk_fair_new(size_t most, stk_span aging)
{
    stk_fair *fair = stk_xcalloc(1, sizeof(*fair));
    fair->most = most < NONE ? most : NONE - 1;
    fair->aging = aging.ns > 0 ? aging : stk_sec(30);
    fair->free_item = fair->free_tenant = fair->cursor = NONE;
    fair->nbuckets = 64;
    fair->buckets = stk_xcalloc(fair->nbuckets, sizeof(*fair->buckets));
    memset(fair->buckets, 0xff, fair->nbuckets * sizeof(*fair->buckets));
    return fair;
}

void stk_fair_free(stk_fair *fair)
{
    if (!fair)
        return;
    for (size_t i = 0; i < fair->ntenants; i++)
        free(fair->tenants[i]);
    free(fair->tenants);
    free(fair->buckets);
    free(fair->items);
    free(fair);
}

int stk_fair_add(stk_fair *fair, stk_str name, unsigned priority, unsigned cost, stk_mono arrived,
                 uint32_t *ret_item, stk_err *err)
{
    if (fair->count >= fair->most)
        return stk_err_set(err, STK_E_LIMIT, "the index holds %zu requests already", fair->most);
    if (name.n >= sizeof(fair->tenants[0]->name))
        return stk_err_set(err, STK_E_FIELD, "the name of a tenant is too long");
    uint32_t i = fair->free_item;
    if (i != NONE) {
        fair->free_item = fair->items[i].next;
    } else {
        if (fair->nitems == fair->items_size) {
            fair->items_size = fair->items_size ? fair->items_size * 2 : 64;
            fair->items = stk_xrealloc(fair->items, fair->items_size * sizeof(item));
        }
        i = (uint32_t)fair->nitems++;
    }
    uint32_t t = stk__fair_tenant(fair, name);
    fair->items[i] = (item){.arrived = arrived,
                            .next = NONE,
                            .prev = NONE,
                            .tenant = t,
                            .where = OUT,
                            .priority = (uint8_t)stk_min(priority, STK_FAIR_PRIORITIES - 1),
                            .cost = (uint8_t)stk_min(cost ? cost : 1, STK_FAIR_COST_MAX)};
    fair->tenants[t]->items++;
    fair->count++;
    *ret_item = i;
    return 0;
}

static void listed(stk_fair *fair, uint32_t i)
{
    item *it = &fair->items[i];
    tenant *t = fair->tenants[it->tenant];
    it->where = LISTED;
    t->listed++;
    t->waiting[it->cls] |= (uint16_t)(1u << it->priority);
    t->classes |= 1u << it->cls;
    t->in_class[it->cls]++;
    fair->listed++;
    fair->per_class[it->cls] += !t->parked;
    stk__fair_ring_in(fair, it->tenant);
}

void stk_fair_enter(stk_fair *fair, uint32_t i, unsigned cls)
{
    item *it = &fair->items[i];
    it->cls = (uint8_t)stk_min(cls, STK_FAIR_CLASSES - 1);
    queue *q = &fair->tenants[it->tenant]->queues[it->cls][it->priority];
    it->next = NONE;
    it->prev = q->tail;
    if (q->tail == NONE)
        q->head = i;
    else
        fair->items[q->tail].next = i;
    q->tail = i;
    listed(fair, i);
}

void stk_fair_return(stk_fair *fair, uint32_t i)
{
    item *it = &fair->items[i];
    queue *q = &fair->tenants[it->tenant]->queues[it->cls][it->priority];
    it->prev = NONE;
    it->next = q->head;
    if (q->head == NONE)
        q->tail = i;
    else
        fair->items[q->head].prev = i;
    q->head = i;
    listed(fair, i);
    tenant *t = fair->tenants[it->tenant];
    t->deficit = (uint32_t)stk_min(t->deficit + it->cost, STK_FAIR_COST_MAX);
}

bool stk_fair_unlist(stk_fair *fair, uint32_t i)
{
    item *it = &fair->items[i];
    if (it->where != LISTED)
        return false;
    tenant *t = fair->tenants[it->tenant];
    queue *q = &t->queues[it->cls][it->priority];
    if (it->prev == NONE)
        q->head = it->next;
    else
        fair->items[it->prev].next = it->next;
    if (it->next == NONE)
        q->tail = it->prev;
    else
        fair->items[it->next].prev = it->prev;
    if (q->head == NONE)
        t->waiting[it->cls] &= (uint16_t) ~(1u << it->priority);
    if (!t->waiting[it->cls])
        t->classes &= ~(1u << it->cls);
    it->where = OUT;
    t->listed--;
    t->in_class[it->cls]--;
    fair->listed--;
    fair->per_class[it->cls] -= !t->parked;
    if (!t->listed)
        stk__fair_ring_out(fair, it->tenant);
    return true;
}

void stk_fair_drop(stk_fair *fair, uint32_t i)
{
    stk_fair_unlist(fair, i);
    item *it = &fair->items[i];
    if (it->where == FREE)
        return;
    if (--fair->tenants[it->tenant]->items == 0)
        stk__fair_forget(fair, it->tenant);
    it->where = FREE;
    it->next = fair->free_item;
    fair->free_item = i;
    fair->count--;
}

/* --- picking --- */

/* The head with the highest priority, age included; of equal ones the older. */
static uint32_t best_of(const stk_fair *fair, const tenant *t, uint32_t classes, stk_mono now)
{
    uint32_t best = NONE;
    int64_t most = INT64_MIN;
    for (uint32_t left = t->classes & classes; left; left &= left - 1) {
        unsigned cls = (unsigned)__builtin_ctz(left);
        for (unsigned bits = t->waiting[cls]; bits; bits &= bits - 1) {
            unsigned priority = (unsigned)__builtin_ctz(bits);
            uint32_t head = t->queues[cls][priority].head;
            int64_t score =
                (int64_t)priority * fair->aging.ns + stk_mono_sub(now, fair->items[head].arrived).ns;
            if (score > most) {
                most = score;
                best = head;
            }
        }
    }
    return best;
}

uint32_t stk_fair_pick(stk_fair *fair, uint32_t classes, stk_mono now)
{
    if (!(stk_fair_classes(fair) & classes))
        return NONE;
    for (;;) {
        tenant *t = fair->tenants[fair->cursor];
        uint32_t i = t->classes & classes ? best_of(fair, t, classes, now) : NONE;
        if (i == NONE || fair->items[i].cost > t->deficit) {
            stk__fair_pass_turn(fair);
            continue;
        }
        t->deficit -= fair->items[i].cost;
        stk_fair_unlist(fair, i);
        if (t->in_ring && !t->deficit)
            stk__fair_pass_turn(fair);
        return i;
    }
}

static void count_in(stk_fair *fair, const tenant *t, bool in)
{
    for (unsigned cls = 0; cls < STK_FAIR_CLASSES; cls++)
        fair->per_class[cls] += in ? t->in_class[cls] : -t->in_class[cls];
}

void stk_fair_park(stk_fair *fair, uint32_t i)
{
    uint32_t at = fair->items[i].tenant;
    tenant *t = fair->tenants[at];
    if (t->parked)
        return;
    count_in(fair, t, false);
    stk__fair_ring_out(fair, at);
    t->parked = true;
    fair->parked++;
}

void stk_fair_unpark(stk_fair *fair)
{
    for (uint32_t i = 0; fair->parked && i < fair->ntenants; i++) {
        tenant *t = fair->tenants[i];
        if (!t->items || !t->parked)
            continue;
        t->parked = false;
        fair->parked--;
        count_in(fair, t, true);
        stk__fair_ring_in(fair, i);
    }
}

/* --- looking --- */

size_t stk_fair_count(const stk_fair *fair)
{
    return fair->count;
}

size_t stk_fair_listed(const stk_fair *fair)
{
    return fair->listed;
}

size_t stk_fair_tenants(const stk_fair *fair)
{
    return fair->live_tenants;
}

uint32_t stk_fair_classes(const stk_fair *fair)
{
    uint32_t mask = 0;
    for (unsigned cls = 0; cls < STK_FAIR_CLASSES; cls++)
        mask |= (fair->per_class[cls] ? 1u : 0u) << cls;
    return mask;
}

stk_span stk_fair_oldest(const stk_fair *fair, stk_mono now)
{
    int64_t most = 0;
    for (uint32_t i = 0; i < fair->ntenants; i++) {
        const tenant *t = fair->tenants[i];
        for (uint32_t left = t->items ? t->classes : 0; left; left &= left - 1) {
            unsigned cls = (unsigned)__builtin_ctz(left);
            for (unsigned p = 0; p < STK_FAIR_PRIORITIES; p++) {
                uint32_t head = t->queues[cls][p].head;
                int64_t waited = head == NONE ? 0 : stk_mono_sub(now, fair->items[head].arrived).ns;
                most = waited > most ? waited : most;
            }
        }
    }
    return stk_ns(most);
}

unsigned stk_fair_class(const stk_fair *fair, uint32_t i)
{
    return fair->items[i].cls;
}

stk_mono stk_fair_arrived(const stk_fair *fair, uint32_t i)
{
    return fair->items[i].arrived;
}

size_t stk_fair_span(const stk_fair *fair)
{
    return fair->nitems;
}

void stk_fair_each(stk_fair *fair, stk_str name, void (*fn)(uint32_t item, void *arg), void *arg)
{
    uint32_t at = stk__fair_find(fair, name);
    for (unsigned cls = 0; at != NONE && cls < STK_FAIR_CLASSES; cls++)
        for (unsigned p = 0; p < STK_FAIR_PRIORITIES; p++)
            for (uint32_t i = fair->tenants[at]->queues[cls][p].head, next; i != NONE; i = next) {
                next = fair->items[i].next;
                fn(i, arg);
            }
}
