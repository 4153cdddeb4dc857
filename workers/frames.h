/* Reads the NDJSON frames of POST /execute?stream=1 (proto/message/link.h). Untrusted: every line is bounded
 * and checked. */
#ifndef STK_WORKERS_FRAMES_H
#define STK_WORKERS_FRAMES_H

#include "proto/message/link.h"

typedef enum stk_frame_kind { STK_FRAME_OUTPUT, STK_FRAME_GAP, STK_FRAME_EXIT } stk_frame_kind;

typedef struct stk_frame {
    stk_frame_kind kind;
    bool stderr_;
    stk_str data;     /* OUTPUT, borrowed */
    int64_t bytes;    /* GAP */
    stk_exec_end end; /* EXIT */
} stk_frame;

typedef struct stk_frames {
    int status; /* of the answer */
    bool ended; /* the exit frame was there: nothing may follow */
    stk_buf line, clear;
} stk_frames;

typedef void (*stk_frame_fn)(const stk_frame *frame, void *arg);

/* A new answer with that status begins. */
void stk_frames_begin(stk_frames *frames, int status);
/* -STK_E_PROTOCOL for anything that is no frame. With another status than 200 the bytes are only kept for the
 * refusal. */
int stk_frames_feed(stk_frames *frames, stk_str data, stk_frame_fn fn, void *arg, stk_err *err) STK_MUST_USE;
/* One line about a 4xx answer: its "detail" when it is a text, or its first problem. */
void stk_frames_refusal(const stk_frames *frames, char *out, size_t size);
/* The same for any answer of the runtime. */
void stk_refusal_text(int status, stk_str body, char *out, size_t size);
void stk_frames_done(stk_frames *frames);

#endif
