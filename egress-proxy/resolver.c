#include "egress-proxy/resolver.h"
#include <event2/event_struct.h>

#define SETS      128 /* names remembered: a few places for each hash, the one that is stale first makes room */
#define WAYS      4
#define KEPT_MOST stk_sec(60)
#define GRACE     stk_ms(500) /* for the slower family once the other has addresses */

typedef struct kept {
    char *name;
    stk_sock *addrs;
    size_t n;
    stk_mono until;
} kept;

struct stk_resolver {
    struct event_base *base;
    stk_dns_servers servers;
    int64_t spent;
    kept kept[SETS][WAYS];
};

struct stk_lookup {
    stk_resolver *resolver;
    char name[STK_NAME_MAX];
    stk_dns_query *queries[2];
    stk_reason reasons[2];
    bool done[2];
    stk_sock addrs[STK_LOOKUP_ADDRS];
    size_t n;
    uint32_t ttl;
    struct event fail;
    stk_resolved_fn on_done;
    void *arg;
};

stk_resolver *stk_resolver_new(struct event_base *base, const stk_dns_servers *servers)
{
    stk_resolver *resolver = stk_xcalloc(1, sizeof(*resolver));
    resolver->base = base;
    resolver->servers = *servers;
    return resolver;
}

static void forget(kept *slot)
{
    free(slot->name);
    free(slot->addrs);
    *slot = (kept){0};
}

void stk_resolver_forget(stk_resolver *resolver)
{
    for (size_t i = 0; i < SETS * WAYS; i++)
        forget(&resolver->kept[i / WAYS][i % WAYS]);
}

void stk_resolver_free(stk_resolver *resolver)
{
    stk_resolver_forget(resolver);
    free(resolver);
}

int64_t *stk_resolver_spent(stk_resolver *resolver)
{
    return &resolver->spent;
}

static kept *set_of(stk_resolver *resolver, const char *name)
{
    uint32_t hash = 2166136261u;
    for (const char *p = name; *p; p++)
        hash = (hash ^ (uint8_t)*p) * 16777619u;
    return resolver->kept[(hash ^ hash >> 16) % SETS];
}

size_t stk_resolver_known(stk_resolver *resolver, const char *name, stk_mono now, stk_sock *addrs)
{
    const kept *set = set_of(resolver, name);
    for (size_t i = 0; i < WAYS; i++)
        if (set[i].name && strcmp(set[i].name, name) == 0 && stk_mono_before(now, set[i].until)) {
            memcpy(addrs, set[i].addrs, set[i].n * sizeof(*addrs));
            return set[i].n;
        }
    return 0;
}

/* The place of that name, or the one whose answer ends first. */
static kept *place_for(stk_resolver *resolver, const char *name)
{
    kept *set = set_of(resolver, name), *place = set;
    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].name && strcmp(set[i].name, name) == 0)
            return &set[i];
        if (stk_mono_before(set[i].until, place->until))
            place = &set[i];
    }
    return place;
}

static void keep(const stk_lookup *lookup)
{
    kept *slot = place_for(lookup->resolver, lookup->name);
    if (lookup->ttl == 0 && (!slot->name || strcmp(slot->name, lookup->name) != 0))
        return;
    forget(slot);
    if (lookup->ttl == 0)
        return;
    stk_span span = stk_sec(lookup->ttl);
    slot->name = stk_xstrdup(lookup->name);
    slot->addrs = (stk_sock *)(void *)stk_xmemdup(lookup->addrs, lookup->n * sizeof(*lookup->addrs));
    slot->n = lookup->n;
    slot->until = stk_mono_add(stk_mono_now(), span.ns > KEPT_MOST.ns ? KEPT_MOST : span);
}

static void finish(stk_lookup *lookup, stk_reason reason)
{
    stk_sock addrs[STK_LOOKUP_ADDRS];
    size_t n = lookup->n;
    stk_resolved_fn on_done = lookup->on_done;
    void *arg = lookup->arg;
    if (reason == STK_R_ALLOWED)
        keep(lookup);
    memcpy(addrs, lookup->addrs, n * sizeof(*addrs));
    stk_lookup_free(lookup);
    on_done(reason, addrs, n, arg);
}

/* Both are done and there is no address. What a server said about the name goes before what it failed to say.
 */
static stk_reason why_not(const stk_lookup *lookup)
{
    for (int i = 0; i < 2; i++)
        if (lookup->reasons[i] != STK_R_ALLOWED)
            return lookup->reasons[i];
    return STK_R_DNS_NO_ADDRESS;
}

static void on_answer(stk_lookup *lookup, int which, stk_reason reason, const stk_dns_answer *answer)
{
    int other = 1 - which;
    lookup->done[which] = true;
    lookup->reasons[which] = reason;
    if (reason == STK_R_ALLOWED) {
        memcpy(lookup->addrs + lookup->n, answer->addrs, answer->n * sizeof(*answer->addrs));
        lookup->n += answer->n;
        if (answer->n && answer->ttl < lookup->ttl)
            lookup->ttl = answer->ttl;
    }
    if (reason == STK_R_DNS_NXDOMAIN && !lookup->n)
        finish(lookup, reason);
    else if (lookup->done[other])
        finish(lookup, lookup->n ? STK_R_ALLOWED : why_not(lookup));
    else if (lookup->n)
        stk_dns_query_hurry(lookup->queries[other], GRACE);
}

static void on_a(stk_reason reason, const stk_dns_answer *answer, void *arg)
{
    on_answer(arg, 0, reason, answer);
}

static void on_aaaa(stk_reason reason, const stk_dns_answer *answer, void *arg)
{
    on_answer(arg, 1, reason, answer);
}

static void on_fail(evutil_socket_t fd, short what, void *arg)
{
    finish(arg, STK_R_DNS_UNREACHABLE);
}

stk_lookup *stk_lookup_new(stk_resolver *resolver, const char *name, stk_resolved_fn on_done, void *arg)
{
    stk_lookup *lookup = stk_xcalloc(1, sizeof(*lookup));
    lookup->resolver = resolver;
    lookup->ttl = UINT32_MAX;
    lookup->on_done = on_done;
    lookup->arg = arg;
    stk_str_copy(stk_str_of(name), lookup->name, sizeof(lookup->name));
    evtimer_assign(&lookup->fail, resolver->base, on_fail, lookup);
    if (resolver->servers.n == 0) {
        event_active(&lookup->fail, EV_TIMEOUT, 1);
        return lookup;
    }
    struct event_base *base = resolver->base;
    lookup->queries[0] =
        stk_dns_query_new(base, &resolver->servers, lookup->name, STK_DNS_A, &resolver->spent, on_a, lookup);
    lookup->queries[1] = stk_dns_query_new(base, &resolver->servers, lookup->name, STK_DNS_AAAA,
                                           &resolver->spent, on_aaaa, lookup);
    return lookup;
}

void stk_lookup_free(stk_lookup *lookup)
{
    for (int i = 0; i < 2; i++)
        if (lookup->queries[i])
            stk_dns_query_free(lookup->queries[i]);
    event_del(&lookup->fail);
    free(lookup);
}
