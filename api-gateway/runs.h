/* Answers about runs. */
#ifndef STK_GATEWAY_RUNS_H
#define STK_GATEWAY_RUNS_H

#include "api-gateway/exchange.h"

/* A run as lists and GET show it; `close` false leaves the object open for more members. */
void stk_gw_run_write(stk_jw *w, const stk_run_row *row, bool close);
/* {"id","state"} with Location. */
void stk_gw_answer_accepted(stk_gw_exchange *ex, const char *run, stk_run_state state);
/* -STK_E_NOT_FOUND for what can't be a run's id. */
int stk_gw_run_id_check(const stk_gw_exchange *ex, stk_err *err) STK_MUST_USE;

#endif
