/* A chunked body reads the same in one piece, in two and byte by byte; nothing is taken after its end; and
 * what was taken for data is a run of the input. First byte: where it is cut. */
#include "proto/http/head.h"

static void check(bool holds)
{
    if (!holds)
        abort();
}

typedef struct sum {
    size_t bytes, used;
    uint32_t hash;
    int end; /* 1: ended, -1: refused */
} sum;

static void feed(stk_chunked *dec, stk_str in, sum *sum)
{
    while (in.n && sum->end == 0) {
        stk_str data;
        bool end = false;
        ptrdiff_t n = stk_chunked_feed(dec, in, &data, &end);
        if (n < 0) {
            sum->end = -1;
            return;
        }
        check(n > 0 && (size_t)n <= in.n && data.n <= (size_t)n);
        check(data.n == 0 || (data.p >= in.p && data.p + data.n <= in.p + n));
        for (size_t i = 0; i < data.n; i++)
            sum->hash = sum->hash * 31 + (uint8_t)data.p[i];
        sum->bytes += data.n;
        sum->used += (size_t)n;
        sum->end = end;
        in = stk_str_n(in.p + n, in.n - (size_t)n);
    }
}

static bool same(const sum *a, const sum *b)
{
    return a->end == b->end && a->bytes == b->bytes && a->hash == b->hash &&
           (a->end < 0 || a->used == b->used);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    stk_str in = stk_str_n(data + 1, size - 1);
    size_t cut = in.n ? data[0] * in.n / 256 : 0;
    stk_chunked dec;
    sum whole = {0}, halves = {0}, bytes = {0};
    stk_chunked_init(&dec);
    feed(&dec, in, &whole);
    stk_chunked_init(&dec);
    feed(&dec, stk_str_n(in.p, cut), &halves);
    feed(&dec, stk_str_n(in.p + cut, in.n - cut), &halves);
    stk_chunked_init(&dec);
    for (size_t i = 0; i < in.n; i++)
        feed(&dec, stk_str_n(in.p + i, 1), &bytes);
    check(same(&whole, &halves) && same(&whole, &bytes));
    return 0;
}
