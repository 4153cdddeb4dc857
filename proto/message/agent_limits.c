#include "proto/message/agent_config.h"

#define MIB  1048576LL
#define F(m) STK_FIELD_AT(stk_agent_limits, m)
#define ROW(m, a, b)                                                                                         \
    {                                                                                                        \
#m, STK_F_INT, F(m), STK_FIELD_KEEP, a, b                                                            \
    }

/* Sorted by name: documents are written in this order. */
static const stk_field fields[] = {
    ROW(cpu_millis, 50, 256000),
    ROW(file_bytes, 4096, 65536 * MIB),
    ROW(memory_bytes, 16 * MIB, 1048576 * MIB),
    ROW(open_files, 16, 1048576),
    ROW(pids, 8, 32768),
    {"timeout_seconds", STK_F_SECONDS, F(timeout), STK_FIELD_KEEP, STK_TIMEOUT_MIN_NS, STK_TIMEOUT_MAX_NS},
    ROW(tmp_bytes, MIB, 65536 * MIB),
    ROW(workspace_bytes, MIB, 65536 * MIB),
    STK_FIELD_END,
};

void stk_agent_limits_default(stk_agent_limits *limits)
{
    *limits = (stk_agent_limits){.memory_bytes = 512 * MIB,
                                 .cpu_millis = 1000,
                                 .pids = 128,
                                 .open_files = 1024,
                                 .workspace_bytes = 256 * MIB,
                                 .tmp_bytes = 64 * MIB,
                                 .file_bytes = 256 * MIB,
                                 .timeout = stk_sec(3600)};
}

int stk__agent_limits_read(stk_jv v, void *at, stk_err *err)
{
    stk_agent_limits *limits = at;
    limits->file_bytes = 0;
    int rc = stk_fields_decode(fields, v, limits, err);
    if (rc < 0)
        stk__explain(fields, NULL, err);
    else if (limits->file_bytes == 0)
        limits->file_bytes = limits->workspace_bytes;
    return rc;
}

void stk__agent_limits_write(stk_jw *w, const void *at)
{
    stk_fields_encode(fields, at, w);
}
