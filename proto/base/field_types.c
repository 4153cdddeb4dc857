#include "proto/base/field.h"

void stk_bytes_set(stk_bytes *b, stk_str s)
{
    char *copy = stk_xmemdup(s.p, s.n);
    free(b->p);
    *b = (stk_bytes){.p = copy, .n = s.n, .set = true};
}

void stk_bytes_done(stk_bytes *b)
{
    free(b->p);
    *b = (stk_bytes){0};
}

/* Room for one more element; grows at powers of two, so that no capacity is kept. */
static void *one_more(void *v, size_t n, size_t size)
{
    if (n & (n - 1))
        return v;
    return stk_xrealloc(v, (n ? 2 * n : 1) * size);
}

void stk_strv_add(stk_strv *v, stk_str s)
{
    v->v = one_more(v->v, v->n, sizeof(*v->v));
    v->v[v->n] = (stk_bytes){0};
    stk_bytes_set(&v->v[v->n++], s);
}

void stk_strv_done(stk_strv *v)
{
    for (size_t i = 0; i < v->n; i++)
        stk_bytes_done(&v->v[i]);
    free(v->v);
    *v = (stk_strv){0};
}

void stk_map_add(stk_map *m, stk_str key, stk_str value)
{
    m->v = one_more(m->v, m->n, sizeof(*m->v));
    stk_pair *pair = &m->v[m->n++];
    *pair = (stk_pair){0};
    stk_bytes_set(&pair->key, key);
    stk_bytes_set(&pair->value, value);
}

void stk_map_copy(stk_map *to, const stk_map *from)
{
    for (size_t i = 0; i < from->n; i++)
        stk_map_add(to, stk_bytes_view(&from->v[i].key), stk_bytes_view(&from->v[i].value));
}

const stk_bytes *stk_map_get(const stk_map *m, stk_str key)
{
    for (size_t i = 0; i < m->n; i++)
        if (stk_str_eq(stk_bytes_view(&m->v[i].key), key))
            return &m->v[i].value;
    return NULL;
}

void stk_map_done(stk_map *m)
{
    for (size_t i = 0; i < m->n; i++) {
        stk_bytes_done(&m->v[i].key);
        stk_bytes_done(&m->v[i].value);
    }
    free(m->v);
    *m = (stk_map){0};
}
