/* Strict JSON in and out (RFC 8259), for everything that comes from outside and for our fixed messages.
 *
 * Reading: the whole text is checked before anything is used. Refused with -STK_E_JSON and the byte offset in
 * the detail: empty text, BOM, trailing bytes, duplicate keys, raw control bytes, bad UTF-8, lone surrogates,
 * numbers like 01 or +1 or those no double holds (1e999), NaN, nesting over the limit, more values than the
 * limit. Strings carry a length and may hold NUL (\u0000); whoever must not have NUL says so for his field.
 */
#ifndef STK_BASE_JSON_H
#define STK_BASE_JSON_H

#include "proto/base/buf.h"

typedef struct stk_json stk_json;

typedef enum stk_jtype {
    STK_J_NONE,
    STK_J_NULL,
    STK_J_BOOL,
    STK_J_NUMBER,
    STK_J_STRING,
    STK_J_ARRAY,
    STK_J_OBJECT
} stk_jtype;

typedef struct stk_json_limits {
    size_t depth;  /* 0 = 64; the root container counts as one */
    size_t values; /* 0 = 100000 */
} stk_json_limits;

/* A value of a document; copy it freely; valid while the document lives. at == 0 with doc NULL: no value. */
typedef struct stk_jv {
    const stk_json *doc;
    uint32_t at;
} stk_jv;

/* Parses text (copied: the caller may free it). limits NULL = defaults. Never recurses on the C stack.
 * *ret_doc must be freed; it takes the text, 16 bytes per value and per key, and once more the strings that
 * have escapes. -STK_E_JSON, or -STK_E_LIMIT for too many values or a text over 1 GiB. */
int stk_json_parse(stk_str text, const stk_json_limits *limits, stk_json **ret_doc,
                   stk_err *err) STK_MUST_USE;
void stk_json_free(stk_json *doc);
STK_DEFINE_FREEP(stk_json, stk_json_freep, stk_json_free)

stk_jv stk_json_root(const stk_json *doc);
stk_jtype stk_jv_type(stk_jv v); /* STK_J_NONE for no value */
static inline bool stk_jv_is(stk_jv v, stk_jtype t)
{
    return stk_jv_type(v) == t;
}
const char *stk_jtype_name(stk_jtype t);

/* Object member by key, or no value. */
stk_jv stk_jv_get(stk_jv object, const char *key);
/* Walking an array or object: first child, next sibling; no value at the end. */
stk_jv stk_jv_first(stk_jv parent);
stk_jv stk_jv_next(stk_jv v);
/* Key of a member (of an object's child). */
stk_str stk_jv_key(stk_jv member);
size_t stk_jv_count(stk_jv parent);

/* Readers; the value must have the right type (else 0, false, empty). */
stk_str stk_jv_str(stk_jv v);
bool stk_jv_bool(stk_jv v);
double stk_jv_double(stk_jv v);
/* False when it is not a whole number that an int64_t holds exactly (1.0 and 1e3 are whole). */
bool stk_jv_int(stk_jv v, int64_t *ret_n);
/* The value's own text, byte for byte as it stood in the document. */
stk_str stk_jv_raw(stk_jv v);

/* Writing: a cursor over a buffer that places commas itself. Errors stick: check stk_jw_end once.
 * Strings are repaired to UTF-8; NUL and control bytes are escaped (\n \r \t \b \f, else \u00XX); '/' stays.
 * At most STK_JW_DEPTH_MAX levels. Pretty output is not offered. */
#define STK_JW_DEPTH_MAX 64
typedef struct stk_jw {
    stk_buf *out;
    uint64_t first;   /* bit per level: nothing written yet */
    uint64_t objects; /* bit per level: an object, else an array */
    uint8_t depth;    /* <= 64 */
    bool key;         /* a key was just written */
    bool whole;       /* the one top value was begun */
    bool bad;
} stk_jw;

void stk_jw_init(stk_jw *w, stk_buf *out);
void stk_jw_object(stk_jw *w);
void stk_jw_array(stk_jw *w);
void stk_jw_close(stk_jw *w, char bracket /* '}' or ']' */);
void stk_jw_key(stk_jw *w, const char *key);
void stk_jw_key_str(stk_jw *w, stk_str key);
void stk_jw_str(stk_jw *w, stk_str s);
void stk_jw_text(stk_jw *w, const char *s); /* NULL writes null */
void stk_jw_int(stk_jw *w, int64_t n);
void stk_jw_double(stk_jw *w, double d); /* shortest form that reads back the same; not finite = null */
void stk_jw_bool(stk_jw *w, bool b);
void stk_jw_null(stk_jw *w);
/* A JSON text that is known to be valid (stk_jv_raw, or another writer's output). */
void stk_jw_raw(stk_jw *w, stk_str json);
/* A checked value again, on one line and without white space: numbers as they stood, strings in our spelling.
 * No value writes null. */
void stk_jw_value(stk_jw *w, stk_jv v);
/* key + value in one call. */
void stk_jw_kstr(stk_jw *w, const char *key, stk_str s);
void stk_jw_ktext(stk_jw *w, const char *key, const char *s);
void stk_jw_kint(stk_jw *w, const char *key, int64_t n);
void stk_jw_kdouble(stk_jw *w, const char *key, double d);
void stk_jw_kbool(stk_jw *w, const char *key, bool b);
void stk_jw_kraw(stk_jw *w, const char *key, stk_str json);
/* 0, or -STK_E_LIMIT when the buffer went over its cap, or -STK_E_INTERNAL when brackets do not match. */
int stk_jw_end(stk_jw *w, stk_err *err);

#endif
