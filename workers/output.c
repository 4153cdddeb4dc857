#include "workers/output.h"
#include <stdio.h>

void stk_output_init(stk_output *out, size_t most)
{
    *out = (stk_output){.kept = STK_BUF(most), .most = most};
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
    char mark[STK_OUTPUT_MARK];
    snprintf(mark, sizeof(mark), "\n[%lld bytes left out]\n", (long long)bytes);
    if (!out->marked)
        stk_buf_text(&out->kept, mark); /* or not at all, when there is no room */
    out->marked = true;
}

void stk_output_done(stk_output *out)
{
    stk_buf_done(&out->kept);
}
