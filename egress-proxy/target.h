/* Steps 1 and 2 of the decision order: a parsed head becomes one canonical target, or a reason. Pure. */
#ifndef STK_EGRESS_PROXY_TARGET_H
#define STK_EGRESS_PROXY_TARGET_H

#include "egress-proxy/reason.h"
#include "proto/http/head.h"
#include "proto/policy/policy.h"

typedef struct stk_target {
    bool connect;
    bool literal; /* an IP address in some spelling: on no list */
    char host[STK_NAME_MAX];
    uint16_t port;
    stk_str path; /* of an absolute-form target, "" or from '/' or '?' on; points into the head */
} stk_target;

/* The reason for a head that stk_head_request refused. */
stk_reason stk_target_fault(stk_head_fault fault);
/* CONNECT host:port, or absolute-form http://host[:port][/…]. STK_R_ALLOWED fills *ret; else *ret holds what
 * could be read of it (a canonical host or ""). `why` gets one line of detail (static or in buf). */
stk_reason stk_target_read(const stk_head *head, stk_target *ret, stk_err *why);
/* "host:port" as on the command line of --explain. */
stk_reason stk_target_hostport(stk_str text, stk_target *ret, stk_err *why);

#endif
