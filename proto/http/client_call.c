#include "proto/http/client_impl.h"

void stk__tell_head(stk_http_conn *conn)
{
    if (!conn->call.done && conn->ops && conn->ops->on_head)
        conn->ops->on_head(conn, &conn->head, conn->arg);
}

bool stk__tell_body(stk_http_conn *conn, stk_str data)
{
    if (conn->call.done)
        return stk_buf_str(&conn->call.body, data) == 0;
    if (conn->ops && conn->ops->on_body)
        conn->ops->on_body(conn, data, conn->arg);
    return true;
}

/* The call is over before its callback runs, which may start another or free the connection. */
static void end_call(stk_http_conn *conn, const stk_err *err, bool sent)
{
    stk__call call = conn->call;
    char *head_block = STK_TAKE(conn->head_block);
    conn->call = (stk__call){.until = {INT64_MAX}};
    call.done(err, sent, err ? NULL : &conn->head, err ? (stk_str){NULL, 0} : stk_buf_view(&call.body),
              call.arg);
    stk_buf_done(&call.body);
    free(head_block);
}

void stk__tell_end(stk_http_conn *conn, bool reusable)
{
    if (conn->call.done)
        end_call(conn, NULL, true);
    else if (conn->ops && conn->ops->on_end)
        conn->ops->on_end(conn, reusable, conn->arg);
}

void stk__tell_fail(stk_http_conn *conn, const stk_err *err, bool sent)
{
    if (conn->call.done)
        end_call(conn, err, sent);
    else if (conn->ops && conn->ops->on_fail)
        conn->ops->on_fail(conn, err, sent, conn->arg);
}

int stk_http_call(stk_http_conn *conn, const char *method, const char *target, const char *host,
                  const char *headers, stk_str body, uint64_t most, stk_span limit, stk_http_done done,
                  void *arg, stk_err *err)
{
    stk_http_conn_limits limits = {.head = conn->own.head, .body = most, .first = limit, .stall = limit};
    int rc = stk_http_conn_send(conn, method, target, host, headers, body, &limits, err);
    if (rc < 0)
        return rc;
    conn->call = (stk__call){
        .done = done,
        .arg = arg,
        .body = STK_BUF(most < SIZE_MAX ? (size_t)most : SIZE_MAX),
        .until = stk_mono_add(stk_mono_now(), limit),
    };
    if (!conn->busy)
        stk__conn_arm(conn);
    return 0;
}
