/* Private to the gateway: what its parts share. */
#ifndef STK_GATEWAY_IMPL_H
#define STK_GATEWAY_IMPL_H

#include "api-gateway/gateway.h"
#include "api-gateway/tokens.h"
#include "api-gateway/view.h"
#include "proto/http/server.h"

typedef struct stk_gw_exchange stk_gw_exchange;
typedef struct stk_gw_change stk_gw_change;

typedef struct stk_gw_counts {
    uint64_t submitted, repeated, over_cap, refused_publish, unknown_publish, abandoned, waits, streams;
} stk_gw_counts;

typedef struct stk_gw_extra { /* other parts of the process in /metrics */
    void (*fn)(stk_buf *out, void *arg);
    void *arg;
} stk_gw_extra;
#define STK_GW_EXTRAS 16

struct stk_gateway {
    stk_gateway_spec spec;
    stk_http_server *server;
    bool is_unix;
    char address[128];
    stk_gw_view *view;
    stk_tokens_doc bootstrap;
    stk_gw_exchange *exchanges; /* all that a callback can still reach */
    stk_gw_change *changes;     /* waiting for stk.config to show them */
    size_t open;                /* exchanges whose client is there */
    size_t refs;                /* the owner and each exchange */
    bool draining;
    bool dead; /* freed by its owner: callbacks only clean up */
    stk_timer *sweep;
    bool sweeping;
    size_t telling; /* operations whose answer nobody waits for */
    stk_gw_counts counts;
    stk_mono warned; /* when a 5xx was last logged */
    uint64_t unlogged;
    uint64_t *by_route; /* [route][status / 100] */
    stk_gw_extra extras[STK_GW_EXTRAS];
    size_t nextras;
};

void stk_gw_unref(stk_gateway *gw);
/* A call to state whose answer nobody needs; it counts as unfinished business until it has come. */
void stk_gw_tell(stk_gateway *gw, void *op);

#endif
