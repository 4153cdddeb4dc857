/* Private to the server's files. */
#ifndef STK_HTTP_SERVER_IMPL_H
#define STK_HTTP_SERVER_IMPL_H

#include "proto/http/io.h"
#include "proto/http/server.h"
#include <netinet/in.h>
#include <sys/un.h>

#define STK__BODY_BUFFER (64u << 10)

typedef struct stk__listener {
    struct stk__listener *next;
    stk_http_server *server;
    struct event ev;
    int fd;
} stk__listener;

struct stk_http_server {
    struct event_base *base;
    stk_http_limits limits;
    const stk_http_ops *ops;
    void *arg;
    stk__listener *listeners;
    struct event pause; /* no descriptors left: accepting waits */
    struct event watch; /* looks after clients whose socket can't be read now */
    bool full, draining, freeing;
    stk_http_x *first;
    size_t count, watched;
    char date[40];
    int64_t date_at;
};

/* Where the request is. */
typedef enum stk__in {
    STK__IN_HEAD, /* waiting for one                                    */
    STK__IN_HELD, /* a body follows that nobody has asked for yet       */
    STK__IN_BODY,
    STK__IN_DONE, /* all of it was read                                 */
    STK__IN_DROP  /* the rest is never looked at: the connection closes */
} stk__in;

typedef enum stk__out { STK__OUT_NONE, STK__OUT_STREAM, STK__OUT_ENDED } stk__out;

/* A connection, which carries one exchange at a time. */
struct stk_http_x {
    stk__io io;
    stk_http_server *server;
    stk_http_x *next, *prev;
    void (*on_close)(void *arg);
    void *close_arg;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } addr;
    char peer[64];
    bool busy;  /* inside run(): whoever calls in now need not start it */
    bool dead;  /* to be freed when run() is left */
    bool fresh; /* no request yet */
    bool adopted;
    bool linger; /* the answer is out; what still comes in is thrown away */
    bool watched;
    size_t linger_left;
    stk_mono since; /* when it became idle, the head began, or lingering began */

    /* The exchange. */
    bool open; /* on_head was called and on_done not yet */
    bool cut;
    bool close;
    bool paused;
    bool want_writable;
    bool client_closes; /* it asked for the close itself */
    stk__in in;
    stk__out out;
    size_t scan;
    char *head_block;
    size_t head_size;
    stk_head head;
    stk_str path, query;
    void *data;
    stk_chunked chunked;
    uint64_t body_left, body_seen, body_most;
    stk_framing out_framing;
    uint64_t out_left;
    bool is_head; /* the method is HEAD */
    bool drop;    /* the answer has no body to send */
};

/* What goes with a connection that was handed over, not accepted. */
typedef struct stk__adopted {
    void (*on_close)(void *arg);
    void *arg;
} stk__adopted;

/* server_conn.c; adopted is NULL for an accepted one. */
void stk__conn_new(stk_http_server *server, int fd, const struct sockaddr *addr, const stk__adopted *adopted);
/* Ends the exchange (gone) and frees. */
void stk__conn_destroy(stk_http_x *x);
/* Frees when nothing goes on there. */
void stk__conn_drain(stk_http_x *x);
/* Something changed from outside a turn. */
void stk__conn_kick(stk_http_x *x);
/* Ends it when the client has gone. */
void stk__conn_check(stk_http_x *x);
/* server_x.c: answers by ourselves, or cuts when an answer is under way. */
void stk__conn_refuse(stk_http_x *x, int status, const char *code, const char *detail);

/* server.c */
void stk__server_room(stk_http_server *server);

#endif
