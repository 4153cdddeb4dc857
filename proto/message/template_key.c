#include "proto/base/crypto.h"
#include "proto/message/config.h"
#include <stdio.h>

void stk_template_key(const char *tenant, const char *backend, const char *image,
                      const stk_agent_limits *limits, char out[STK_ID_SIZE])
{
    char numbers[256];
    snprintf(numbers, sizeof(numbers), "%lld %lld %lld %lld %lld %lld %lld", (long long)limits->memory_bytes,
             (long long)limits->cpu_millis, (long long)limits->pids, (long long)limits->open_files,
             (long long)limits->workspace_bytes, (long long)limits->tmp_bytes, (long long)limits->file_bytes);
    const stk_str parts[] = {stk_str_of(tenant), stk_str_of(backend), stk_str_of(image), stk_str_of(numbers)};
    uint8_t digest[STK_SHA256];
    stk_sha256_parts(parts, STK_COUNT(parts), digest);
    stk_id_from("tpl", digest, out);
}
