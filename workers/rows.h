/* Audit rows of a worker, and publishing that does not give up: a row that the bus refuses is offered again
 * with backoff until it is durable. */
#ifndef STK_WORKERS_ROWS_H
#define STK_WORKERS_ROWS_H

#include "proto/message/audit.h"
#include "proto/message/egress.h"
#include "proto/message/assignment.h"
#include "workers/ctx.h"

/* Whose rows: filled once per assignment, and from the launch file after a crash. */
typedef struct stk_row_subject {
    char tenant[STK_TENANT_MAX], agent[STK_AGENT_MAX], actor[STK_ACTOR_MAX];
    char run[STK_ID_SIZE], assignment[STK_ID_SIZE], worker[STK_WORKER_MAX], sandbox[STK_ID_SIZE];
    char backend[STK_BACKEND_MAX], isolation[16];
} stk_row_subject;

/* The row's frame: id from (assignment's time, run, assignment, action, n), time, subject. details: JSON
 * object text. */
void stk_row_make(const stk_row_subject *subject, const char *action, uint64_t n, stk_str details,
                  stk_audit_row *ret);
/* True when the record calls for a row (a refusal, a first allow); then the row is made. */
bool stk_row_from_record(const stk_row_subject *subject, const stk_egress_record *rec, stk_str json,
                         stk_audit_row *ret);

typedef void (*stk_row_done)(bool durable, void *arg);
/* Once, and whatever came of it. The row is not kept. */
typedef void (*stk_row_offered)(stk_publish_outcome outcome, void *arg);
void stk_row_offer(stk_ctx *ctx, const stk_audit_row *row, stk_row_offered done, void *arg);
/* Until it is durable (done(true) only). The row is not kept. */
void stk_row_publish(stk_ctx *ctx, const stk_audit_row *row, stk_row_done done, void *arg);
/* Any message, until it is durable. */
void stk_publish_surely(stk_ctx *ctx, const char *topic, const char *key, stk_str value, stk_row_done done,
                        void *arg);

#endif
