/* stk.audit: one audit row. */
#ifndef STK_MESSAGE_AUDIT_H
#define STK_MESSAGE_AUDIT_H

#include "proto/base/field.h"
#include "proto/message/limits.h"

#define STK_AUDIT_LAUNCH        "agent_sandbox.launch"
#define STK_AUDIT_REFUSAL       "agent_sandbox.refusal"
#define STK_AUDIT_FAILURE       "agent_sandbox.failure"
#define STK_AUDIT_TEARDOWN      "agent_sandbox.teardown"
#define STK_AUDIT_EGRESS_DENY   "agent_sandbox.egress.deny"
#define STK_AUDIT_EGRESS_ALLOW  "agent_sandbox.egress.allow"
#define STK_AUDIT_CONFIG_UPDATE "agent_sandbox.config.update"
#define STK_AUDIT_POLICY_UPDATE "agent_sandbox.policy.update"
#define STK_AUDIT_TOKEN_CREATE  "agent_sandbox.token.create"

typedef struct stk_audit_row {
    int64_t v;
    char id[STK_ID_SIZE]; /* stk_audit_id */
    stk_wall time;
    char action[40]; /* of the list above; decode refuses others */
    char actor[STK_ACTOR_MAX];
    char tenant[STK_TENANT_MAX];
    char agent[STK_AGENT_MAX];
    char run[STK_ID_SIZE];
    char assignment[STK_ID_SIZE];
    char worker[STK_WORKER_MAX];
    char sandbox[STK_ID_SIZE];
    char backend[STK_BACKEND_MAX];
    char isolation[16];
    stk_bytes details; /* JSON object */
    stk_bytes before;  /* JSON, configuration rows */
    stk_bytes after;
    stk_bytes weakening; /* JSON array */
} stk_audit_row;

void stk_audit_row_done(stk_audit_row *row);
STK_DEFINE_FREEP(stk_audit_row, stk_audit_row_donep, stk_audit_row_done)
int stk_audit_encode(const stk_audit_row *row, stk_buf *out, stk_err *err) STK_MUST_USE;
int stk_audit_decode(stk_str json, stk_audit_row *ret, stk_err *err) STK_MUST_USE;
/* "aud-…": 48 bits of `time` (the assignment's, or the request's where there is none) in milliseconds and 80
 * bits of SHA-256 over (subject, assignment, action, n). A repeat, whoever makes it, is the same row. n:
 * egress sequence number, or 0. */
void stk_audit_id(stk_wall time, const char *subject, const char *assignment, const char *action, uint64_t n,
                  char out[STK_ID_SIZE]);

#endif
