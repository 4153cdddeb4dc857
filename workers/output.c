#include "workers/output.h"

#define MARK_ROOM 64 /* kept free for the mark */

void stk_output_init(stk_output *out, size_t most)
{
    *out = (stk_output){.kept = STK_BUF(most + MARK_ROOM), .most = most};
}

void stk_output_add(stk_output *out, stk_str data)
{
    size_t room = out->kept.n < out->most ? out->most - out->kept.n : 0;
    size_t n = stk_min(room, data.n);
    stk_buf_add(&out->kept, data.p, n);
    out->left_out += (int64_t)(data.n - n);
}

void stk_output_gap(stk_output *out, int64_t bytes)
{
    if (bytes <= 0)
        return;
    out->left_out += bytes;
    if (out->kept.n + MARK_ROOM <= out->kept.cap)
        stk_buf_fmt(&out->kept, "\n[%lld bytes left out]\n", (long long)bytes);
}

void stk_output_done(stk_output *out)
{
    stk_buf_done(&out->kept);
}
