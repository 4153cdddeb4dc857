/* The rows behind stk_addr_classify; the longest prefix that holds an address wins. */
#ifndef STK_POLICY_ADDRESS_TABLE_H
#define STK_POLICY_ADDRESS_TABLE_H

#include "proto/policy/address.h"

typedef struct stk_addr_row {
    uint8_t bytes[16]; /* IPv4: the first four */
    uint8_t bits;
    uint8_t cls; /* stk_addr_class */
} stk_addr_row;

extern const stk_addr_row stk__addr_rows4[];
extern const size_t stk__addr_nrows4;
extern const stk_addr_row stk__addr_rows6[];
extern const size_t stk__addr_nrows6;

/* The first `bits` bits of a and b are the same. */
bool stk__prefix_same(const uint8_t *a, const uint8_t *b, unsigned bits);

#endif
