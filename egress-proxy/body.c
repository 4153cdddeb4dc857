#include "egress-proxy/body.h"

static void end(stk_body *body, stk_buf *to)
{
    body->done = true;
    if (body->out == STK_FRAMING_CHUNKED)
        stk_buf_str(to, STK_STR("0\r\n\r\n"));
}

void stk_body_init(stk_body *body, stk_framing in, uint64_t length, stk_framing out)
{
    *body = (stk_body){.in = in, .out = out, .left = length, .done = in == STK_FRAMING_NONE};
    stk_chunked_init(&body->chunks);
}

static void put(stk_body *body, stk_str data, stk_buf *to)
{
    if (!data.n)
        return;
    body->bytes += (int64_t)data.n;
    if (body->out != STK_FRAMING_CHUNKED) {
        stk_buf_str(to, data);
        return;
    }
    stk_buf_fmt(to, "%zx\r\n", data.n);
    stk_buf_str(to, data);
    stk_buf_str(to, STK_STR("\r\n"));
}

static ptrdiff_t feed_chunks(stk_body *body, stk_str from, stk_buf *to)
{
    size_t used = 0;
    while (used < from.n && !body->done) {
        stk_str data;
        bool last;
        ptrdiff_t n = stk_chunked_feed(&body->chunks, stk_str_n(from.p + used, from.n - used), &data, &last);
        if (n < 0)
            return -1;
        used += (size_t)n;
        put(body, data, to);
        if (last)
            end(body, to);
    }
    return (ptrdiff_t)used;
}

ptrdiff_t stk_body_feed(stk_body *body, stk_str from, stk_buf *to)
{
    if (body->done)
        return 0;
    if (body->in == STK_FRAMING_CHUNKED)
        return feed_chunks(body, from, to);
    size_t n = from.n;
    if (body->in == STK_FRAMING_LENGTH) {
        n = from.n < body->left ? from.n : (size_t)body->left;
        body->left -= n;
    }
    put(body, stk_str_n(from.p, n), to);
    if (body->in == STK_FRAMING_LENGTH && body->left == 0)
        end(body, to);
    return (ptrdiff_t)n;
}

bool stk_body_eof(stk_body *body, stk_buf *to)
{
    if (!body->done && body->in == STK_FRAMING_CLOSE)
        end(body, to);
    return body->done;
}
