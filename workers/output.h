/* What is kept of one output stream of a run: the beginning and the end. The runtime already left out the
 * middle; this bounds it again, because the runtime's words are those of an untrusted neighbour. */
#ifndef STK_WORKERS_OUTPUT_H
#define STK_WORKERS_OUTPUT_H

#include "proto/base/buf.h"

#define STK_OUTPUT_MARK 64 /* most bytes of the line that stands for what was left out */

typedef struct stk_output {
    stk_buf kept;
    size_t most;
    bool marked;
    int64_t left_out; /* bytes that are not in kept */
} stk_output;

void stk_output_init(stk_output *out, size_t most);
/* Keeps what fits, counts the rest. */
void stk_output_add(stk_output *out, stk_str data);
/* The runtime left out bytes here: a mark line takes their place. */
void stk_output_gap(stk_output *out, int64_t bytes);
void stk_output_done(stk_output *out);

#endif
