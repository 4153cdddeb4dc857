/* The proxy by itself: a policy file, records to a file, SIGHUP. Two processes: the parent keeps the right to
 * open the policy file and passes what is in it as a descriptor; the child serves, and can open nothing.
 * Either ends with the other. */
#ifndef STK_EGRESS_PROXY_STANDALONE_H
#define STK_EGRESS_PROXY_STANDALONE_H

#include "egress-proxy/options.h"
#include "egress-proxy/proxy.h"

/* Reads and checks the policy file. -STK_E_POLICY, -STK_E_CONFIG, -STK_E_NOT_FOUND. */
int stk_standalone_policy(const char *path, stk_buf *ret_json, stk_policy **ret, stk_err *err) STK_MUST_USE;
/* Serves until SIGTERM or SIGINT; returns the exit status, in both processes. */
int stk_standalone_run(const stk_px_options *opt, stk_err *err);

#endif
