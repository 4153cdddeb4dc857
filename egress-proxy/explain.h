/* --explain: the decision path of one host and port, step by step, without connecting anywhere but to the
 * name servers. */
#ifndef STK_EGRESS_PROXY_EXPLAIN_H
#define STK_EGRESS_PROXY_EXPLAIN_H

#include "egress-proxy/options.h"
#include <stdio.h>

/* Prints to out; returns 0 = allowed, 1 = refused, or a negative code. Asks names only when a resolver is
 * given. */
int stk_explain(const stk_px_options *opt, FILE *out, stk_err *err);

#endif
