#include "proto/bus/ack.h"

void stk_ack_start(stk_ack *ack, int64_t offset)
{
    ack->prefix = ack->next = offset;
}

void stk_ack_done(stk_ack *ack)
{
    free(ack->bits);
    *ack = (stk_ack){0};
}

static uint64_t *word_of(const stk_ack *ack, int64_t offset)
{
    return &ack->bits[(size_t)(offset >> 6) & (ack->words - 1)];
}

static uint64_t bit_of(int64_t offset)
{
    return UINT64_C(1) << (offset & 63);
}

/* Makes the ring cover prefix..offset. */
static void cover(stk_ack *ack, int64_t offset)
{
    size_t need = (size_t)((offset >> 6) - (ack->prefix >> 6)) + 1;
    if (need <= ack->words)
        return;
    stk_ack bigger = {.words = ack->words ? ack->words : 4};
    while (bigger.words < need)
        bigger.words *= 2;
    bigger.bits = stk_xcalloc(bigger.words, sizeof(*bigger.bits));
    for (int64_t at = ack->prefix & ~INT64_C(63); ack->words && at < ack->next; at += 64)
        *word_of(&bigger, at) = *word_of(ack, at);
    free(ack->bits);
    ack->bits = bigger.bits;
    ack->words = bigger.words;
}

static void advance(stk_ack *ack)
{
    while (ack->prefix < ack->next) {
        uint64_t word = *word_of(ack, ack->prefix);
        if ((ack->prefix & 63) == 0 && word == UINT64_MAX && ack->prefix + 64 <= ack->next)
            ack->prefix += 64;
        else if (word & bit_of(ack->prefix))
            ack->prefix++;
        else
            return;
    }
}

void stk_ack_skip(stk_ack *ack, int64_t offset)
{
    if (offset <= ack->next)
        return;
    if (ack->prefix == ack->next) {
        stk_ack_start(ack, offset);
        return;
    }
    cover(ack, offset - 1);
    for (int64_t at = ack->next; at < offset; at++)
        *word_of(ack, at) |= bit_of(at);
    ack->next = offset;
}

void stk_ack_deliver(stk_ack *ack, int64_t offset)
{
    stk_ack_skip(ack, offset);
    cover(ack, offset);
    *word_of(ack, offset) &= ~bit_of(offset);
    ack->next = offset + 1;
}

bool stk_ack_finish(stk_ack *ack, int64_t offset)
{
    if (offset < ack->prefix || offset >= ack->next || (*word_of(ack, offset) & bit_of(offset)))
        return false;
    *word_of(ack, offset) |= bit_of(offset);
    if (offset == ack->prefix)
        advance(ack);
    return true;
}
