/* Table-driven decoding and encoding of one JSON object into one plain struct. One table per message says
 * name, kind, place, bounds; it yields decode (unknown fields refused with a pointer), encode, and the
 * schema. */
#ifndef STK_BASE_FIELD_H
#define STK_BASE_FIELD_H

#include "proto/base/json.h"
#include "proto/base/time.h"

typedef enum stk_field_kind {
    STK_F_TEXT,    /* char[size], no NUL byte inside; min/max = bytes                       */
    STK_F_BYTES,   /* stk_bytes (owned, any bytes); min/max = bytes                         */
    STK_F_INT,     /* int64_t; min/max                                                      */
    STK_F_BOOL,    /* bool                                                                  */
    STK_F_SECONDS, /* stk_span from a JSON number of seconds; min/max in nanoseconds        */
    STK_F_WALL,    /* stk_wall, RFC 3339 text                                               */
    STK_F_STRV,    /* stk_strv: array of strings; max = count                               */
    STK_F_MAP,     /* stk_map: object of string -> string; max = count                      */
    STK_F_RAW,     /* stk_bytes holding the value's JSON text                               */
    STK_F_CUSTOM   /* the table's function                                                  */
} stk_field_kind;

/* Owned bytes. set tells an empty value from an absent one. */
typedef struct stk_bytes {
    char *p;
    size_t n;
    bool set;
} stk_bytes;

/* Owned list of owned byte strings (each NUL-terminated for convenience, may hold NUL bytes). */
typedef struct stk_strv {
    stk_bytes *v;
    size_t n;
} stk_strv;

typedef struct stk_pair {
    stk_bytes key;
    stk_bytes value;
} stk_pair;
typedef struct stk_map {
    stk_pair *v;
    size_t n;
} stk_map;

void stk_bytes_set(stk_bytes *b, stk_str s);
void stk_bytes_done(stk_bytes *b);
static inline stk_str stk_bytes_view(const stk_bytes *b)
{
    return (stk_str){b->p, b->n};
}
void stk_strv_add(stk_strv *v, stk_str s);
void stk_strv_done(stk_strv *v);
void stk_map_add(stk_map *m, stk_str key, stk_str value);
/* Adds a copy of each pair of `from`. */
void stk_map_copy(stk_map *to, const stk_map *from);
/* NULL when absent. */
const stk_bytes *stk_map_get(const stk_map *m, stk_str key);
void stk_map_done(stk_map *m);

#define STK_FIELD_REQUIRED 1u /* decode: absent is -STK_E_MISSING_FIELD                     */
#define STK_FIELD_NULL_OK  2u /* decode: null means absent (else null is a wrong type)      */
#define STK_FIELD_NUL_OK   4u /* STRV, MAP values: a NUL byte is allowed                    */
#define STK_FIELD_KEEP     8u /* encode: written even when empty, zero or false             */

typedef struct stk_field stk_field;
struct stk_field {
    const char *name;
    stk_field_kind kind;
    size_t offset;
    size_t size; /* STK_F_TEXT: of the array */
    unsigned flags;
    int64_t min, max; /* max 0 = no bound of its own; both 0 = unbounded */
    /* STK_F_CUSTOM: `at` points into the struct. read sets err->pointer relative to it ("" or "/0"). */
    int (*read)(stk_jv v, void *at, stk_err *err);
    void (*write)(stk_jw *w, const void *at); /* writes exactly one value */
    void (*done)(void *at);                   /* frees what read made; may be NULL */
};
#define STK_FIELD_END                                                                                        \
    {                                                                                                        \
        .name = NULL                                                                                         \
    }
#define STK_FIELD_AT(T, m) .offset = offsetof(T, m), .size = sizeof(((T *)0)->m)

/* Decodes `object` into *out (which must be zeroed or hold defaults; absent fields stay as they are).
 * Errors carry err->pointer: -STK_E_FIELD, -STK_E_UNKNOWN_FIELD, -STK_E_MISSING_FIELD. On error call
 * stk_fields_done as well. */
int stk_fields_decode(const stk_field *table, stk_jv object, void *out, stk_err *err) STK_MUST_USE;
/* Writes `{…}`: members in table order; empty ones left out unless STK_FIELD_KEEP (then a BYTES, RAW or WALL
 * that is not set is null when null is allowed). A CUSTOM field is empty when its `size` bytes are zero; size
 * 0: never. */
void stk_fields_encode(const stk_field *table, const void *in, stk_jw *w);
/* Members only, into an object that is already open. */
void stk_fields_encode_members(const stk_field *table, const void *in, stk_jw *w);
/* Frees what the table's fields own and zeroes those; plain values stay. */
void stk_fields_done(const stk_field *table, void *out);

#endif
