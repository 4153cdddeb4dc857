/* The one way out: a loopback listener inside the sandbox whose connections are carried to the egress proxy's
 * socket. Bytes only; what may pass is the proxy's to say. At most `most` connections at once (accepting
 * pauses above it), 64 KiB held for a direction whose receiver is slow; a half-close is passed on. */
#ifndef STK_RUNTIME_RELAY_H
#define STK_RUNTIME_RELAY_H

#include "workers/runtime/address.h"
#include <event2/event.h>

#define STK_RELAY_MOST 256

typedef struct stk_relay stk_relay;

/* from: IP:PORT; to: unix:PATH or vsock:PORT. */
int stk_relay_new(struct event_base *base, const char *from, const char *to, size_t most, stk_relay **ret,
                  stk_err *err) STK_MUST_USE;
void stk_relay_free(stk_relay *relay);

#endif
