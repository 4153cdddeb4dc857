/* One proxy: a listener, a policy, and what its connections share. The loop is one thread's. */
#ifndef STK_EGRESS_PROXY_PROXY_H
#define STK_EGRESS_PROXY_PROXY_H

#include "egress-proxy/bucket.h"
#include "egress-proxy/control.h"
#include "egress-proxy/flow.h"
#include "egress-proxy/own.h"
#include "egress-proxy/records.h"
#include "egress-proxy/resolver.h"
#include "proto/http/head.h"

typedef struct stk_client stk_client;

/* Why no connection is accepted now. */
enum {
    STK_PAUSE_FLOOD = 1,
    STK_PAUSE_FDS = 2,
    STK_PAUSE_CONTROL = 4,
    STK_PAUSE_CLIENTS = 8,
    STK_PAUSE_DRAIN = 16
};

/* Open to the folder's own files, which are its parts; nobody else sees it. */
typedef struct stk_proxy {
    struct event_base *base;
    int listener, spare; /* spare: closed to make room for the answer when descriptors run out */
    struct event acceptable, resume;
    unsigned paused;
    stk_bucket refusals;
    TAILQ_HEAD(stk_clients, stk_client) clients;
    size_t nclients;
    int64_t tunnels;
    stk_policy *policy;  /* NULL until the first one */
    int64_t version;     /* of the policy            */
    uint64_t generation; /* counts policies          */
    char run[STK_ID_SIZE];
    stk_resolver *resolver;
    stk_own *own;
    stk_records *records;
    stk_ctl *ctl; /* NULL: standalone */
    bool ended;
    int status;    /* to exit with */
    stk_head head; /* of whichever request is being read */
    stk_flow flow;
} stk_proxy;

typedef struct stk_proxy_spec {
    int listener;
    int control; /* -1 = standalone */
    int journal; /* -1 = none       */
    stk_dns_servers servers;
} stk_proxy_spec;

/* Takes listener and control. Nothing is served before stk_proxy_run. */
int stk_proxy_new(const stk_proxy_spec *spec, stk_proxy **ret, stk_err *err) STK_MUST_USE;
/* Serves until the end; returns the exit status. */
int stk_proxy_run(stk_proxy *px);
void stk_proxy_free(stk_proxy *px);
/* Swaps the policy (taken), cuts what no longer passes. */
void stk_proxy_policy(stk_proxy *px, stk_policy *policy, int64_t version);
/* Leaves the loop after closing everything, with records. */
void stk_proxy_end(stk_proxy *px, int status);

/* For client.c. */
void stk__proxy_pause(stk_proxy *px, unsigned why);
void stk__proxy_resume(stk_proxy *px, unsigned why);
/* A refusal was answered: a flood of them slows accepting down. False: none is left, close rather than go on.
 */
bool stk__proxy_refused(stk_proxy *px);
/* The worker reads records too slowly: no connection may ask for more. */
bool stk__proxy_behind(const stk_proxy *px);
stk_usage stk__proxy_usage(const stk_proxy *px);

#endif
