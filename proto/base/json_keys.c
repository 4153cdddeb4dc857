/* Finds a repeated key in O(n log n), whatever the keys are: no hash that a sender could make collide. */
#include "proto/base/json_tape.h"

#define FEW 8

static int compare(stk_str a, stk_str b)
{
    if (a.n != b.n)
        return a.n < b.n ? -1 : 1;
    return a.n ? memcmp(a.p, b.p, a.n) : 0;
}

static stk_str key(const stk_json *doc, uint32_t at)
{
    return stk__json_string(doc, &doc->node[at]);
}

static uint32_t repeated_of_few(const stk_json *doc, uint32_t object)
{
    stk_str seen[FEW];
    size_t n = 0;
    for (uint32_t at = stk__json_first(doc, object); at; at = stk__json_next(doc, at)) {
        seen[n] = key(doc, at - 1);
        for (size_t i = 0; i < n; i++)
            if (stk_str_eq(seen[i], seen[n]))
                return at - 1;
        n++;
    }
    return 0;
}

static int by_key(const void *a, const void *b, void *arg)
{
    uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
    int order = compare(key(arg, ia), key(arg, ib));
    return order ? order : (ia > ib) - (ia < ib);
}

uint32_t stk__json_repeated(const stk_json *doc, uint32_t object)
{
    size_t count = doc->node[object].bits >> STK__NODE_COUNT, n = 0;
    if (count < 2)
        return 0;
    if (count <= FEW)
        return repeated_of_few(doc, object);
    uint32_t *keys STK_AUTO(stk_freep)
    = stk_xcalloc(count, sizeof(*keys));
    for (uint32_t at = stk__json_first(doc, object); at; at = stk__json_next(doc, at))
        keys[n++] = at - 1;
    qsort_r(keys, n, sizeof(*keys), by_key, (void *)(uintptr_t)doc);
    for (size_t i = 1; i < n; i++)
        if (compare(key(doc, keys[i - 1]), key(doc, keys[i])) == 0)
            return keys[i];
    return 0;
}
