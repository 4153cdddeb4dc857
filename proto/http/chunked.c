#include "proto/http/head_impl.h"

#define MAX_DIGITS  16
#define MAX_TRAILER 8192

enum { SIZE, SIZE_LF, DATA, DATA_CR, DATA_LF, LINE, NAME, VALUE, LINE_LF, LAST_LF, END, BAD };

void stk_chunked_init(stk_chunked *dec)
{
    *dec = (stk_chunked){.state = SIZE};
}

static int size_byte(stk_chunked *dec, char c)
{
    if (c == '\r')
        return dec->line ? SIZE_LF : BAD;
    int digit = stk__hex_of(c);
    if (digit < 0 || ++dec->line > MAX_DIGITS)
        return BAD;
    dec->size = dec->size << 4 | (uint64_t)digit;
    return dec->size > INT64_MAX ? BAD : SIZE;
}

static int size_end(stk_chunked *dec, char c)
{
    if (c != '\n')
        return BAD;
    dec->left = dec->size;
    dec->size = 0;
    dec->line = 0;
    return dec->left ? DATA : LINE;
}

/* A trailer line is checked like a header line, byte by byte, since nothing of it is kept. */
static int trailer_byte(stk_chunked *dec, char c)
{
    uint8_t kind = stk__byte_class[(uint8_t)c];
    if (++dec->trailer > MAX_TRAILER)
        return BAD;
    switch (dec->state) {
    case LINE:
        if (c == '\r')
            return LAST_LF;
        return kind & STK__C_TOKEN ? NAME : BAD;
    case NAME:
        if (c == ':')
            return VALUE;
        return kind & STK__C_TOKEN ? NAME : BAD;
    case VALUE:
        if (c == '\r')
            return LINE_LF;
        return kind & STK__C_VALUE ? VALUE : BAD;
    case LINE_LF:
        return c == '\n' ? LINE : BAD;
    default:
        return c == '\n' ? END : BAD;
    }
}

static int step(stk_chunked *dec, char c)
{
    switch (dec->state) {
    case SIZE:
        return size_byte(dec, c);
    case SIZE_LF:
        return size_end(dec, c);
    case DATA_CR:
        return c == '\r' ? DATA_LF : BAD;
    case DATA_LF:
        return c == '\n' ? SIZE : BAD;
    default:
        return trailer_byte(dec, c);
    }
}

ptrdiff_t stk_chunked_feed(stk_chunked *dec, stk_str in, stk_str *ret_data, bool *ret_end)
{
    size_t used = 0;
    *ret_data = (stk_str){NULL, 0};
    *ret_end = false;
    while (used < in.n && dec->state < END && dec->state != DATA)
        dec->state = step(dec, in.p[used++]);
    if (dec->state == BAD)
        return -1;
    if (dec->state == DATA && used < in.n) {
        size_t n = in.n - used < dec->left ? in.n - used : (size_t)dec->left;
        *ret_data = stk_str_n(in.p + used, n);
        used += n;
        dec->left -= n;
        if (dec->left == 0)
            dec->state = DATA_CR;
    }
    *ret_end = dec->state == END;
    return (ptrdiff_t)used;
}
