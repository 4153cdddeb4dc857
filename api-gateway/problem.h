/* The one shape of an error (RFC 9457): type, title, status, detail, code, pointer, retryable, request_id,
 * and what a few errors add. */
#ifndef STK_GATEWAY_PROBLEM_H
#define STK_GATEWAY_PROBLEM_H

#include "proto/base/json.h"

typedef struct stk_gw_more { /* members that only some problems have; any may be empty */
    const char *run_id;      /* outcome_unknown: ask for this one */
    stk_str weakening;       /* JSON array */
} stk_gw_more;

#define STK_PROBLEM_TYPE "application/problem+json"

/* HTTP status of an error. Full disks and full queues of our own are "come back later" to a client. */
int stk_gw_problem_status(const stk_err *err);
/* Appends the document. more may be NULL. */
void stk_gw_problem_write(stk_buf *out, const stk_err *err, const char *request_id, const stk_gw_more *more);
/* The same for an error that only has an HTTP status and a code (made by the server itself). */
void stk_gw_problem_bare(stk_buf *out, int status, const char *code, const char *detail);
/* Seconds for Retry-After, 0 = none. */
int stk_gw_retry_after(const stk_err *err);

#endif
