/* Private to proto/message: one agent of the agent-sandbox document, and what the documents share. */
#ifndef STK_MESSAGE_AGENT_CONFIG_H
#define STK_MESSAGE_AGENT_CONFIG_H

#include "proto/message/check.h"
#include "proto/message/config.h"

#define STK__AGENTS_MAX 10000

/* STK_F_CUSTOM functions of "limits"; `at` holds defaults before reading. */
int stk__agent_limits_read(stk_jv v, void *at, stk_err *err);
void stk__agent_limits_write(stk_jw *w, const void *at);

/* All but the name; ret is zeroed by the caller, who frees it also after an error. */
int stk__agent_config_read(stk_jv v, bool stored, stk_agent_config *ret, stk_err *err) STK_MUST_USE;
void stk__agent_config_write(stk_jw *w, const stk_agent_config *agent, bool blank);
void stk__agent_config_free(stk_agent_config *agent);

/* Bytewise; a prefix comes first. */
int stk__str_order(stk_str a, stk_str b);
void stk__strv_write(stk_jw *w, const char *key, const stk_strv *v);
/* Walks an object whose keys are names: each key must pass `ok` (else `rule` is the error's text), then
 * `each`. Errors get "/key" before their pointer. */
int stk__named_read(stk_jv v, bool (*ok)(stk_str), const char *rule,
                    int (*each)(stk_str name, stk_jv v, void *arg, stk_err *err), void *arg,
                    stk_err *err) STK_MUST_USE;

#endif
