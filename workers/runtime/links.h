/* The links we dial and the sockets we listen on. */
#ifndef STK_RUNTIME_LINKS_H
#define STK_RUNTIME_LINKS_H

#include "workers/runtime/runtime.h"

/* Reads "ID NONCE\n" from fd and closes it. */
int stk_rt_token_read(int fd, stk_hello *ret, stk_err *err) STK_MUST_USE;
/* Dials 1 control, 1 health and max_concurrent command links, says hello on each and serves them. The end of
 * the control link, or of all command links, ends the loop. */
int stk_rt_links_dial(stk_runtime *rt, stk_err *err) STK_MUST_USE;
int stk_rt_listeners_open(stk_runtime *rt, stk_err *err) STK_MUST_USE;

#endif
