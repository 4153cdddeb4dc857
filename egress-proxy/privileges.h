/* Step into the cage: after this the process has no capability, no user but nobody, can open no file, start
 * no program, and make no socket but IPv4 and IPv6 ones. A system call off the list ends the process, and
 * with it the sandbox's network. */
#ifndef STK_EGRESS_PROXY_PRIVILEGES_H
#define STK_EGRESS_PROXY_PRIVILEGES_H

#include "proto/base/err.h"

/* Everything that needs opening must be open. For good. Builds with sanitizers keep their system calls: their
 * runtime opens files. */
int stk_privileges_drop(stk_err *err) STK_MUST_USE;

#endif
