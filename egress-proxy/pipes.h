/* Pipes for splice, lent while data moves and kept for the next one: the kernel grants a user about 1,000 of
 * full size. */
#ifndef STK_EGRESS_PROXY_PIPES_H
#define STK_EGRESS_PROXY_PIPES_H

#include "proto/base/base.h"

#define STK_PIPES_KEPT 16

typedef struct stk_pipe {
    int read, write;
    size_t size;
} stk_pipe;

typedef struct stk_pipes {
    stk_pipe kept[STK_PIPES_KEPT];
    size_t n;
} stk_pipes;

void stk_pipes_init(stk_pipes *pipes);
void stk_pipes_done(stk_pipes *pipes);
/* False when none can be had at a useful size: copy instead. */
bool stk_pipes_lend(stk_pipes *pipes, stk_pipe *ret);
/* empty: nothing is left in it; else it is closed. Sets pipe->read to -1. */
void stk_pipes_return(stk_pipes *pipes, stk_pipe *pipe, bool empty);

#endif
