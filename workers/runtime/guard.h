/* Who may speak on a listener. Links need no guard: we dialled them before any command existed. */
#ifndef STK_RUNTIME_GUARD_H
#define STK_RUNTIME_GUARD_H

#include "workers/runtime/runtime.h"

/* When a token was given: the peer is not the sandbox itself and the request carries "Authorization: Bearer
 * NONCE". Otherwise answers 403 or 401 and returns false. Without a token everybody may (other platforms
 * speak the plain contract). */
bool stk_rt_admit(stk_runtime *rt, stk_http_x *x);

#endif
