/* The ack window of one partition: which delivered offsets are finished, and the longest finished prefix.
 * Pure; shared by the adapters. One bit per offset between the prefix and the newest delivered one. */
#ifndef STK_BUS_ACK_H
#define STK_BUS_ACK_H

#include "proto/base/base.h"

#define STK_ACK_SPAN                                                                                         \
    (int64_t)(1 << 26) /* offsets between prefix and newest at most: then delivery pauses (8 MiB of bits) */

typedef struct stk_ack {
    int64_t prefix; /* everything below is finished */
    int64_t next;   /* everything below was delivered (or does not exist) */
    uint64_t *bits; /* ring of words; bit set = finished */
    size_t words;   /* power of two, or 0 */
} stk_ack;

/* Starts over with nothing delivered; keeps the memory. */
void stk_ack_start(stk_ack *ack, int64_t offset);
void stk_ack_done(stk_ack *ack);
static inline bool stk_ack_room(const stk_ack *ack)
{
    return ack->next - ack->prefix < STK_ACK_SPAN;
}
/* `offset` >= ack->next is handed out now; offsets skipped over do not exist and count as finished. */
void stk_ack_deliver(stk_ack *ack, int64_t offset);
/* Nothing exists from ack->next up to `offset`. */
void stk_ack_skip(stk_ack *ack, int64_t offset);
/* False when it was not delivered or is finished already. */
bool stk_ack_finish(stk_ack *ack, int64_t offset);

#endif
