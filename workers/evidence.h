/* What a run's proxy reported: a bounded list for the result, exact counts, and one audit row per refusal and
 * per first allow. */
#ifndef STK_WORKERS_EVIDENCE_H
#define STK_WORKERS_EVIDENCE_H

#include "proto/message/egress.h"
#include "proto/message/event.h"

typedef struct stk_evidence {
    stk_buf list; /* records, comma-separated JSON objects */
    size_t listed;
    int64_t allowed, denied, dropped, last_seq;
    bool gap; /* a sequence number was missing */
} stk_evidence;

void stk_evidence_init(stk_evidence *ev);
/* Records in order of their sequence numbers; `json` is the record as the proxy wrote it. */
void stk_evidence_add(stk_evidence *ev, const stk_egress_record *rec, stk_str json);
/* Writes list and counts into the event. */
void stk_evidence_finish(const stk_evidence *ev, stk_event *event);
void stk_evidence_done(stk_evidence *ev);

#endif
