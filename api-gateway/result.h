/* The result of a run: from state while it has it, else from the store. */
#ifndef STK_GATEWAY_RESULT_H
#define STK_GATEWAY_RESULT_H

#include "api-gateway/exchange.h"

/* ev NULL and err NULL: neither has it. Borrowed for the call. Called once, also when the gateway is over. */
typedef void (*stk_gw_result_got)(stk_gw_exchange *ex, const stk_event *ev, const stk_err *err, void *arg);

/* row may be NULL (state does not know the run); only its `result` is looked at, and copied. The store learns
 * of a run a moment after its end: it is asked again for `patience`. Without it the result goes without its
 * output. Holds ex. */
void stk_gw_result(stk_gw_exchange *ex, const char *run, const stk_run_row *row, stk_span patience,
                   stk_gw_result_got done, void *arg);

/* The API's object of a finished run, output opened. */
void stk_gw_result_write(stk_gw_exchange *ex, const stk_event *ev, stk_jw *w);

#endif
