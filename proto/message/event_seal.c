#include "proto/message/secret.h"

static const char context[] = "run.result";

/* Ids and tenants hold no line end, so that no two lists meet. */
static void bind(const stk_event *ev, stk_buf *out)
{
    stk_buf_fmt(out, "%s\n%s\n%s", ev->run, ev->assignment, ev->tenant);
}

int stk_event_seal(stk_event *ev, const stk_result_secret *secret, const stk_keyring *ring, stk_err *err)
{
    stk_buf aad STK_AUTO(stk_buf_done) = STK_BUF(512);
    stk_buf clear STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    stk_buf sealed STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    bind(ev, &aad);
    int rc = stk__message_encode(&stk__result_secret_message, secret, &clear, err);
    if (rc == 0)
        rc = stk_seal(ring, context, stk_buf_view(&aad), stk_buf_view(&clear), &sealed, err);
    if (rc == 0)
        stk_bytes_set(&ev->secret, stk_buf_view(&sealed));
    return rc;
}

int stk_event_open(const stk_event *ev, const stk_keyring *ring, stk_result_secret *ret, stk_err *err)
{
    stk_buf aad STK_AUTO(stk_buf_done) = STK_BUF(512);
    stk_buf clear STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    memset(ret, 0, sizeof(*ret));
    if (!ev->secret.set)
        return stk_err_set(err, STK_E_NOT_FOUND, "this event holds no result");
    bind(ev, &aad);
    int rc = stk_unseal(ring, context, stk_buf_view(&aad), stk_bytes_view(&ev->secret), &clear, err);
    if (rc == 0)
        rc = stk__message_decode(&stk__result_secret_message, stk_buf_view(&clear), ret, err);
    return rc;
}
