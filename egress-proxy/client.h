/* A client's connection, from accept to close: read a head, decide, resolve, dial, record, then a tunnel or a
 * forwarded exchange. Each step that waits leaves the client in one state; every end goes through one place.
 */
#ifndef STK_EGRESS_PROXY_CLIENT_H
#define STK_EGRESS_PROXY_CLIENT_H

#include "egress-proxy/proxy.h"

/* Takes fd (nonblocking). */
void stk_client_new(stk_proxy *px, int fd);
/* Answers 503 and records it; fd stays the caller's. */
void stk_client_overloaded(stk_proxy *px, int fd);
stk_client *stk_client_next(const stk_client *client);
/* The policy has changed: cuts the client when what it has open no longer passes. */
void stk_client_recheck(stk_client *client);
/* Closes now, with a close record when something was open. */
void stk_client_end(stk_client *client, stk_reason reason);

#endif
