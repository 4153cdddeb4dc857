#include "workers/evidence.h"

/* Room for STK_EGRESS_MAX decisions and as many closes of at most about 1 KiB each. */
#define LIST_MAX ((size_t)512 << 10)

void stk_evidence_init(stk_evidence *ev)
{
    *ev = (stk_evidence){.list = STK_BUF(LIST_MAX)};
}

void stk_evidence_add(stk_evidence *ev, const stk_egress_record *rec, stk_str json)
{
    if (rec->seq != ev->last_seq + 1)
        ev->gap = true;
    ev->last_seq = rec->seq;
    bool decision = strcmp(rec->kind, "close") != 0;
    int64_t count = rec->count > 0 ? rec->count : 1;
    if (decision && strcmp(rec->verdict, "allow") == 0)
        ev->allowed += count;
    else if (decision)
        ev->denied += count;
    if (ev->listed >= STK_EGRESS_MAX || ev->list.n + json.n + 1 > LIST_MAX) {
        ev->dropped++;
        return;
    }
    ev->listed++;
    if (ev->list.n)
        stk_buf_byte(&ev->list, ',');
    stk_buf_str(&ev->list, json);
}

void stk_evidence_finish(const stk_evidence *ev, stk_event *event)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(LIST_MAX + 2);
    stk_buf_byte(&text, '[');
    stk_buf_str(&text, stk_buf_view(&ev->list));
    stk_buf_byte(&text, ']');
    stk_bytes_set(&event->egress, stk_buf_view(&text));
    event->egress_dropped = ev->dropped;
    event->egress_allowed = ev->allowed;
    event->egress_denied = ev->denied;
    event->egress_last_seq = ev->last_seq;
}

void stk_evidence_done(stk_evidence *ev)
{
    stk_buf_done(&ev->list);
}
