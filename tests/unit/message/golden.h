/* Every message and document that has golden files, and how its text goes through decode and encode. */
#ifndef STK_TEST_MESSAGE_GOLDEN_H
#define STK_TEST_MESSAGE_GOLDEN_H

#include "proto/base/buf.h"

typedef struct golden {
    const char *file;
    /* Decodes and encodes again. */
    int (*through)(stk_str json, stk_buf *out, stk_err *err);
    const char *optional; /* "a|b": members whose absence is fine */
    const char *any;      /* members of any JSON type             */
    bool versioned;
    bool open; /* member names are the document's own: none is unknown */
} golden;

extern const golden goldens[];
extern const size_t golden_count;

#endif
