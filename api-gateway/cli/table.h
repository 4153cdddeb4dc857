/* The verbs' tables, for completion; and what verbs share. */
#ifndef STK_CLI_TABLE_H
#define STK_CLI_TABLE_H

#include "api-gateway/cli/call.h"

extern const stk_cli_verb stk_cli_run, stk_cli_plan, stk_cli_submit, stk_cli_config, stk_cli_runs,
    stk_cli_logs, stk_cli_cancel, stk_cli_audit_tail, stk_cli_pools, stk_cli_workers, stk_cli_token,
    stk_cli_completion;

/* Exit status of `stockade run` for a finished run's answer. */
int stk_cli_result_exit(stk_jv result);
/* The result inside an answer about a run: of a waiting call, or of GET /v1/runs/{id}; not an object while
 * there is none. */
stk_jv stk_cli_result(stk_jv answer);

#endif
