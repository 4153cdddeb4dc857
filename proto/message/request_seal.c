#include "proto/message/secret.h"

static const char context[] = "run.request";

int stk_request_seal(stk_request *req, const stk_run_secret *secret, const stk_keyring *ring, stk_err *err)
{
    stk_buf aad STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    stk_buf clear STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    stk_buf sealed STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    int rc = stk__request_clear(req, &aad, err);
    if (rc == 0)
        rc = stk__message_encode(&stk__run_secret_message, secret, &clear, err);
    if (rc == 0)
        rc = stk_seal(ring, context, stk_buf_view(&aad), stk_buf_view(&clear), &sealed, err);
    if (rc == 0)
        stk_bytes_set(&req->secret, stk_buf_view(&sealed));
    return rc;
}

int stk_request_open(const stk_request *req, const stk_keyring *ring, stk_run_secret *ret, stk_err *err)
{
    stk_buf aad STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    stk_buf clear STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    int rc = stk__request_clear(req, &aad, err);
    if (rc == 0)
        rc = stk_unseal(ring, context, stk_buf_view(&aad), stk_bytes_view(&req->secret), &clear, err);
    if (rc == 0)
        rc = stk__message_decode(&stk__run_secret_message, stk_buf_view(&clear), ret, err);
    return rc;
}
