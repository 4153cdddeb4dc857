#include "proto/policy/set.h"

/* Open addressing over two kinds of key: (name, wildcard, port) of each entry, and (name, wildcard, NAMED)
 * for the first entry of a name. The hash runs over the name backwards, so that one walk over a host gives
 * the hash of every suffix. */
#define NAMED 0x10000u

typedef struct slot {
    uint32_t entry; /* index + 1; 0 = free */
    uint32_t port;
} slot;

struct stk_entries {
    stk_entry *v;
    size_t n;
    slot *slots;
    size_t mask;
};

static uint32_t hash_step(uint32_t h, char c)
{
    return (h ^ (unsigned char)c) * 16777619u;
}

static uint32_t hash_name(const char *name)
{
    uint32_t h = 2166136261u;
    for (size_t i = strlen(name); i > 0; i--)
        h = hash_step(h, name[i - 1]);
    return h;
}

static size_t spread(uint32_t h, bool wildcard, uint32_t port)
{
    uint64_t x = ((uint64_t)h << 18 | port << 1 | wildcard) * 0x9e3779b97f4a7c15u;
    return (size_t)(x >> 20);
}

/* The slot that holds this key, or the free one where it belongs. */
static slot *probe(const stk_entries *set, uint32_t h, const char *name, bool wildcard, uint32_t port)
{
    for (size_t i = spread(h, wildcard, port);; i++) {
        slot *s = &set->slots[i & set->mask];
        if (!s->entry)
            return s;
        const stk_entry *e = &set->v[s->entry - 1];
        if (s->port == port && e->wildcard == wildcard && strcmp(e->name, name) == 0)
            return s;
    }
}

static const stk_entry *look(const stk_entries *set, uint32_t h, const char *name, bool wildcard,
                             uint32_t port)
{
    const slot *s = probe(set, h, name, wildcard, port);
    return s->entry ? &set->v[s->entry - 1] : NULL;
}

static void insert(stk_entries *set, size_t i)
{
    const stk_entry *e = &set->v[i];
    uint32_t h = hash_name(e->name);
    const uint32_t ports[] = {e->port, NAMED};
    for (size_t k = 0; k < STK_COUNT(ports); k++) {
        slot *s = probe(set, h, e->name, e->wildcard, ports[k]);
        if (!s->entry)
            *s = (slot){(uint32_t)i + 1, ports[k]};
    }
}

static void pointer_to(stk_err *err, size_t i)
{
    char at[24];
    stk_buf buf = STK_BUF(sizeof(at));
    if (err && stk_buf_fmt(&buf, "/%zu", i) == 0)
        stk_err_prefix(err, buf.p);
    stk_buf_done(&buf);
}

int stk_entries_new(const stk_strv *texts, stk_entries **ret, stk_err *err)
{
    if (texts->n > STK_ENTRIES_MAX)
        return stk_err_set(err, STK_E_FIELD, "more than %d entries", STK_ENTRIES_MAX);
    stk_entries *set STK_AUTO(stk_entries_freep) = stk_xcalloc(1, sizeof(*set));
    set->v = stk_xcalloc(texts->n, sizeof(*set->v));
    size_t slots = 8;
    while (slots < texts->n * 4)
        slots *= 2;
    set->slots = stk_xcalloc(slots, sizeof(*set->slots));
    set->mask = slots - 1;
    for (size_t i = 0; i < texts->n; i++) {
        if (stk_entry_parse(stk_bytes_view(&texts->v[i]), &set->v[i], err) < 0) {
            pointer_to(err, i);
            return -STK_E_FIELD;
        }
        set->n++;
        insert(set, i);
    }
    *ret = STK_TAKE(set);
    return 0;
}

void stk_entries_free(stk_entries *set)
{
    if (!set)
        return;
    free(set->slots);
    free(set->v);
    free(set);
}

size_t stk_entries_count(const stk_entries *set)
{
    return set->n;
}

const stk_entry *stk_entries_at(const stk_entries *set, size_t i)
{
    return i < set->n ? &set->v[i] : NULL;
}

/* One name of the walk: the entry for the port, or only one that names it. port 0 asks for the portless entry
 * alone. */
static const stk_entry *at_name(const stk_entries *set, uint32_t h, const char *name, bool wildcard,
                                uint16_t port, stk_portless portless, const stk_entry **named)
{
    const stk_entry *any = look(set, h, name, wildcard, NAMED);
    if (!any)
        return NULL;
    *named = any;
    const stk_entry *e = look(set, h, name, wildcard, port);
    if (!e && (portless == STK_PORTLESS_ANY || port == 80 || port == 443))
        e = look(set, h, name, wildcard, 0);
    return e;
}

const stk_entry *stk__entries_find(const stk_entries *set, const char *host, uint16_t port,
                                   stk_portless portless, const stk_entry **ret_named)
{
    const stk_entry *best = NULL, *named = NULL;
    uint32_t h = 2166136261u;
    for (size_t i = strlen(host); i > 0; i--) {
        if (host[i - 1] == '.' && host[i]) {
            const stk_entry *e = at_name(set, h, host + i, true, port, portless, &named);
            best = e ? e : best;
        }
        h = hash_step(h, host[i - 1]);
    }
    const stk_entry *e = at_name(set, h, host, false, port, portless, &named);
    if (ret_named)
        *ret_named = named;
    return e ? e : best;
}

const stk_entry *stk__entries_cover(const stk_entries *set, const stk_entry *entry, stk_portless portless)
{
    const stk_entry *named = NULL;
    uint32_t h = 2166136261u;
    const char *name = entry->name;
    for (size_t i = strlen(name); i > 0; i--) {
        const stk_entry *e =
            name[i - 1] == '.' ? at_name(set, h, name + i, true, entry->port, portless, &named) : NULL;
        if (e)
            return e;
        h = hash_step(h, name[i - 1]);
    }
    return at_name(set, h, name, entry->wildcard, entry->port, portless, &named);
}

const stk_entry *stk_entries_match(const stk_entries *set, const char *host, uint16_t port,
                                   bool *ret_name_only)
{
    const stk_entry *named = NULL;
    const stk_entry *e = stk__entries_find(set, host, port, STK_PORTLESS_WEB, &named);
    if (ret_name_only)
        *ret_name_only = !e && named;
    return e;
}
