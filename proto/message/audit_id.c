#include "proto/base/crypto.h"
#include "proto/message/audit.h"
#include <stdio.h>

void stk_audit_id(stk_wall time, const char *subject, const char *assignment, const char *action, uint64_t n,
                  char out[STK_ID_SIZE])
{
    char number[24];
    snprintf(number, sizeof(number), "%llu", (unsigned long long)n);
    const stk_str parts[] = {stk_str_of(subject), stk_str_of(assignment), stk_str_of(action),
                             stk_str_of(number)};
    uint8_t digest[STK_SHA256], bytes[16];
    stk_sha256_parts(parts, STK_COUNT(parts), digest);
    uint64_t ms = time.ns > 0 ? (uint64_t)time.ns / 1000000 : 0;
    for (int i = 5; i >= 0; i--, ms >>= 8)
        bytes[i] = (uint8_t)ms;
    memcpy(bytes + 6, digest, 10);
    stk_id_from("aud", bytes, out);
}
