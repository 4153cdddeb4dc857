#include "proto/store/chain.h"

int stk_chain_next(const stk_chain *chain, stk_str row, stk_buf *scratch, uint8_t ret[STK_SHA256])
{
    stk_buf_reset(scratch);
    int rc = stk_buf_add(scratch, chain->hash, sizeof(chain->hash));
    if (rc == 0)
        rc = stk_buf_str(scratch, row);
    if (rc == 0)
        stk_sha256_of(stk_buf_view(scratch), ret);
    return rc;
}

void stk_chain_add(stk_chain *chain, const uint8_t hash[STK_SHA256])
{
    chain->seq++;
    memcpy(chain->hash, hash, sizeof(chain->hash));
}

int stk_chain_heads_add(stk_chain_heads *heads, int32_t partition, const stk_chain *chain)
{
    uint8_t at[12];
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)((uint32_t)partition >> (24 - 8 * i));
    for (int i = 0; i < 8; i++)
        at[4 + i] = (uint8_t)((uint64_t)chain->seq >> (56 - 8 * i));
    int rc = stk_buf_add(&heads->bytes, at, sizeof(at));
    return rc < 0 ? rc : stk_buf_add(&heads->bytes, chain->hash, sizeof(chain->hash));
}

void stk_chain_heads_digest(const stk_chain_heads *heads, uint8_t ret[STK_SHA256])
{
    stk_sha256_of(stk_buf_view(&heads->bytes), ret);
}
