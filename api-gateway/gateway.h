/* The gateway: the HTTP API (api.md's paths and shapes), authentication, configuration changes,
 * submit-and-wait, SSE.
 *
 * A request is durable on the bus before it is answered with 202. Nothing starts here: the gateway only
 * writes requests, cancels and configuration, and reads state and store. All on one loop. */
#ifndef STK_GATEWAY_H
#define STK_GATEWAY_H

#include "proto/base/crypto.h"
#include "proto/bus/bus.h"
#include "proto/state/state.h"
#include "proto/store/store.h"

typedef struct stk_gateway stk_gateway;

typedef struct stk_gateway_spec { /* everything borrowed until free */
    stk_loop *loop;
    stk_bus *bus;
    stk_state *state;
    stk_store *store;
    const stk_keyring *ring;
    const char *listen;    /* "127.0.0.1:8700", "unix:/path" */
    bool auth_none;        /* only allowed on loopback or a Unix socket; then tenant "default", all scopes */
    int64_t body_max;      /* bytes; default 1 MiB */
    int64_t queued_cap;    /* unfinished runs per tenant; 0 = none */
    stk_span wait_default; /* of POST …/run; default 60 s */
    stk_span wait_most;    /* default 600 s */
    const char *tokens_file; /* bootstrap tokens (tokens.h), read at start; NULL or missing = none */
} stk_gateway_spec;

/* Starts to listen. -STK_E_CONFIG: no token configured and not (loopback and auth_none); -STK_E_CONFLICT:
 * address in use. To know the tokens it runs the loop until stk.config was read, 10 s at most; a bus that is
 * away then leaves a gateway that is not ready and lets nobody in until it is back. */
int stk_gateway_new(const stk_gateway_spec *spec, stk_gateway **ret, stk_err *err) STK_MUST_USE;
/* The bound address, for "ready". */
const char *stk_gateway_address(const stk_gateway *gateway);
/* /readyz answers 503, no new requests; true once no exchange is open (call again). */
bool stk_gateway_quiet(stk_gateway *gateway);
/* Adds a function that appends Prometheus text to /metrics (other parts of a standalone process). */
void stk_gateway_metrics(stk_gateway *gateway, void (*fn)(stk_buf *out, void *arg), void *arg);
void stk_gateway_free(stk_gateway *gateway);

/* Token document on stk.config ("tokens"): made by `stockade token create`, through the API or, before a
 * first start, into the state directory; see tokens.h. */

#endif
