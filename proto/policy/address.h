/* Address classes: the IANA special-purpose registries (IPv4 and IPv6), multicast, cloud metadata, every form
 * that embeds a v4 address. IPv6 is deny outside 2000::/3. One table, a test per row at both edges. */
#ifndef STK_POLICY_ADDRESS_H
#define STK_POLICY_ADDRESS_H

#include "proto/base/buf.h"
#include <netinet/in.h>
#include <sys/socket.h>

#define STK_ADDR_CLASSES(X)                                                                                  \
    X(PUBLIC, "public")                                                                                      \
    X(UNSPECIFIED, "unspecified")                                                                            \
    X(LOOPBACK, "loopback")                                                                                  \
    X(PRIVATE, "private")                                                                                    \
    X(CGNAT, "cgnat")                                                                                        \
    X(LINK_LOCAL, "link-local")                                                                              \
    X(METADATA, "metadata")                                                                                  \
    X(MULTICAST, "multicast")                                                                                \
    X(BROADCAST, "broadcast")                                                                                \
    X(DOCUMENTATION, "documentation")                                                                        \
    X(BENCHMARK, "benchmark")                                                                                \
    X(RESERVED, "reserved")                                                                                  \
    X(SPECIAL, "special")                                                                                    \
    X(EMBEDDED_V4, "embedded-v4")                                                                            \
    X(NOT_GLOBAL, "not-global")                                                                              \
    X(SCOPED, "scoped")
typedef enum stk_addr_class {
#define X(sym, text) STK_ADDR_##sym,
    STK_ADDR_CLASSES(X)
#undef X
} stk_addr_class;
const char *stk_addr_class_text(stk_addr_class c);

/* AF_INET or AF_INET6; anything else, or a scope id, is STK_ADDR_SCOPED. */
stk_addr_class stk_addr_classify(const struct sockaddr *addr);
/* True for loopback, unspecified, link-local, metadata, multicast: refused even when listed as internal. */
bool stk_addr_never(stk_addr_class c);

/* A network "10.1.0.0/16", "2001:db8::/32"; host bits set are refused. Prefix 0..32/128. */
typedef struct stk_cidr {
    int family;
    uint8_t bytes[16];
    uint8_t bits;
} stk_cidr;
int stk_cidr_parse(stk_str text, stk_cidr *ret, stk_err *err) STK_MUST_USE;
bool stk_cidr_has(const stk_cidr *net, const struct sockaddr *addr);
/* Numeric "1.2.3.4:443" / "[2001:db8::1]:443" with the given port order; out holds 64. */
void stk_addr_text(const struct sockaddr *addr, char out[64]);

#endif
