/* The answer of POST /execute?stream=1: frames as proto/message/link.h has them. Only what the client took is
 * counted as sent; a slow client makes the ring keep the tail, never the command wait. */
#ifndef STK_RUNTIME_STREAM_H
#define STK_RUNTIME_STREAM_H

#include "proto/http/server.h"
#include "workers/runtime/command.h"

typedef struct stk_stream {
    size_t sent[2]; /* bytes of the head */
    size_t tail_sent[2];
    bool gap_sent[2];
    bool started, finished, ended;
    stk_kept kept[2];
    stk_buf line;
} stk_stream;

void stk_stream_init(stk_stream *stream);
/* Sends what there is, as far as the client takes it; call on start, output and writable. */
void stk_stream_pump(stk_stream *stream, stk_command *cmd, stk_http_x *x);
/* The command is done: the rest, the gaps, the tails and the exit line follow. */
void stk_stream_finish(stk_stream *stream, stk_command *cmd, stk_http_x *x);
void stk_stream_done(stk_stream *stream);

#endif
