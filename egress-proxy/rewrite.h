/* Heads on their way through, made anew: what concerns one hop only stays behind, the framing is our own.
 * Pure.
 *
 * Left out in both directions (RFC 9110, section 7.6): Connection and whatever it names, Keep-Alive, TE,
 * Trailer, Transfer-Encoding, Content-Length, Upgrade, HTTP2-Settings, every Proxy-… field; Via is added. Of
 * requests also Host, Expect and fields by which other proxies take orders from a client. */
#ifndef STK_EGRESS_PROXY_REWRITE_H
#define STK_EGRESS_PROXY_REWRITE_H

#include "egress-proxy/target.h"

/* Most lines that a request gains here (Host, Content-Length, Via, Connection): a head read with that many to
 * spare goes on as one that a reader with our own limits takes. */
#define STK_REWRITE_ADDS 4

/* GET and its like carry no body through this proxy: servers disagree on whether one is there. */
bool stk_method_bodyless(stk_str method);

/* "METHOD /path HTTP/1.1", Host as judged, Connection: close (one request for each upstream connection). */
void stk_request_rewrite(const stk_head *head, const stk_target *target, stk_buf *out);

typedef struct stk_response_how {
    bool to_head;    /* the request was HEAD                     */
    bool to_1_0;     /* the client speaks HTTP/1.0: no chunks    */
    bool keep_alive; /* the client may send another request      */
} stk_response_how;
/* Returns the framing to send the body in: NONE, LENGTH, CHUNKED or CLOSE. CLOSE ends keep-alive. */
stk_framing stk_response_rewrite(const stk_head *head, const stk_response_how *how, stk_buf *out);

#endif
