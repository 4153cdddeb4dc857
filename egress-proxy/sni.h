/* The first bytes of a tunnel: is it a TLS ClientHello (RFC 8446), and whom does it name (RFC 6066)? Pure and
 * bounded. */
#ifndef STK_EGRESS_PROXY_SNI_H
#define STK_EGRESS_PROXY_SNI_H

#include "egress-proxy/reason.h"
#include "proto/policy/policy.h"

#define STK_HELLO_MAX ((size_t)16384) /* bytes looked at, record headers included */

typedef enum stk_hello_state {
    STK_HELLO_MORE,  /* may become a hello                                     */
    STK_HELLO_PLAIN, /* does not begin as TLS                                  */
    STK_HELLO_WHOLE,
    STK_HELLO_BAD /* begins as TLS, but no server should accept it, or too large */
} stk_hello_state;

typedef struct stk_hello {
    size_t names;
    char name[2][STK_NAME_MAX]; /* the first two, as sent; "" for one that no host name can be */
    bool ech;                   /* an encrypted hello is inside (or pretended) */
} stk_hello;

stk_hello_state stk_hello_read(const uint8_t *p, size_t n, stk_hello *ret);
/* STK_R_ALLOWED, STK_R_SNI_MISMATCH or STK_R_OPAQUE_TUNNEL; STK_HELLO_MORE is judged as "never became whole".
 * host: canonical. */
stk_reason stk_sni_judge(stk_tls_mode mode, stk_hello_state state, const stk_hello *hello, const char *host);

#endif
