#include "scheduler/index.h"

void stk_index_done(stk_index *index)
{
    free(index->slots);
    free(index->heap);
    *index = (stk_index){.slots = NULL};
}

void stk_index_grow(stk_index *index, size_t n)
{
    if (n <= index->size)
        return;
    size_t size = index->size ? index->size : 64;
    while (size < n)
        size *= 2;
    index->slots = stk_xrealloc(index->slots, size * sizeof(*index->slots));
    memset(index->slots + index->size, 0, (size - index->size) * sizeof(*index->slots));
    index->size = size;
}

static bool before(const stk_index *index, size_t a, size_t b)
{
    return stk_mono_before(index->slots[index->heap[a]].due, index->slots[index->heap[b]].due);
}

static void swap(stk_index *index, size_t a, size_t b)
{
    uint32_t item = index->heap[a];
    index->heap[a] = index->heap[b];
    index->heap[b] = item;
    index->slots[index->heap[a]].heap_at = (uint32_t)a + 1;
    index->slots[index->heap[b]].heap_at = (uint32_t)b + 1;
}

static void up(stk_index *index, size_t at)
{
    for (; at > 0 && before(index, at, (at - 1) / 2); at = (at - 1) / 2)
        swap(index, at, (at - 1) / 2);
}

static void down(stk_index *index, size_t at)
{
    for (;;) {
        size_t least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < index->nheap; child++)
            if (before(index, child, least))
                least = child;
        if (least == at)
            return;
        swap(index, at, least);
        at = least;
    }
}

static void take_out(stk_index *index, uint32_t item)
{
    size_t at = index->slots[item].heap_at - 1, last = --index->nheap;
    index->slots[item].heap_at = 0;
    if (at == last)
        return;
    index->heap[at] = index->heap[last];
    index->slots[index->heap[at]].heap_at = (uint32_t)at + 1;
    up(index, at);
    down(index, at);
}

void stk_index_set_due(stk_index *index, uint32_t item, stk_mono due)
{
    stk_slot *slot = &index->slots[item];
    if (slot->heap_at)
        take_out(index, item);
    slot->due = due;
    if (!due.ns)
        return;
    if (index->nheap == index->heap_size) {
        index->heap_size = index->heap_size ? index->heap_size * 2 : 64;
        index->heap = stk_xrealloc(index->heap, index->heap_size * sizeof(*index->heap));
    }
    index->heap[index->nheap] = item;
    slot->heap_at = (uint32_t)++index->nheap;
    up(index, index->nheap - 1);
}

uint32_t stk_index_first(const stk_index *index)
{
    return index->nheap ? index->heap[0] : UINT32_MAX;
}
