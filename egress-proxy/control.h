/* The proxy's end of the control stream (proto/message/egress.h). Replies and records have separate bounded
 * queues, and reading never waits on writing. The stream's end is the proxy's end. */
#ifndef STK_EGRESS_PROXY_CONTROL_H
#define STK_EGRESS_PROXY_CONTROL_H

#include "proto/message/egress.h"
#include <event2/event.h>

typedef struct stk_ctl stk_ctl;
typedef struct stk_ctl_ops {
    void (*on_policy)(int64_t version, const char *run, stk_str body, void *arg);
    void (*on_ack)(int64_t seq, void *arg);
    void (*on_drain)(void *arg);
    void (*on_room)(void *arg); /* the queue of records was over its mark, and no longer is */
    void (*on_end)(void *arg);  /* closed, broken, told to stop, or it does not read our replies */
} stk_ctl_ops;

/* Takes fd. ops is borrowed. */
int stk_ctl_new(struct event_base *base, int fd, const stk_ctl_ops *ops, void *arg, stk_ctl **ret,
                stk_err *err) STK_MUST_USE;
void stk_ctl_free(stk_ctl *ctl);
/* ready, policy_ok, policy_bad: before any record that is not yet being written. */
void stk_ctl_reply(stk_ctl *ctl, const stk_control *message);
/* One record, as stk_egress_encode wrote it; also `drained` goes here, behind all of them. */
void stk_ctl_record(stk_ctl *ctl, stk_str json);
void stk_ctl_drained(stk_ctl *ctl);
/* The queue of records is over its mark: take no new work until on_room. */
bool stk_ctl_full(const stk_ctl *ctl);
/* Writes what can be written without waiting. */
void stk_ctl_flush(stk_ctl *ctl);

#endif
