#include "proto/message/link.h"
#include "proto/message/check.h"
#include "proto/message/request.h"

#define KEPT (STK_FIELD_REQUIRED | STK_FIELD_KEEP)

#define H(m) STK_FIELD_AT(stk_hello, m)
static const stk_field hello_fields[] = {
    {"kind", STK_F_TEXT, H(kind), KEPT},
    {"id", STK_F_TEXT, H(id), KEPT},
    {"nonce", STK_F_TEXT, H(nonce), KEPT},
    STK_FIELD_END,
};
static const stk__check hello_checks[] = {
    {STK__CHECK_AT(stk_hello, kind), STK__WORD, "control|health|command", STK__FULL},
    {STK__CHECK_AT(stk_hello, id), STK__AGENT, NULL, STK__FULL},
    {STK__CHECK_AT(stk_hello, nonce), STK__AGENT, NULL, STK__FULL},
    {0},
};
static const stk__message hello_message = {
    .what = "hello", .fields = hello_fields, .checks = hello_checks, .size = sizeof(stk_hello)};

int stk_hello_encode(const stk_hello *hello, stk_buf *out)
{
    int rc = stk__message_encode(&hello_message, hello, out, NULL);
    return rc < 0 ? rc : stk_buf_byte(out, '\n');
}

int stk_hello_decode(stk_str line, stk_hello *ret, stk_err *err)
{
    if (line.n >= STK_HELLO_MAX) {
        memset(ret, 0, sizeof(*ret));
        return stk_err_set(err, STK_E_LIMIT, "a hello over %d bytes", STK_HELLO_MAX);
    }
    return stk__message_decode(&hello_message, line, ret, err);
}

#define E(m) STK_FIELD_AT(stk_exec_end, m)
static const stk_field end_fields[] = {
    {"exit_code", STK_F_INT, E(exit_code), KEPT, -64, 255},
    {"signal", STK_F_INT, E(signal), KEPT, 0, 64},
    {"timed_out", STK_F_BOOL, E(timed_out), KEPT},
    {"oom_killed", STK_F_BOOL, E(oom_killed), KEPT},
    {"truncated", STK_F_BOOL, E(truncated), KEPT},
    {"duration_ms", STK_F_INT, E(duration_ms), KEPT, 0, INT64_MAX},
    {"stdout_bytes", STK_F_INT, E(stdout_bytes), KEPT, 0, INT64_MAX},
    {"stderr_bytes", STK_F_INT, E(stderr_bytes), KEPT, 0, INT64_MAX},
    {"detail", STK_F_TEXT, E(detail)},
    STK_FIELD_END,
};
static const stk__check end_checks[] = {{STK__CHECK_AT(stk_exec_end, detail), STK__CLEAN}, {0}};
static const stk__message end_message = {
    .what = "exit line", .fields = end_fields, .checks = end_checks, .size = sizeof(stk_exec_end)};

void stk_exec_end_write(stk_jw *w, const stk_exec_end *end)
{
    stk__message_write(&end_message, end, w);
}

void stk_exec_end_write_members(stk_jw *w, const stk_exec_end *end)
{
    stk_fields_encode_members(end_fields, end, w);
}

int stk_exec_end_decode(stk_jv v, stk_exec_end *ret, stk_err *err)
{
    return stk__message_decode_jv(&end_message, v, ret, err);
}
