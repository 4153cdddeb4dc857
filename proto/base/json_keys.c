/* Finds a repeated key in O(n log n), whatever the keys are: hashes only order what is compared in full when
 * they meet. */
#include "proto/base/json_tape.h"

#define FEW 24

static stk_str key(const stk_json *doc, uint32_t at)
{
    return stk__json_string(doc, &doc->node[at]);
}

/* Length and three bytes: enough to tell the keys of one message apart. */
static uint32_t sketch(stk_str s)
{
    if (s.n == 0)
        return 0;
    unsigned char first = (unsigned char)s.p[0], middle = (unsigned char)s.p[s.n / 2],
                  last = (unsigned char)s.p[s.n - 1];
    return (uint32_t)s.n << 24 | (uint32_t)first << 16 | (uint32_t)middle << 8 | last;
}

static uint32_t repeated_of_few(const stk_json *doc, uint32_t object)
{
    uint32_t sketches[FEW], keys[FEW];
    size_t n = 0;
    for (uint32_t at = stk__json_first(doc, object); at; at = stk__json_next(doc, at), n++) {
        keys[n] = at - 1;
        sketches[n] = sketch(key(doc, at - 1));
        for (size_t i = 0; i < n; i++)
            if (sketches[i] == sketches[n] && stk_str_eq(key(doc, keys[i]), key(doc, keys[n])))
                return keys[n];
    }
    return 0;
}

typedef struct entry {
    uint32_t hash, key;
} entry;

static uint32_t hash(stk_str s)
{
    uint64_t h = s.n, w;
    for (; s.n >= 8; s = stk_str_n(s.p + 8, s.n - 8)) {
        memcpy(&w, s.p, 8);
        h = (h ^ w) * 0x9e3779b97f4a7c15u;
        h ^= h >> 32;
    }
    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 0x9e3779b97f4a7c15u;
    return (uint32_t)(h >> 32);
}

static int compare(stk_str a, stk_str b)
{
    if (a.n != b.n)
        return a.n < b.n ? -1 : 1;
    return a.n ? memcmp(a.p, b.p, a.n) : 0;
}

static int by_hash(const void *a, const void *b, void *doc)
{
    const entry *ea = a, *eb = b;
    if (ea->hash != eb->hash)
        return ea->hash < eb->hash ? -1 : 1;
    int order = compare(key(doc, ea->key), key(doc, eb->key));
    return order ? order : (ea->key > eb->key) - (ea->key < eb->key);
}

uint32_t stk__json_repeated(const stk_json *doc, uint32_t object)
{
    size_t count = doc->node[object].bits >> STK__NODE_COUNT, n = 0;
    if (count <= FEW)
        return count < 2 ? 0 : repeated_of_few(doc, object);
    entry *all STK_AUTO(stk_freep) = stk_xcalloc(count, sizeof(*all));
    for (uint32_t at = stk__json_first(doc, object); at; at = stk__json_next(doc, at))
        all[n++] = (entry){.hash = hash(key(doc, at - 1)), .key = at - 1};
    qsort_r(all, n, sizeof(*all), by_hash, (void *)(uintptr_t)doc);
    for (size_t i = 1; i < n; i++)
        if (all[i - 1].hash == all[i].hash && stk_str_eq(key(doc, all[i - 1].key), key(doc, all[i].key)))
            return all[i].key;
    return 0;
}
