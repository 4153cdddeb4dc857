/* The hash chain of audit rows: pure. One chain per partition of stk.audit; hash_0 is 32 zero bytes,
 * hash_n = SHA-256(hash_{n-1} || canonical row), where the canonical row is what stk_audit_encode wrote when
 * the row was stored: those bytes are kept, so that a later encoder can't break an old chain. */
#ifndef STK_STORE_CHAIN_H
#define STK_STORE_CHAIN_H

#include "proto/base/crypto.h"

typedef struct stk_chain {
    int64_t seq; /* rows so far; the first row has seq 1 */
    uint8_t hash[STK_SHA256];
} stk_chain;

/* The hash of the row after `chain`. `scratch` is reused from row to row (its contents are lost). 0 or
 * -STK_E_LIMIT. */
int stk_chain_next(const stk_chain *chain, stk_str row, stk_buf *scratch,
                   uint8_t ret[STK_SHA256]) STK_MUST_USE;
/* Moves on to a row whose hash is known. */
void stk_chain_add(stk_chain *chain, const uint8_t hash[STK_SHA256]);

/* A digest over the heads of all chains, in order of partition: what an operator exports and compares later
 * (a chain cut at its end is still whole by itself). */
typedef struct stk_chain_heads {
    stk_buf bytes; /* partition (4, big-endian), seq (8), hash of each */
} stk_chain_heads;
int stk_chain_heads_add(stk_chain_heads *heads, int32_t partition, const stk_chain *chain) STK_MUST_USE;
void stk_chain_heads_digest(const stk_chain_heads *heads, uint8_t ret[STK_SHA256]);

#endif
