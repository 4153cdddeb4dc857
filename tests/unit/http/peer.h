/* A client connection whose peer is the test itself, at the other end of a socketpair. */
#ifndef TEST_HTTP_PEER_H
#define TEST_HTTP_PEER_H

#include "fixture.h"
#include "proto/base/fd.h"
#include "proto/http/client.h"

typedef struct peer {
    fx f; /* for its loop, and its server where a test wants one */
    stk_http_conn *conn;
    int fd;
    stk_buf got; /* what the client sent */
    stk_buf body;
    int heads, ends, fails, writables, dones;
    int status;
    bool reusable, sent, free_in_callback, again;
    stk_err err;
} peer;

void peer_init(peer *p, const stk_http_conn_limits *limits);
void peer_done(peer *p);
extern const stk_http_conn_ops peer_ops; /* count and keep what they hear; arg is the peer */
/* Sends GET /x. */
void peer_get(peer *p);

#undef WITH
#define WITH(p, limits)                                                                                      \
    peer p STK_AUTO(peer_done);                                                                              \
    peer_init(&p, limits)
#define UNTIL(p, condition) fx_until(&(p).f, condition)
#define H                   "HTTP/1.1 200 OK\r\n"

#endif
