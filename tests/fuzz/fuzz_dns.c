/* The reader of DNS answers: the first byte picks the type, the rest is the message. Nothing passes that does
 * not answer the question, and no address of another family comes out. */
#include "egress-proxy/dns_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_dns_answer answer;
    if (size < 1)
        return 0;
    stk_dns_type type = data[0] & 1 ? STK_DNS_AAAA : STK_DNS_A;
    stk_dns_verdict verdict = stk_dns_decode(data + 1, size - 1, 0x1234, "a.example", type, &answer);
    need(answer.n <= STK_ADDRS_MAX);
    if (verdict == STK_DNS_OK)
        for (size_t i = 0; i < answer.n; i++)
            need(answer.addrs[i].any.sa_family == (type == STK_DNS_A ? AF_INET : AF_INET6));
    if (verdict == STK_DNS_OK || verdict == STK_DNS_NXDOMAIN)
        need(size - 1 >= 27 && data[1] == 0x12 && data[2] == 0x34 && data[3] & 0x80);
    uint8_t query[STK_DNS_QUERY_MAX];
    char name[STK_NAME_MAX] = "";
    memcpy(name, data, size < sizeof(name) ? size : sizeof(name) - 1);
    need(stk_dns_encode(1, name, type, query) <= 12 + 255 + 4);
    return 0;
}
