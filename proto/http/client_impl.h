/* Private to the client's files. */
#ifndef STK_HTTP_CLIENT_IMPL_H
#define STK_HTTP_CLIENT_IMPL_H

#include "proto/http/client.h"
#include "proto/http/io.h"

typedef enum stk__conn_state {
    STK__CONN_IDLE,
    STK__CONN_HEAD, /* a request is out or on its way, no final head yet */
    STK__CONN_BODY,
    STK__CONN_DEAD /* of no more use; the owner frees it                */
} stk__conn_state;

/* What stk_http_call waits for. */
typedef struct stk__call {
    stk_http_done done;
    void *arg;
    stk_buf body;
    stk_mono until;
} stk__call;

struct stk_http_conn {
    stk__io io;
    stk_http_conn_limits own, limits; /* the connection's; the present request's */
    const stk_http_conn_ops *ops;
    void *arg;
    stk__conn_state state;
    bool busy, freed;

    /* The request. */
    bool whole;   /* all of it was handed over                    */
    bool flushed; /* and has left                                 */
    bool chunked_out;
    bool to_head;
    bool want_writable;
    uint64_t out_left;
    uint64_t sent_before;
    stk_mono since; /* when it had left */

    /* The answer. */
    bool paused;
    int interim;
    size_t scan;
    char *head_block;
    size_t head_size;
    stk_head head;
    stk_chunked chunked;
    uint64_t body_left, body_seen;
    stk_err failure; /* found outside a turn; code != 0 */
    stk__call call;
};

/* client.c */
/* NULL: the connection's own. Members that are 0 get their defaults. */
void stk__conn_limits(stk_http_conn *conn, const stk_http_conn_limits *limits);
void stk__conn_arm(stk_http_conn *conn);

/* client_call.c: who hears of it, the owner's ops or the call under way. */
void stk__tell_head(stk_http_conn *conn);
/* False when a call's answer is larger than it may be. */
bool stk__tell_body(stk_http_conn *conn, stk_str data);
void stk__tell_end(stk_http_conn *conn, bool reusable);
void stk__tell_fail(stk_http_conn *conn, const stk_err *err, bool sent);

#endif
