/* Private to proto/message: what a field table cannot say (ids, names, words), as a second table, and the one
 * road by which every message is decoded and encoded. What decode would refuse, encode refuses too. */
#ifndef STK_MESSAGE_CHECK_H
#define STK_MESSAGE_CHECK_H

#include "proto/base/field.h"
#include "proto/message/limits.h"

typedef enum stk__rule {
    STK__ID,      /* char[]: stk_id_valid with prefix `arg`             */
    STK__TENANT,  /* char[]: RFC 1123 label                             */
    STK__AGENT,   /* char[]: stk_agent_ok                               */
    STK__WORD,    /* char[]: one of "a|b|c" in `arg`                    */
    STK__VISIBLE, /* char[]: no control bytes                           */
    STK__CLEAN,   /* the same, for text of any origin: encode writes '?' for what decode would refuse, so that
                     no verdict   and no evidence is lost for its wording */
    STK__CODE,    /* char[]: [a-z0-9_]                                  */
    STK__TRACE,   /* char[]: W3C traceparent                            */
    STK__IMAGE,   /* char[]: printable, no space, no ".." part           */
    STK__LABELS,  /* stk_map: keys [a-z0-9._/-]{1,63}, values <= 127    */
    STK__OBJECT,  /* stk_bytes holding a JSON object                    */
    STK__ARRAY,   /* stk_bytes holding a JSON array                     */
    STK__SET      /* stk_bytes that must be set                         */
} stk__rule;

typedef enum stk__need {
    STK__MAY,  /* empty or unset is fine                                                  */
    STK__FULL, /* must not be empty; its presence is the field table's to require         */
    STK__GIVEN /* only some kinds of the message need it: empty is -STK_E_MISSING_FIELD */
} stk__need;

typedef struct stk__check {
    const char *name; /* member name; the error's pointer is "/name" */
    size_t offset;
    stk__rule rule;
    const char *arg;
    stk__need need;
} stk__check;
#define STK__CHECK_AT(T, m) .name = #m, .offset = offsetof(T, m)

typedef struct stk__message {
    const char *what;         /* "request": begins error texts           */
    const stk_field *fields;  /* versioned: the first one is "v"         */
    const stk__check *checks; /* ends with name NULL                     */
    size_t size;
    bool versioned;
    int (*validate)(const void *message, stk_err *err); /* across fields; may be NULL */
} stk__message;

/* ret is zeroed first and after an error; it holds nothing to free then. */
int stk__message_decode(const stk__message *m, stk_str json, void *ret, stk_err *err) STK_MUST_USE;
int stk__message_decode_jv(const stk__message *m, stk_jv v, void *ret, stk_err *err) STK_MUST_USE;
int stk__message_encode(const stk__message *m, const void *in, stk_buf *out, stk_err *err) STK_MUST_USE;
/* The object alone, unchecked but with STK__CLEAN texts made clean; "v" is always the version we write. */
void stk__message_write(const stk__message *m, const void *in, stk_jw *w);
/* After a failed decode: when the field at fault has a least and a greatest value, or a list of words, the
 * error names them. checks may be NULL. */
void stk__explain(const stk_field *fields, const stk__check *checks, stk_err *err);
int stk__checks_run(const stk__check *checks, const void *in, stk_err *err) STK_MUST_USE;

/* "a|b|c" holds text. */
bool stk__word_ok(const char *words, stk_str text);
bool stk__trace_ok(stk_str text);
#define STK__BACKENDS   "auto|k8s|firecracker|docker|oci"
#define STK__ISOLATIONS "microvm|gvisor|container"

/* JSON Pointer token: appends "/key" with ~ and / escaped, cut to the array. */
void stk__pointer_add(char out[192], stk_str key);
/* A path below /workspace: relative, no "..", ".", empty part or NUL, at most `max` bytes. NULL, or why not.
 */
const char *stk__path_bad(stk_str path, size_t max);

/* Readers and writers for STK_F_CUSTOM: stk_bytes as base64, stk_span as whole milliseconds. */
int stk__base64_read(stk_jv v, void *at, stk_err *err);
void stk__base64_write(stk_jw *w, const void *at);
void stk__bytes_free(void *at);
int stk__ms_read(stk_jv v, void *at, stk_err *err);
void stk__ms_write(stk_jw *w, const void *at);
/* stk_span from seconds with the range of a command's timeout in the error text. */
int stk__timeout_read(stk_jv v, void *at, stk_err *err);
/* Likewise, up to seven days. */
int stk__deadline_read(stk_jv v, void *at, stk_err *err);
void stk__seconds_write(stk_jw *w, const void *at);

#endif
