/* Lines of a proxy's control stream and hellos of a link: what decodes must encode to one line that decodes
 * to the same. */
#include "proto/message/egress.h"
#include "proto/message/link.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void control(stk_str text)
{
    static stk_control ctl;
    stk_buf once STK_AUTO(stk_buf_done) = STK_BUF(2 * STK_CONTROL_LINE_MAX);
    stk_buf twice STK_AUTO(stk_buf_done) = STK_BUF(2 * STK_CONTROL_LINE_MAX);
    if (stk_control_decode(text, &ctl, NULL) < 0)
        return;
    int rc = stk_control_encode(&ctl, &once, NULL);
    if (stk_control_kind_of(&ctl) < 0)
        abort();
    stk_control_done(&ctl);
    if (rc < 0)
        return; /* at the limit the escapes of our writer can be longer than what was read */
    if (memchr(once.p, '\n', once.n) != once.p + once.n - 1)
        abort();
    if (stk_control_decode(stk_str_n(once.p, once.n - 1), &ctl, NULL) < 0 ||
        stk_control_encode(&ctl, &twice, NULL) < 0 || !stk_str_eq(stk_buf_view(&once), stk_buf_view(&twice)))
        abort();
    stk_control_done(&ctl);
}

static void hello(stk_str text)
{
    stk_hello in, back;
    stk_buf line STK_AUTO(stk_buf_done) = STK_BUF(STK_HELLO_MAX);
    if (stk_hello_decode(text, &in, NULL) < 0)
        return;
    if (stk_hello_encode(&in, &line) < 0 ||
        stk_hello_decode(stk_str_n(line.p, line.n - 1), &back, NULL) < 0 ||
        memcmp(&in, &back, sizeof(in)) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0)
        return 0;
    if (data[0] == 'h')
        hello(stk_str_n(data + 1, n - 1));
    else
        control(stk_str_n(data + 1, n - 1));
    return 0;
}
