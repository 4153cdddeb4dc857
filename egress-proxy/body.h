/* A body on its way through: taken out of one framing and put into another, byte for byte the same content.
 * Pure. */
#ifndef STK_EGRESS_PROXY_BODY_H
#define STK_EGRESS_PROXY_BODY_H

#include "proto/http/head.h"

typedef struct stk_body {
    stk_framing in, out;
    uint64_t left; /* of STK_FRAMING_LENGTH */
    stk_chunked chunks;
    bool done;     /* whole, and its end was written */
    int64_t bytes; /* of content so far */
} stk_body;

/* in NONE is done at once. out CHUNKED writes chunks, anything else the bare bytes. */
void stk_body_init(stk_body *body, stk_framing in, uint64_t length, stk_framing out);
/* Takes what belongs to the body off the front of `from`, appends it to `to`; returns how many bytes it used
 * (what follows a done body is not touched), or -1 when the framing is broken: then nothing of the broken
 * part was appended. */
ptrdiff_t stk_body_feed(stk_body *body, stk_str from, stk_buf *to);
/* The sender has closed. True when that ends the body properly (CLOSE does, and only that; its end is
 * appended). */
bool stk_body_eof(stk_body *body, stk_buf *to);

#endif
