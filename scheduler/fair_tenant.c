#include "scheduler/fair_impl.h"

static uint32_t hash_of(stk_str name)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < name.n; i++)
        h = (h ^ (unsigned char)name.p[i]) * 16777619u;
    return h ^ h >> 15;
}

uint32_t stk__fair_find(const stk_fair *fair, stk_str name)
{
    uint32_t at = fair->buckets[hash_of(name) & (fair->nbuckets - 1)];
    while (at != NONE && !stk_str_eq(name, stk_str_of(fair->tenants[at]->name)))
        at = fair->tenants[at]->chain;
    return at;
}

static void rehash(stk_fair *fair)
{
    fair->nbuckets *= 2;
    fair->buckets = stk_xrealloc(fair->buckets, fair->nbuckets * sizeof(*fair->buckets));
    memset(fair->buckets, 0xff, fair->nbuckets * sizeof(*fair->buckets));
    for (uint32_t i = 0; i < fair->ntenants; i++) {
        tenant *t = fair->tenants[i];
        if (!t->items)
            continue;
        uint32_t *bucket = &fair->buckets[hash_of(stk_str_of(t->name)) & (fair->nbuckets - 1)];
        t->chain = *bucket;
        *bucket = i;
    }
}

static uint32_t tenant_slot(stk_fair *fair)
{
    uint32_t i = fair->free_tenant;
    if (i != NONE) {
        fair->free_tenant = fair->tenants[i]->chain;
        return i;
    }
    if (fair->ntenants == fair->tenants_size) {
        fair->tenants_size = fair->tenants_size ? fair->tenants_size * 2 : 16;
        fair->tenants = stk_xrealloc(fair->tenants, fair->tenants_size * sizeof(tenant *));
    }
    fair->tenants[fair->ntenants] = stk_xcalloc(1, sizeof(tenant));
    return (uint32_t)fair->ntenants++;
}

uint32_t stk__fair_tenant(stk_fair *fair, stk_str name)
{
    uint32_t i = stk__fair_find(fair, name);
    if (i != NONE)
        return i;
    if (fair->live_tenants >= fair->nbuckets)
        rehash(fair);
    i = tenant_slot(fair);
    tenant *t = fair->tenants[i];
    memset(t, 0, sizeof(*t));
    memset(t->queues, 0xff, sizeof(t->queues));
    stk_str_copy(name, t->name, sizeof(t->name));
    uint32_t *bucket = &fair->buckets[hash_of(name) & (fair->nbuckets - 1)];
    t->chain = *bucket;
    *bucket = i;
    fair->live_tenants++;
    return i;
}

void stk__fair_forget(stk_fair *fair, uint32_t i)
{
    tenant *t = fair->tenants[i];
    uint32_t *at = &fair->buckets[hash_of(stk_str_of(t->name)) & (fair->nbuckets - 1)];
    while (*at != i)
        at = &fair->tenants[*at]->chain;
    *at = t->chain;
    fair->parked -= t->parked;
    t->chain = fair->free_tenant;
    fair->free_tenant = i;
    fair->live_tenants--;
}

void stk__fair_ring_in(stk_fair *fair, uint32_t i)
{
    tenant *t = fair->tenants[i];
    if (t->in_ring || t->parked || !t->listed)
        return;
    t->in_ring = true;
    if (fair->cursor == NONE) {
        fair->cursor = t->next = t->prev = i;
        t->deficit = 1;
        return;
    }
    tenant *turn = fair->tenants[fair->cursor];
    t->next = fair->cursor;
    t->prev = turn->prev;
    fair->tenants[turn->prev]->next = i;
    turn->prev = i;
}

void stk__fair_pass_turn(stk_fair *fair)
{
    fair->cursor = fair->tenants[fair->cursor]->next;
    tenant *t = fair->tenants[fair->cursor];
    if (t->deficit < STK_FAIR_COST_MAX)
        t->deficit++;
}

void stk__fair_ring_out(stk_fair *fair, uint32_t i)
{
    tenant *t = fair->tenants[i];
    if (!t->in_ring)
        return;
    t->in_ring = false;
    t->deficit = 0;
    if (t->next == i) {
        fair->cursor = NONE;
        return;
    }
    if (fair->cursor == i)
        stk__fair_pass_turn(fair);
    fair->tenants[t->prev]->next = t->next;
    fair->tenants[t->next]->prev = t->prev;
}
