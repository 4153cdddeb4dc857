/* Hosts that were allowed before, each with the number of its first record. A hash table with a cap. */
#ifndef STK_EGRESS_PROXY_SEEN_H
#define STK_EGRESS_PROXY_SEEN_H

#include "proto/base/base.h"

typedef struct stk_seen {
    struct stk_seen_slot {
        char *host;
        int64_t seq;
    } * slots;
    size_t n, size;
} stk_seen;

/* The place of its number, valid until the next put; NULL when it is not there. */
int64_t *stk_seen_get(stk_seen *seen, const char *host);
/* Does nothing at the cap. */
void stk_seen_put(stk_seen *seen, const char *host, int64_t seq, size_t most);
void stk_seen_clear(stk_seen *seen);

#endif
