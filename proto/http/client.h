/* HTTP/1.1 client on one connected descriptor (worker -> runtime links, router -> pods), same framing code as
 * the server. One exchange at a time; no redirects, no retries: the caller decides.
 *
 * A peer here is untrusted (a sandbox): heads, chunk framing, total sizes and times are bounded. */
#ifndef STK_HTTP_CLIENT_H
#define STK_HTTP_CLIENT_H

#include "proto/base/time.h"
#include "proto/http/head.h"
#include <event2/event.h>

typedef struct stk_http_conn stk_http_conn;

typedef struct stk_http_conn_ops {
    /* The final head (1xx are read and dropped, at most 8). Borrowed until the next callback. */
    void (*on_head)(stk_http_conn *conn, const stk_head *head, void *arg);
    void (*on_body)(stk_http_conn *conn, stk_str data, void *arg);
    /* The answer is complete. The connection may be used again when `reusable`. */
    void (*on_end)(stk_http_conn *conn, bool reusable, void *arg);
    /* No (complete) answer: -STK_E_CLOSED, _TIMEOUT, _PROTOCOL, _LIMIT in err. `sent`: at least one byte of
     * the request left, so it may have been carried out. Also called when an idle connection is closed by the
     * peer. */
    void (*on_fail)(stk_http_conn *conn, const stk_err *err, bool sent, void *arg);
    /* A streamed request body has room again. */
    void (*on_writable)(stk_http_conn *conn, void *arg);
} stk_http_conn_ops;

typedef struct stk_http_conn_limits {
    stk_head_limits head;
    uint64_t body;  /* most bytes of an answer's body; default 8 MiB */
    stk_span first; /* from the end of the request to the answer's head; default 30 s */
    stk_span stall; /* no progress inside an answer; default 30 s; STK_SPAN_NEVER for streams */
} stk_http_conn_limits;

/* Takes the descriptor (connecting or connected, nonblocking). ops (borrowed; it and its members may be NULL)
 * hear of everything but what belongs to a stk_http_call. No callback runs inside a call of the owner's; the
 * owner may free the connection, or send again, inside a callback. After on_fail, or on_end that is not
 * reusable, all that is left to do is to free it. */
int stk_http_conn_new(struct event_base *base, int fd, const stk_http_conn_limits *limits,
                      const stk_http_conn_ops *ops, void *arg, stk_http_conn **ret,
                      stk_err *err) STK_MUST_USE;
void stk_http_conn_free(stk_http_conn *conn);
STK_DEFINE_FREEP(stk_http_conn, stk_http_conn_freep, stk_http_conn_free)

/* Sends a whole request. host goes into Host; headers as in stk_http_answer. limits NULL = the connection's.
 * -STK_E_CLOSED on a dead connection, -STK_E_CONFLICT while another request is under way, -STK_E_HTTP for a
 * malformed part. */
int stk_http_conn_send(stk_http_conn *conn, const char *method, const char *target, const char *host,
                       const char *headers, stk_str body, const stk_http_conn_limits *limits,
                       stk_err *err) STK_MUST_USE;
/* A streamed request: length UINT64_MAX = chunked. */
int stk_http_conn_start(stk_http_conn *conn, const char *method, const char *target, const char *host,
                        const char *headers, uint64_t length, const stk_http_conn_limits *limits,
                        stk_err *err) STK_MUST_USE;
bool stk_http_conn_write(stk_http_conn *conn, stk_str data);
void stk_http_conn_finish(stk_http_conn *conn);
void stk_http_conn_pause(stk_http_conn *conn);
void stk_http_conn_resume(stk_http_conn *conn);

/* The simple form on top: one request, the answer collected (at most `most` bytes). done is called once. err
 * is NULL on success; head and body are borrowed for that time. `limit` is for the whole exchange. */
typedef void (*stk_http_done)(const stk_err *err, bool sent, const stk_head *head, stk_str body, void *arg);
int stk_http_call(stk_http_conn *conn, const char *method, const char *target, const char *host,
                  const char *headers, stk_str body, uint64_t most, stk_span limit, stk_http_done done,
                  void *arg, stk_err *err) STK_MUST_USE;

#endif
