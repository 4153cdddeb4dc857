/* The answer of POST /execute without ?stream=1: one JSON object, written piece by piece, so that a large
 * output is never copied whole. Where bytes were left out, the text says so in a line of its own, and
 * "stdout_gap": {"at", "bytes"} says it for programs; stdout_base64 holds the kept bytes alone. */
#ifndef STK_RUNTIME_ANSWER_H
#define STK_RUNTIME_ANSWER_H

#include "proto/http/server.h"
#include "proto/message/link.h"
#include "workers/runtime/output.h"

typedef enum stk_piece_kind { STK_PIECE_RAW, STK_PIECE_TEXT, STK_PIECE_BASE64 } stk_piece_kind;

typedef struct stk_piece {
    stk_piece_kind kind;
    size_t raw_at; /* RAW: where in `raw`; else `bytes` */
    stk_str bytes;
} stk_piece;

typedef struct stk_answer {
    stk_piece pieces[24];
    size_t n, at;
    stk_buf raw; /* all that is written as it is */
    stk_buf scratch;
    size_t left; /* bytes of output still to write */
    bool started;
} stk_answer;

/* kept[0] stdout, kept[1] stderr: borrowed until done. end->truncated is set here. */
void stk_answer_init(stk_answer *answer, const stk_kept kept[2], stk_exec_end *end, bool base64);
/* Writes until the queue is full; call again on writable. True when all was written (and ended). */
bool stk_answer_pump(stk_answer *answer, stk_http_x *x);
/* All of it at once, appended (small answers, tests). */
void stk_answer_whole(stk_answer *answer, stk_buf *out);
void stk_answer_done(stk_answer *answer);

#endif
