#include "workers/runtime/output.h"

#define FIRST_SIZE 4096
#define READ_MOST  65536

void stk_output_init(stk_output *out, size_t cap)
{
    *out = (stk_output){.head_max = cap / 2, .tail_max = cap - cap / 2};
}

void stk_output_done(stk_output *out)
{
    free(out->head);
    free(out->tail);
    *out = (stk_output){.head_max = out->head_max, .tail_max = out->tail_max};
}

static void grow(char **p, size_t *size, size_t used, size_t most)
{
    if (used < *size)
        return;
    *size = *size ? stk_min(*size * 2, most) : stk_min(FIRST_SIZE, most);
    *p = stk_xrealloc(*p, *size);
}

char *stk_output_room(stk_output *out, size_t *ret_n)
{
    if (out->head_n < out->head_max) {
        grow(&out->head, &out->head_size, out->head_n, out->head_max);
        *ret_n = stk_min(out->head_size - out->head_n, READ_MOST);
        return out->head + out->head_n;
    }
    if (out->tail_n < out->tail_max)
        grow(&out->tail, &out->tail_size, out->tail_n, out->tail_max);
    if (out->tail_at == out->tail_max)
        out->tail_at = 0;
    *ret_n = stk_min(out->tail_size - out->tail_at, READ_MOST);
    return out->tail + out->tail_at;
}

void stk_output_added(stk_output *out, size_t n)
{
    out->total += n;
    if (out->head_n < out->head_max) {
        out->head_n += n;
        return;
    }
    out->tail_at += n;
    out->tail_n = stk_min(out->tail_n + n, out->tail_max);
}

void stk_output_put(stk_output *out, stk_str s)
{
    while (s.n > 0) {
        size_t n;
        char *to = stk_output_room(out, &n);
        n = stk_min(n, s.n);
        memcpy(to, s.p, n);
        stk_output_added(out, n);
        s = stk_str_n(s.p + n, s.n - n);
    }
}

static size_t sequence_length(unsigned char lead)
{
    if (lead >= 0xc2 && lead <= 0xdf)
        return 2;
    if (lead >= 0xe0 && lead <= 0xef)
        return 3;
    return lead >= 0xf0 && lead <= 0xf4 ? 4 : 1;
}

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

size_t stk_utf8_unfinished(stk_str s)
{
    for (size_t back = 1; back <= 3 && back <= s.n; back++) {
        char c = s.p[s.n - back];
        if (!continues(c))
            return sequence_length((unsigned char)c) > back ? back : 0;
    }
    return 0;
}

size_t stk_output_ready(const stk_output *out)
{
    if (out->head_n < out->head_max)
        return out->head_n;
    return out->head_n - stk_utf8_unfinished(stk_str_n(out->head, out->head_n));
}

/* Continuation bytes at the front belong to a character whose start was left out. */
static size_t orphans(const char *p, size_t n)
{
    size_t i = 0;
    while (i < 3 && i < n && continues(p[i]))
        i++;
    return i;
}

/* Moves the ring behind the head, oldest byte first. */
static void linearize(stk_output *out)
{
    if (out->tail_n == 0)
        return;
    out->head = stk_xrealloc(out->head, out->head_n + out->tail_n);
    char *to = out->head + out->head_n;
    size_t start = out->tail_n == out->tail_max && out->total > out->head_n + out->tail_n ? out->tail_at : 0;
    memcpy(to, out->tail + start, out->tail_n - start);
    memcpy(to + out->tail_n - start, out->tail, start);
    free(out->tail);
    out->tail = NULL;
}

stk_kept stk_output_finish(stk_output *out)
{
    linearize(out);
    size_t all = out->head_n + out->tail_n;
    if (out->total == all)
        return (stk_kept){.head = {out->head, all}, .total = all};
    size_t head = stk_output_ready(out);
    size_t cut = orphans(out->head + out->head_n, out->tail_n);
    size_t tail = out->tail_n - cut;
    return (stk_kept){
        .head = {out->head, head},
        .tail = {out->head + out->head_n + cut, tail},
        .gap = out->total - head - tail,
        .total = out->total,
    };
}
