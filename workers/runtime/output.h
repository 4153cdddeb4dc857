/* What is kept of one stream of a command: its head and its tail within a cap, whatever the length.
 *
 * Pure: no descriptor, no clock. Memory grows with the bytes seen, never above the cap. The reader asks where
 * the next bytes go (`room`), reads them there and says how many came (`added`), so that a flood is read
 * without a copy. */
#ifndef STK_RUNTIME_OUTPUT_H
#define STK_RUNTIME_OUTPUT_H

#include "proto/base/buf.h"

typedef struct stk_output {
    char *head;
    size_t head_n, head_size, head_max;
    char *tail; /* a ring once tail_n == tail_max */
    size_t tail_n, tail_size, tail_max;
    size_t tail_at; /* where the next byte goes */
    uint64_t total;
} stk_output;

/* What is left when the stream has ended. Slices point into the output. */
typedef struct stk_kept {
    stk_str head;
    stk_str tail; /* empty when nothing was left out */
    uint64_t gap; /* bytes left out between the two  */
    uint64_t total;
} stk_kept;

/* cap: most bytes kept, at least 2. */
void stk_output_init(stk_output *out, size_t cap);
void stk_output_done(stk_output *out);
/* Where at most *ret_n (> 0) bytes may be read to. */
char *stk_output_room(stk_output *out, size_t *ret_n);
void stk_output_added(stk_output *out, size_t n);
/* Adds bytes of ours (the text of a failed exec). */
void stk_output_put(stk_output *out, stk_str s);
/* Bytes of the head that are final now, for a live stream: all of it, but for a character cut by the full
 * head. */
size_t stk_output_ready(const stk_output *out);
/* Ends the stream: makes head and tail contiguous. Cuts fall between characters. Add nothing after it. */
stk_kept stk_output_finish(stk_output *out);

/* Bytes at the end of s that begin a UTF-8 character and do not finish it: 0 to 3. */
size_t stk_utf8_unfinished(stk_str s);

#endif
