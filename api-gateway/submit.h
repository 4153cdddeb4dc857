/* From a checked request to a durable one: reserve (state) -> publish (bus) -> tell state where it is. */
#ifndef STK_GATEWAY_SUBMIT_H
#define STK_GATEWAY_SUBMIT_H

#include "api-gateway/exchange.h"
#include "proto/message/request.h"

/* The run is durable on the bus (fleet.md, rows 1, 2, 4), or was before. state: as state knew it;
 * STK_RUN_NONE: only the store knows it, which means that it has finished. */
typedef void (*stk_gw_submitted)(stk_gw_exchange *ex, const char *run, stk_run_state state, void *arg);

/* Seals, reserves and publishes. id, tenant, actor, submitted and traceparent of req are filled in here; req
 * and secret are used up. The run's id follows from (tenant, Idempotency-Key) where there is one, then the
 * body's bytes must be the same. On failure the exchange is answered and done is not called. */
void stk_gw_submit(stk_gw_exchange *ex, stk_request *req, stk_run_secret *secret, stk_gw_submitted done,
                   void *arg);

#endif
