/* DNS messages (RFC 1035): one question out, one answer in. Pure and bounded: compression pointers only go
 * backwards, names are at most 255 bytes, the CNAME chain at most STK_DNS_CHAIN_MAX links, records of other
 * owners are ignored. */
#ifndef STK_EGRESS_PROXY_DNS_MESSAGE_H
#define STK_EGRESS_PROXY_DNS_MESSAGE_H

#include "egress-proxy/decide.h"

#define STK_DNS_QUERY_MAX   512
#define STK_DNS_ANSWER_MAX  65535
#define STK_DNS_CHAIN_MAX   8
#define STK_DNS_RECORDS_MAX 256

typedef enum stk_dns_type { STK_DNS_A = 1, STK_DNS_CNAME = 5, STK_DNS_AAAA = 28 } stk_dns_type;

/* A recursive query for a canonical name. Returns its length, or 0 for a name that has no wire form. */
size_t stk_dns_encode(uint16_t id, const char *name, stk_dns_type type, uint8_t out[STK_DNS_QUERY_MAX]);

typedef enum stk_dns_verdict {
    STK_DNS_OK,    /* an answer; zero addresses = the name has none of that type            */
    STK_DNS_STRAY, /* not the answer to this question: wait on for the right one             */
    STK_DNS_CUT,   /* truncated: ask by TCP                                                  */
    STK_DNS_NXDOMAIN,
    STK_DNS_SERVFAIL, /* any other response code                                                */
    STK_DNS_MALFORMED /* answers the question, but does not parse, or its chain loops           */
} stk_dns_verdict;

typedef struct stk_dns_answer {
    stk_sock addrs[STK_ADDRS_MAX]; /* port 0; more than fit are malformed: all of them must be checked */
    size_t n;
    uint32_t ttl; /* least of the chain and the addresses */
} stk_dns_answer;
stk_dns_verdict stk_dns_decode(const uint8_t *p, size_t n, uint16_t id, const char *name, stk_dns_type type,
                               stk_dns_answer *ret);

#endif
