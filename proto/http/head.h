/* Strict HTTP/1.1 heads and chunked framing (RFC 9112), pure: bytes in, decision out, no socket.
 *
 * Refused, never repaired: bare CR or LF, obs-fold, NUL or control bytes, space before a colon, empty or
 * repeated Host, both Content-Length and Transfer-Encoding, repeated or malformed lengths, any transfer
 * coding but a single `chunked`, HTTP versions but 1.0 and 1.1, a missing Host on 1.1, more header lines or
 * bytes than the limits. */
#ifndef STK_HTTP_HEAD_H
#define STK_HTTP_HEAD_H

#include "proto/base/buf.h"

#define STK_HEAD_MAX_FIELDS 100

typedef enum stk_framing {
    STK_FRAMING_NONE,    /* no body                                         */
    STK_FRAMING_LENGTH,  /* `length` bytes                                  */
    STK_FRAMING_CHUNKED, /* chunked                                         */
    STK_FRAMING_CLOSE    /* responses only: until the connection closes     */
} stk_framing;

/* Why a head was refused; each has a stable text (used as the proxy's reason code and in error bodies). */
#define STK_HEAD_FAULTS(X)                                                                                   \
    X(REQUEST_LINE, "bad_request_line", 400)                                                                 \
    X(TARGET, "bad_target", 400)                                                                             \
    X(VERSION, "bad_request", 505)                                                                           \
    X(FIELD, "bad_request", 400)                                                                             \
    X(HOST, "bad_host", 400)                                                                                 \
    X(FRAMING, "bad_framing", 400)                                                                           \
    X(CODING, "bad_framing", 501)                                                                            \
    X(TOO_LARGE, "head_too_large", 431)                                                                      \
    X(STATUS_LINE, "bad_response", 502)                                                                      \
    X(SCHEME, "bad_scheme", 400)
typedef enum stk_head_fault {
    STK_HEAD_OK = 0,
#define X(sym, text, status) STK_HEAD_##sym,
    STK_HEAD_FAULTS(X)
#undef X
} stk_head_fault;
const char *stk_head_fault_text(stk_head_fault fault);
int stk_head_fault_status(stk_head_fault fault);

typedef struct stk_head_field {
    stk_str name;
    stk_str value; /* without surrounding blanks */
} stk_head_field;

/* All slices point into the parsed bytes. */
typedef struct stk_head {
    stk_str method, target; /* of a request  */
    int status;             /* of a response */
    stk_str reason;
    int minor; /* HTTP/1.minor */
    stk_head_field fields[STK_HEAD_MAX_FIELDS];
    size_t nfields;
    stk_str host; /* the one Host field; p == NULL when absent */
    stk_framing framing;
    uint64_t length;
    bool keep_alive;
    bool expect_continue;
    bool expect_other; /* an Expect we do not know: 417 */
    bool upgrade;      /* Connection: upgrade was present */
} stk_head;

typedef struct stk_head_limits {
    size_t bytes;  /* whole head; default 16384      */
    size_t fields; /* default STK_HEAD_MAX_FIELDS    */
} stk_head_limits;

/* Looks for a whole head at the start of `in`. Returns its length in bytes when one is there and parsed,
 * 0 when more bytes are needed (and the limit is not reached), or -1 with *ret_fault and one line in `why`
 * (borrowed, static). Feeding again from the start with more bytes is cheap: pass *scan, zeroed at first. */
ptrdiff_t stk_head_request(stk_str in, const stk_head_limits *limits, size_t *scan, stk_head *ret,
                           stk_head_fault *ret_fault, const char **ret_why);
/* `to_head`: the request was HEAD; to_connect: it was CONNECT (both have no body on 2xx). */
ptrdiff_t stk_head_response(stk_str in, const stk_head_limits *limits, size_t *scan, bool to_head,
                            bool to_connect, stk_head *ret, stk_head_fault *ret_fault, const char **ret_why);
/* First field with that name (case-insensitive) or NULL. */
const stk_head_field *stk_head_get(const stk_head *head, const char *name);
/* True when a comma-separated field of that name holds the token (case-insensitive). */
bool stk_head_has_token(const stk_head *head, const char *name, const char *token);
bool stk_is_token(stk_str s);

/* Incremental chunked decoder. Extensions, trailers over the limits, odd sizes (0x5, +5, 17 digits) are
 * refused; trailers are checked, then dropped. */
typedef struct stk_chunked {
    uint64_t left; /* data bytes of the present chunk still to come */
    int state;
    size_t line; /* bytes of the present line */
    uint64_t size;
    size_t trailer;
} stk_chunked;
void stk_chunked_init(stk_chunked *dec);
/* Takes bytes from `in`; *ret_data is the next run of body bytes inside `in` (maybe empty). Returns how many
 * bytes were used, with *ret_end set once the last chunk and its trailer are read; -1 on a fault. */
ptrdiff_t stk_chunked_feed(stk_chunked *dec, stk_str in, stk_str *ret_data, bool *ret_end);

/* Percent-decoding, exactly once, of a path: bytes appended to out. -STK_E_HTTP on a malformed escape. */
int stk_percent_decode(stk_str in, stk_buf *out, stk_err *err);
int stk_percent_encode(stk_str in, bool keep_slash, stk_buf *out);
/* Value of name in a query string "a=1&b=2" (decoded, '+' stays '+'), appended to out. False when absent. */
bool stk_query_get(stk_str query, const char *name, stk_buf *out);

#endif
