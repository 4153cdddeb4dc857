/* Waiting for a run to end: its notes wake us, a sweep once a second makes up for lost ones. */
#ifndef STK_GATEWAY_WAIT_H
#define STK_GATEWAY_WAIT_H

#include "api-gateway/exchange.h"

/* row: the finished run, borrowed for the call; NULL: the time is over (or the gateway ends), and `seen` is
 * the newest state known. Called once, never from inside stk_gw_wait; not at all when the client is gone. arg
 * is borrowed. */
typedef void (*stk_gw_waited)(stk_gw_exchange *ex, const stk_run_row *row, stk_run_state seen, void *arg);
/* Holds ex and takes its `interrupt` until then. */
void stk_gw_wait(stk_gw_exchange *ex, const char *run, stk_span span, stk_gw_waited done, void *arg);

#endif
