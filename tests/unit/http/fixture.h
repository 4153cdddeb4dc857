/* A server with a small program behind it, and raw clients, all in one event loop. */
#ifndef TEST_HTTP_FIXTURE_H
#define TEST_HTTP_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include "proto/http/server.h"

typedef struct fx {
    struct event_base *base;
    stk_http_server *server;
    int port;
    int heads, bodies, ends, dones, gones, closes, writables;
    size_t body_bytes;  /* received by the program */
    size_t stream_left; /* still to write */
    stk_http_x *held;
    stk_buf collected;
    bool stop_reading; /* pause at each run of the body */
    uint64_t most;
    int file;
} fx;

void fx_init(fx *f, const stk_http_limits *limits);
void fx_done(fx *f);
/* Runs the loop once, waiting at most a millisecond. */
void fx_turn(fx *f);
/* Runs the loop until the condition holds; fails the test after 5 s. */
#define fx_until(f, condition)                                                                               \
    do {                                                                                                     \
        stk_mono fx__end = stk_mono_add(stk_mono_now(), stk_sec(5));                                         \
        while (!(condition)) {                                                                               \
            if (!stk_mono_before(stk_mono_now(), fx__end))                                                   \
                fail_msg("still waiting for: %s", #condition);                                               \
            fx_turn(f);                                                                                      \
        }                                                                                                    \
    } while (0)
/* Lets things happen for a while, to see that something does not. */
void fx_for(fx *f, stk_span span);

int fx_dial(fx *f); /* TCP on loopback, nonblocking */
int fx_pair(fx *f); /* the client's end of an adopted socketpair */
void fx_send(fx *f, int fd, stk_str data);
/* What has come so far is appended; false at the end of the stream (or a reset: *reset set when not NULL). */
bool fx_recv(int fd, stk_buf *in, bool *reset);
/* Reads until the text holds `what`, or the end. */
void fx_expect(fx *f, int fd, stk_buf *in, const char *what);
void fx_expect_end(fx *f, int fd, stk_buf *in);
size_t fx_count(const stk_buf *in, const char *what);
void fx_reset(int fd); /* closes with a TCP reset */

#define WITH(f, limits)                                                                                      \
    fx f STK_AUTO(fx_done);                                                                                  \
    fx_init(&f, limits)
#define TEXT(name) stk_buf name STK_AUTO(stk_buf_done) = STK_BUF(200u << 20)
#define GET        STK_STR("GET / HTTP/1.1\r\nHost: h\r\n\r\n")

#endif
