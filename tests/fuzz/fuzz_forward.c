/* Plain http through the proxy: whatever head passes is rewritten into one that the same strict parser takes,
 * with one Host, the same framing and nothing of one hop; whatever body passes comes out in a framing that
 * decodes to the same bytes. */
#include "egress-proxy/body.h"
#include "egress-proxy/rewrite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds)
{
    if (!holds)
        abort();
}

static stk_head head, again;

static void check_body(stk_framing framing, uint64_t length, stk_str from)
{
    stk_body in, out;
    stk_buf wire STK_AUTO(stk_buf_done) = STK_BUF((size_t)1 << 22);
    stk_buf plain STK_AUTO(stk_buf_done) = STK_BUF((size_t)1 << 22);
    stk_body_init(&in, framing, length, framing);
    ptrdiff_t used = stk_body_feed(&in, from, &wire);
    if (used < 0 || !in.done)
        return;
    stk_body_init(&out, framing, length, STK_FRAMING_CLOSE);
    need(stk_body_feed(&out, stk_buf_view(&wire), &plain) == (ptrdiff_t)wire.n);
    need(out.done && out.bytes == in.bytes && plain.n == (size_t)in.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    stk_str all = stk_str_n(data, size);
    size_t scan = 0, rescan = 0;
    stk_head_fault fault;
    const char *why;
    stk_target target;
    stk_err err;
    static const stk_head_limits limits = {.fields = STK_HEAD_MAX_FIELDS - STK_REWRITE_ADDS};
    ptrdiff_t used = stk_head_request(all, &limits, &scan, &head, &fault, &why);
    if (used <= 0 || stk_target_read(&head, &target, &err) != STK_R_ALLOWED || target.connect)
        return 0;
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF((size_t)1 << 20);
    stk_request_rewrite(&head, &target, &out);
    static const stk_head_limits wide = {.bytes = 65536};
    need(stk_head_request(stk_buf_view(&out), &wide, &rescan, &again, &fault, &why) == (ptrdiff_t)out.n);
    need(again.framing == head.framing && again.length == head.length && !again.keep_alive && !again.upgrade);
    need(again.host.n >= strlen(target.host) && memcmp(again.host.p, target.host, strlen(target.host)) == 0);
    need(!stk_head_get(&again, "proxy-authorization") && !stk_head_get(&again, "upgrade") &&
         !stk_head_get(&again, "te"));
    check_body(head.framing, head.length, stk_str_n(all.p + used, all.n - (size_t)used));
    return 0;
}
