/* Every reason code of the proxy in one table: what a record and a refusal say. Codes are stable; people
 * script against them. */
#ifndef STK_EGRESS_PROXY_REASON_H
#define STK_EGRESS_PROXY_REASON_H

#include "proto/base/base.h"

/* DENY: a refusal by a rule. FAIL: allowed, but the world did not answer (verdict "allow", no close record
 * follows). END: why an allowed connection ended, in its close record. */
typedef enum stk_reason_kind {
    STK_REASON_OK,
    STK_REASON_DENY,
    STK_REASON_FAIL,
    STK_REASON_END
} stk_reason_kind;

/*      symbol               code                    kind  status  one line for people */
#define STK_REASONS(X)                                                                                       \
    X(ALLOWED, "allowed", OK, 200, "allowed")                                                                \
    X(BAD_REQUEST, "bad_request", DENY, 400, "the request is malformed")                                     \
    X(BAD_REQUEST_LINE, "bad_request_line", DENY, 400, "the request line is malformed")                      \
    X(BAD_TARGET, "bad_target", DENY, 400, "the request target is not one a proxy takes")                    \
    X(BAD_SCHEME, "bad_scheme", DENY, 400, "only http:// and CONNECT are served")                            \
    X(BAD_HOST, "bad_host", DENY, 400, "the host is malformed")                                              \
    X(BAD_PORT, "bad_port", DENY, 400, "the port is malformed")                                              \
    X(BAD_FRAMING, "bad_framing", DENY, 400, "where the message ends is not certain")                        \
    X(BODYLESS_METHOD_BODY, "bodyless_method_body", DENY, 400, "this method takes no body here")             \
    X(BAD_EXPECT, "bad_expect", DENY, 417, "only Expect: 100-continue is understood")                        \
    X(HEAD_TOO_LARGE, "head_too_large", DENY, 431, "the head is larger than the limit")                      \
    X(HEAD_TIMEOUT, "head_timeout", DENY, 408, "the head took too long")                                     \
    X(POLICY_UNAVAILABLE, "policy_unavailable", DENY, 503, "no policy has been set yet")                     \
    X(HOST_NOT_ALLOWED, "host_not_allowed", DENY, 403, "the host is on no allow-list of this sandbox")       \
    X(PORT_NOT_ALLOWED, "port_not_allowed", DENY, 403, "the host is allowed, but not on this port")          \
    X(ORG_POLICY, "org_policy", DENY, 403, "the organisation's policy refuses the host")                     \
    X(ADDRESS_NOT_PUBLIC, "address_not_public", DENY, 403,                                                   \
      "the name leads to an address that is not public")                                                     \
    X(SNI_MISMATCH, "sni_mismatch", DENY, 421, "the TLS hello names another host")                           \
    X(OPAQUE_TUNNEL, "opaque_tunnel", DENY, 421, "the tunnel does not open with one plain TLS name")         \
    X(TOO_MANY_TUNNELS, "too_many_tunnels", DENY, 503, "the sandbox has as many connections as it may")      \
    X(BYTES_EXCEEDED, "bytes_exceeded", DENY, 403, "the sandbox has moved as many bytes as it may")          \
    X(DNS_BUDGET, "dns_budget", DENY, 429, "the sandbox has asked as many names as it may")                  \
    X(OVERLOADED, "overloaded", DENY, 503, "the proxy is out of descriptors")                                \
    X(AUDIT_UNAVAILABLE, "audit_unavailable", DENY, 503, "the decision could not be made durable")           \
    X(POLICY_CHANGED, "policy_changed", DENY, 403, "the policy no longer lets it pass")                      \
    X(DNS_NXDOMAIN, "dns_nxdomain", FAIL, 502, "the name does not exist")                                    \
    X(DNS_NO_ADDRESS, "dns_no_address", FAIL, 502, "the name has no address")                                \
    X(DNS_SERVFAIL, "dns_servfail", FAIL, 502, "the name server failed")                                     \
    X(DNS_TIMEOUT, "dns_timeout", FAIL, 504, "the name server did not answer in time")                       \
    X(DNS_MALFORMED, "dns_malformed", FAIL, 502, "the name server's answer is malformed")                    \
    X(DNS_TRUNCATED, "dns_truncated", FAIL, 502, "the name server's answer is cut off")                      \
    X(DNS_UNREACHABLE, "dns_unreachable", FAIL, 502, "no name server can be reached")                        \
    X(CONNECT_FAILED, "connect_failed", FAIL, 502, "the host refuses the connection")                        \
    X(CONNECT_TIMEOUT, "connect_timeout", FAIL, 504, "the host did not answer in time")                      \
    X(BAD_RESPONSE, "bad_response", FAIL, 502, "the host's response is malformed")                           \
    X(RESPONSE_TIMEOUT, "response_timeout", FAIL, 504, "the host did not respond in time")                   \
    X(CLOSED, "closed", END, 0, "both sides are done")                                                       \
    X(RESET, "reset", END, 0, "a side broke the connection")                                                 \
    X(CLIENT_GONE, "client_gone", END, 0, "the client left before an answer")                                \
    X(IDLE_TIMEOUT, "idle_timeout", END, 0, "nothing moved for as long as is allowed")                       \
    X(DRAINED, "drained", END, 0, "the proxy was told to end")

typedef enum stk_reason {
#define X(sym, code, kind, status, text) STK_R_##sym,
    STK_REASONS(X)
#undef X
        STK_REASON_COUNT
} stk_reason;

const char *stk_reason_code(stk_reason reason);
stk_reason_kind stk_reason_kind_of(stk_reason reason);
int stk_reason_status(stk_reason reason);
const char *stk_reason_text(stk_reason reason);
/* The reason with that code; STK_R_BAD_REQUEST for one that is not in the table. */
stk_reason stk_reason_of(const char *code);

#endif
