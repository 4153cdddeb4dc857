/* multipart/form-data (RFC 7578, RFC 2046), read as it comes: bytes in, events out, no file and no socket.
 * Strict: CRLF only, a boundary of RFC 2046, part heads of at most STK_PART_HEAD_MAX bytes. What stands
 * before the first boundary and behind the last is skipped. */
#ifndef STK_RUNTIME_MULTIPART_H
#define STK_RUNTIME_MULTIPART_H

#include "proto/base/buf.h"
#include <limits.h>

#define STK_PART_HEAD_MAX 16384
#define STK_BOUNDARY_MAX  70

typedef enum stk_multipart_event {
    STK_PART_MORE,  /* nothing yet */
    STK_PART_BEGIN, /* a part's head is whole: stk_multipart_head */
    STK_PART_DATA,
    STK_PART_END,
    STK_PART_BAD
} stk_multipart_event;

typedef struct stk_multipart {
    char delimiter[4 + STK_BOUNDARY_MAX + 1]; /* CRLF "--" boundary */
    size_t ndelimiter;
    size_t matched; /* bytes of it seen at the end of what came so far */
    int state, after;
    bool whole; /* the last boundary was read */
    stk_buf head;
} stk_multipart;

/* From a Content-Type. -STK_E_FIELD when it is not multipart/form-data with a proper boundary. */
int stk_multipart_init(stk_multipart *mp, stk_str content_type, stk_err *err) STK_MUST_USE;
/* Takes bytes off the front of `in` and says what they were. data: borrowed from `in` or from mp until the
 * next call. Call until `in` is empty and the event is STK_PART_MORE; STK_PART_DATA may take nothing. */
stk_multipart_event stk_multipart_feed(stk_multipart *mp, stk_str *in, stk_str *ret_data);
/* The present part's header lines, each with its CRLF. Until the next part begins. */
stk_str stk_multipart_head(const stk_multipart *mp);
void stk_multipart_done(stk_multipart *mp);

/* What a part's Content-Disposition says. */
typedef struct stk_part {
    char name[64];
    bool has_filename;
    char filename[PATH_MAX]; /* without its NUL at most PATH_MAX - 1 bytes; no NUL inside */
} stk_part;

/* filename="…" is taken byte for byte but for \" and \\; filename*=UTF-8''… (RFC 8187) is percent-decoded
 * once and wins. -STK_E_HTTP for a malformed head, -STK_E_FIELD for a name that no file can have. */
int stk_part_parse(stk_str head, stk_part *ret, stk_err *err) STK_MUST_USE;

#endif
