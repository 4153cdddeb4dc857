/* Who is asking, and what may they do. */
#ifndef STK_GATEWAY_AUTH_H
#define STK_GATEWAY_AUTH_H

#include "api-gateway/exchange.h"

/* Without tokens (auth none): a web page must not reach us. -STK_E_FORBIDDEN for an Origin, a Sec-Fetch-Site
 * other than same-origin and none, or a Host that is not loopback (Host is not looked at on a Unix socket: no
 * browser speaks there). */
int stk_gw_guard(const stk_head *head, bool is_unix, stk_err *err) STK_MUST_USE;
/* "localhost", 127.0.0.0/8 or [::1], with or without a port. */
bool stk_gw_host_is_loopback(stk_str host);

/* Sets ret. -STK_E_UNAUTHENTICATED: no valid token; -STK_E_FORBIDDEN: it lacks `scope`, or names another
 * tenant without admin; -STK_E_UNAVAILABLE: the tokens are not known yet. tenant: value of ?tenant= or NULL.
 */
int stk_gw_auth(const stk_gateway *gw, const stk_head *head, unsigned scope, const char *tenant,
                stk_gw_caller *ret, stk_err *err) STK_MUST_USE;

#endif
