#include "egress-proxy/seen.h"

static size_t place(const stk_seen *seen, const char *host)
{
    uint64_t hash = 1469598103934665603u;
    for (const char *p = host; *p; p++)
        hash = (hash ^ (uint8_t)*p) * 1099511628211u;
    size_t at = (size_t)(hash ^ hash >> 32) & (seen->size - 1);
    while (seen->slots[at].host && strcmp(seen->slots[at].host, host) != 0)
        at = (at + 1) & (seen->size - 1);
    return at;
}

int64_t *stk_seen_get(stk_seen *seen, const char *host)
{
    if (!seen->n)
        return NULL;
    struct stk_seen_slot *slot = &seen->slots[place(seen, host)];
    return slot->host ? &slot->seq : NULL;
}

static void grow(stk_seen *seen)
{
    stk_seen old = *seen;
    seen->size = old.size ? old.size * 2 : 16;
    seen->slots = stk_xcalloc(seen->size, sizeof(*seen->slots));
    for (size_t i = 0; i < old.size; i++)
        if (old.slots[i].host)
            seen->slots[place(seen, old.slots[i].host)] = old.slots[i];
    free(old.slots);
}

void stk_seen_put(stk_seen *seen, const char *host, int64_t seq, size_t most)
{
    if (seen->n == most)
        return;
    if (2 * (seen->n + 1) > seen->size)
        grow(seen);
    struct stk_seen_slot *slot = &seen->slots[place(seen, host)];
    if (!slot->host) {
        slot->host = stk_xstrdup(host);
        seen->n++;
    }
    slot->seq = seq;
}

void stk_seen_clear(stk_seen *seen)
{
    for (size_t i = 0; i < seen->size; i++)
        free(seen->slots[i].host);
    free(seen->slots);
    *seen = (stk_seen){0};
}
