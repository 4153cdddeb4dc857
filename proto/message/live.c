#include "proto/message/live.h"

#define CONTEXT  "output"
#define DATA_MAX ((size_t)512 << 10)

static int binding(stk_buf *out, const char *run, int64_t offset)
{
    return stk_buf_fmt(out, "%s:%lld", run, (long long)offset);
}

int stk_live_seal(const stk_keyring *ring, const char *run, int64_t offset, bool stderr_, stk_str data,
                  stk_bytes *ret, stk_err *err)
{
    stk_buf aad STK_AUTO(stk_buf_done) = STK_BUF(128);
    stk_buf sealed STK_AUTO(stk_buf_done) = STK_BUF(DATA_MAX);
    stk_buf clear STK_AUTO(stk_buf_done) = STK_BUF(DATA_MAX);
    /* One letter for the stream, then the bytes: nothing to escape, nothing to parse. */
    if (binding(&aad, run, offset) < 0 || stk_buf_byte(&clear, stderr_ ? 'e' : 'o') < 0 ||
        stk_buf_str(&clear, data) < 0)
        return stk_err_set(err, STK_E_LIMIT, "a piece of output is too long");
    int rc = stk_seal(ring, CONTEXT, stk_buf_view(&aad), stk_buf_view(&clear), &sealed, err);
    if (rc == 0)
        stk_bytes_set(ret, stk_buf_view(&sealed));
    return rc;
}

int stk_live_open(const stk_keyring *ring, const char *run, int64_t offset, stk_str sealed, bool *ret_stderr,
                  stk_buf *out, stk_err *err)
{
    stk_buf aad STK_AUTO(stk_buf_done) = STK_BUF(128);
    stk_buf clear STK_AUTO(stk_buf_done) = STK_BUF(DATA_MAX);
    if (binding(&aad, run, offset) < 0)
        return stk_err_set(err, STK_E_LIMIT, "a run id is too long");
    int rc = stk_unseal(ring, CONTEXT, stk_buf_view(&aad), sealed, &clear, err);
    if (rc < 0)
        return rc;
    if (!clear.n || (clear.p[0] != 'e' && clear.p[0] != 'o'))
        return stk_err_set(err, STK_E_CORRUPT, "a piece of output has no stream");
    *ret_stderr = clear.p[0] == 'e';
    return stk_buf_add(out, clear.p + 1, clear.n - 1);
}
