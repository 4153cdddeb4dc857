/* Evidence: every decision and every end of a connection is a record with a gap-free number. A record is
 * appended to the journal with one write(2) before it is sent on the control stream and before the client
 * gets its answer.
 *
 * The first STK_RECORDS_EXACT rows of a run stand each for itself; after that rows of one reason are counted
 * together, one `summary` row a second. The first allow of a host always stands for itself: it must be
 * durable before its 200. */
#ifndef STK_EGRESS_PROXY_RECORDS_H
#define STK_EGRESS_PROXY_RECORDS_H

#include "egress-proxy/control.h"
#include "egress-proxy/reason.h"
#include <sys/queue.h>

#define STK_RECORDS_EXACT 10000
#define STK_RECORDS_HOSTS_MAX                                                                                \
    8192 /* hosts remembered as allowed before; one beyond waits for its own acknowledgement each time */

typedef struct stk_records stk_records;

/* fd: O_APPEND, or -1; stays the caller's. ctl: NULL when nobody acknowledges. */
stk_records *stk_records_new(struct event_base *base, int fd, stk_ctl *ctl);
void stk_records_free(stk_records *records);
/* The rows that follow belong to this run; counts and known hosts start anew when it is another. */
void stk_records_run(stk_records *records, const char *run);

/* Completes rec (seq, time, run) and writes it. rec->seq is 0 afterwards when it was counted into a summary.
 * When the journal can't be written a refusal still goes on the control stream; an allow is not recorded at
 * all. -STK_E_SYSTEM, -STK_E_NO_SPACE. */
int stk_records_add(stk_records *records, stk_reason reason, stk_egress_record *rec, stk_err *err);
/* An allowed connection to rec->host. *ret_wait: the number that must be acknowledged before its answer, 0 =
 * none. */
int stk_records_allow(stk_records *records, stk_egress_record *rec, int64_t *ret_wait,
                      stk_err *err) STK_MUST_USE;
/* Writes the summaries that are due. */
void stk_records_flush(stk_records *records);

/* Somebody waits for an acknowledgement. Zeroed at first. */
typedef struct stk_ack_wait {
    TAILQ_ENTRY(stk_ack_wait) link;
    int64_t seq; /* 0: not waiting */
    void (*on_ack)(void *arg);
    void *arg;
} stk_ack_wait;
void stk_records_wait(stk_records *records, stk_ack_wait *wait, int64_t seq);
void stk_records_forget(stk_records *records, stk_ack_wait *wait);
void stk_records_acked(stk_records *records, int64_t seq);

#endif
