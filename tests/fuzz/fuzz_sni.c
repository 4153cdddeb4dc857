/* The reader of TLS hellos: bounded, the same however much follows, and never a pass that a longer look would
 * refuse. */
#include "egress-proxy/sni.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_hello hello, part;
    stk_hello_state whole = stk_hello_read(data, size, &hello);
    need(hello.names <= STK_COUNT(hello.name));
    for (size_t i = 0; i < hello.names; i++)
        need(strlen(hello.name[i]) < STK_NAME_MAX);
    for (size_t n = 0; n < size && n < 600; n++) {
        stk_hello_state early = stk_hello_read(data, n, &part);
        need(early == STK_HELLO_MORE || early == whole);
        if (early == STK_HELLO_WHOLE)
            need(part.names == hello.names && part.ech == hello.ech);
    }
    bool match = stk_sni_judge(STK_TLS_MATCH, whole, &hello, "allowed.example") == STK_R_ALLOWED;
    bool require = stk_sni_judge(STK_TLS_REQUIRE, whole, &hello, "allowed.example") == STK_R_ALLOWED;
    need(match || !require);
    if (require)
        need(whole == STK_HELLO_WHOLE && hello.names == 1 && !hello.ech);
    return 0;
}
