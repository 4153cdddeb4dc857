/* Inside of a client, for client.c, connect.c and forward.c. */
#ifndef STK_EGRESS_PROXY_CLIENT_IMPL_H
#define STK_EGRESS_PROXY_CLIENT_IMPL_H

#include "egress-proxy/client.h"
#include "egress-proxy/dialer.h"
#include "egress-proxy/forward.h"
#include "egress-proxy/tunnel.h"

typedef enum stk_client_state {
    STK_CL_HEAD,    /* reading a head                                       */
    STK_CL_RESOLVE, /* DNS                                                  */
    STK_CL_DIAL,    /* connecting                                           */
    STK_CL_ACK,     /* the first allow of a host is being made durable      */
    STK_CL_OPEN,    /* a tunnel or an exchange                              */
    STK_CL_LINGER   /* answered; reading on so that the answer is not reset */
} stk_client_state;

struct stk_client {
    TAILQ_ENTRY(stk_client) link;
    stk_proxy *px;
    int fd, origin; /* origin: -1 or connected */
    stk_client_state state;
    struct event readable, timer;
    stk_buf in; /* read and not used: a head in parts, or what came behind one */
    size_t scan, drained;
    /* the present request */
    stk_target target;
    char rule[STK_NAME_MAX + 8];
    char method[12];
    bool head_request;
    bool keep_alive; /* plain http: another request may follow   */
    bool http_1_0, expect_continue;
    bool again;      /* not the connection's first request       */
    bool pending;    /* client->in may hold a whole head already */
    stk_buf request; /* plain http: the head to send upstream    */
    stk_framing framing;
    uint64_t length;
    stk_mono since;
    uint64_t generation; /* of the policy that judged it */
    bool counted;        /* among px->tunnels */
    stk_lookup *lookup;
    stk_dialer *dialer;
    stk_sock peer;
    stk_ack_wait ack;
    bool open; /* an allow was recorded: a close record is owed */
    int64_t open_seq;
    stk_tunnel *tunnel;
    stk_forward *forward;
};

/* Fills what every record of this request says. */
void stk__client_record(const stk_client *client, const char *kind, stk_egress_record *rec);
/* Records and answers a refusal or a failure; detail "" = the reason's text. The client may be gone
 * afterwards. */
void stk__client_refuse(stk_client *client, stk_reason reason, const char *detail);
/* A request was answered whole and the connection may be used again. */
void stk__client_next_request(stk_client *client);
/* It was answered whole, and that was the last one. */
void stk__client_linger(stk_client *client);
/* The present request is over: its close record, its tunnel, its upstream. The client stays. */
void stk__client_close_request(stk_client *client, stk_reason reason);
void stk__client_timer(stk_client *client, stk_span span);
/* Steps 5 to 8, once the name may be asked for. */
void stk__client_connect(stk_client *client);

#endif
