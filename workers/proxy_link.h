/* The worker's side of a proxy's control stream: set policy, read records, acknowledge first allows after
 * their journal is durable, drain. Neither side's reading waits on its writing; a line that does not decode,
 * or too many unread bytes, ends the link. */
#ifndef STK_WORKERS_PROXY_LINK_H
#define STK_WORKERS_PROXY_LINK_H

#include "proto/base/loop.h"
#include "proto/message/egress.h"
#include "workers/syncer.h"

typedef struct stk_proxy_link stk_proxy_link;

typedef struct stk_proxy_link_ops {
    void (*on_policy)(bool ok, int64_t version, const char *detail, void *arg);
    void (*on_record)(const stk_egress_record *rec, stk_str json, void *arg);
    void (*on_drained)(void *arg); /* every record so far was handed over */
    void (*on_end)(void *arg);     /* the proxy is gone, or broke the protocol */
} stk_proxy_link_ops;

/* Takes the control descriptor; journal stays the caller's and must outlive the link. */
int stk_proxy_link_new(stk_loop *loop, stk_syncer *syncer, int control, int journal,
                       const stk_proxy_link_ops *ops, void *arg, stk_proxy_link **ret,
                       stk_err *err) STK_MUST_USE;
/* run: whose records follow. */
int stk_proxy_link_policy(stk_proxy_link *link, int64_t version, const char *run, stk_str policy,
                          stk_err *err) STK_MUST_USE;
/* False: the link has ended; on_drained will not come. */
bool stk_proxy_link_drain(stk_proxy_link *link);
/* No callback afterwards. Closing it ends the proxy. */
void stk_proxy_link_free(stk_proxy_link *link);

#endif
