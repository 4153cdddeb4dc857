/* The one HTTP/1.1 server of the project (gateway, runtime, router), over libevent bufferevents.
 *
 * One exchange at a time per connection; a pipelined request waits. Bodies stream both ways with
 * back-pressure. All calls and callbacks are on the loop's thread. Errors that the server itself answers
 * (malformed head, too slow, too large) have the body that `error_body` makes. */
#ifndef STK_HTTP_SERVER_H
#define STK_HTTP_SERVER_H

#include "proto/base/time.h"
#include "proto/http/head.h"
#include <event2/event.h>

typedef struct stk_http_server stk_http_server;
typedef struct stk_http_x stk_http_x; /* one exchange: a request and its answer */

typedef struct stk_http_limits {
    stk_head_limits head;
    uint64_t
        body; /* most bytes of a request body; default 1 MiB; over it: 413 and close. UINT64_MAX = no limit */
    stk_span head_time;  /* from the first byte of a head (from accepting, for the first) to its end; default
                            10 s; 408 */
    stk_span idle_time;  /* a kept-alive connection without a request; default 60 s     */
    stk_span stall_time; /* no progress while reading a body or writing an answer; default 60 s */
    size_t connections;  /* most at once; default 1024; beyond it accepting pauses       */
    size_t write_buffer; /* bytes queued before stk_http_write says "wait"; default 256 KiB */
} stk_http_limits;

/* What a program answers with. Any may be NULL but on_head. */
typedef struct stk_http_ops {
    /* The head was read. Decide: call stk_http_accept_body to stream the body in, or answer at once (an early
     * answer closes the connection after it when a body was still to come). Not called for a bad head. */
    void (*on_head)(stk_http_x *x, void *arg);
    /* A run of body bytes; borrowed. Call stk_http_pause/resume for back-pressure. */
    void (*on_body)(stk_http_x *x, stk_str data, void *arg);
    /* The whole body was read (at once after on_head when there is none). Not called once the answer has
     * ended. */
    void (*on_end)(stk_http_x *x, void *arg);
    /* The exchange is over: answered and flushed, or the client is gone (`gone`: reset, write error, closed
     * Unix socket, too slow in reading, aborted; never a mere half-close). It may come without an answer of
     * the program's: the server answered itself (body too large, too slow or malformed). Last callback;
     * forget x. */
    void (*on_done)(stk_http_x *x, bool gone, void *arg);
    /* The output queue of a streaming answer has room again. */
    void (*on_writable)(stk_http_x *x, void *arg);
    /* Content type and body for an error the server answers itself; appends to out, returns the content type.
     */
    const char *(*error_body)(int status, const char *code, const char *detail, stk_buf *out, void *arg);
} stk_http_ops;

/* limits NULL or zero members = defaults; copied. ops and arg are borrowed. SIGPIPE is set to be ignored
 * unless the program handles it. */
int stk_http_server_new(struct event_base *base, const stk_http_limits *limits, const stk_http_ops *ops,
                        void *arg, stk_http_server **ret, stk_err *err) STK_MUST_USE;
/* Takes a listening nonblocking descriptor (stk_listen). May be called more than once. */
int stk_http_server_listen(stk_http_server *server, int fd, stk_err *err) STK_MUST_USE;
/* Serves one connected descriptor (a link that we dialled, a socketpair). on_close may be NULL; it runs when
 * the connection has ended. */
int stk_http_server_adopt(stk_http_server *server, int fd, void (*on_close)(void *arg), void *arg,
                          stk_err *err) STK_MUST_USE;
/* Stops accepting; idle connections close; running exchanges go on. */
void stk_http_server_drain(stk_http_server *server);
size_t stk_http_server_connections(const stk_http_server *server);
/* Cuts everything (on_done(gone) for each) and frees. Not from inside a callback of the server. */
void stk_http_server_free(stk_http_server *server);

/* The request. Slices live until on_done. */
const stk_head *stk_http_head(const stk_http_x *x);
stk_str stk_http_path(const stk_http_x *x);  /* of the target, still percent-encoded, without the query */
stk_str stk_http_query(const stk_http_x *x); /* after '?', or empty */
void stk_http_set_data(stk_http_x *x, void *data);
void *stk_http_data(const stk_http_x *x);
/* "127.0.0.1:4711" or "unix". */
const char *stk_http_peer(const stk_http_x *x);
/* Peer address of a TCP connection; NULL for Unix. */
const struct sockaddr *stk_http_peer_addr(const stk_http_x *x);

/* Lets the body in; sends 100 Continue exactly once when it was asked for. most: body limit of this exchange
 * (0 = the server's). */
void stk_http_accept_body(stk_http_x *x, uint64_t most);
void stk_http_pause(stk_http_x *x);
void stk_http_resume(stk_http_x *x);

/* A whole answer. headers: "Name: value\r\n" lines or ""; malformed ones (a bare CR or LF: an injection) make
 * it a bare 500. 204/304 have no body; to HEAD only the length goes out. A second answer does nothing.
 * on_done comes later, never inside this call. */
void stk_http_answer(stk_http_x *x, int status, const char *type, const char *headers, stk_str body);
/* A streamed answer: start (length UINT64_MAX = chunked, or until close for HTTP/1.0), write, end. Write
 * returns false when the queue is full: wait for on_writable (bytes were taken all the same). */
void stk_http_start(stk_http_x *x, int status, const char *type, const char *headers, uint64_t length);
bool stk_http_write(stk_http_x *x, stk_str data);
/* Sends bytes of a file without copying them; needs a length given to start. The descriptor is closed by the
 * server. A file that turns out shorter cuts the connection. */
bool stk_http_write_file(stk_http_x *x, int fd, uint64_t offset, uint64_t length);
void stk_http_end(stk_http_x *x);
/* Cuts the connection without a proper end (a streamed answer that went wrong). */
void stk_http_abort(stk_http_x *x);

/* Name of a status ("Not Found"). */
const char *stk_http_status_name(int status);

#endif
