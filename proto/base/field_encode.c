#include "proto/base/field.h"

static bool all_zero(const void *at, size_t n)
{
    const char *p = at;
    for (size_t i = 0; i < n; i++)
        if (p[i])
            return false;
    return true;
}

static bool is_empty(const stk_field *f, const void *at)
{
    switch (f->kind) {
    case STK_F_TEXT:
        return *(const char *)at == '\0';
    case STK_F_BYTES:
    case STK_F_RAW:
        return !((const stk_bytes *)at)->set;
    case STK_F_INT:
        return *(const int64_t *)at == 0;
    case STK_F_BOOL:
        return !*(const bool *)at;
    case STK_F_SECONDS:
        return ((const stk_span *)at)->ns == 0;
    case STK_F_WALL:
        return ((const stk_wall *)at)->ns == 0;
    case STK_F_STRV:
        return ((const stk_strv *)at)->n == 0;
    case STK_F_MAP:
        return ((const stk_map *)at)->n == 0;
    case STK_F_CUSTOM:
        return f->size && all_zero(at, f->size);
    }
    return false;
}

static void write_wall(stk_jw *w, stk_wall t)
{
    char text[STK_WALL_TEXT];
    stk_wall_format(t, text);
    stk_jw_text(w, text);
}

static void write_strv(stk_jw *w, const stk_strv *v)
{
    stk_jw_array(w);
    for (size_t i = 0; i < v->n; i++)
        stk_jw_str(w, stk_bytes_view(&v->v[i]));
    stk_jw_close(w, ']');
}

static void write_map(stk_jw *w, const stk_map *m)
{
    stk_jw_object(w);
    for (size_t i = 0; i < m->n; i++) {
        stk_jw_key_str(w, stk_bytes_view(&m->v[i].key));
        stk_jw_str(w, stk_bytes_view(&m->v[i].value));
    }
    stk_jw_close(w, '}');
}

static void write_value(const stk_field *f, const void *at, stk_jw *w)
{
    switch (f->kind) {
    case STK_F_TEXT:
        stk_jw_str(w, stk_str_n(at, strnlen(at, f->size)));
        break;
    case STK_F_BYTES:
        stk_jw_str(w, stk_bytes_view(at));
        break;
    case STK_F_INT:
        stk_jw_int(w, *(const int64_t *)at);
        break;
    case STK_F_BOOL:
        stk_jw_bool(w, *(const bool *)at);
        break;
    case STK_F_SECONDS:
        stk_jw_double(w, stk_span_sec(*(const stk_span *)at));
        break;
    case STK_F_WALL:
        write_wall(w, *(const stk_wall *)at);
        break;
    case STK_F_STRV:
        write_strv(w, at);
        break;
    case STK_F_MAP:
        write_map(w, at);
        break;
    case STK_F_RAW:
        stk_jw_raw(w, ((const stk_bytes *)at)->set ? stk_bytes_view(at) : STK_STR("null"));
        break;
    case STK_F_CUSTOM:
        f->write(w, at);
        break;
    }
}

/* Whether an empty field is better told by null than by its type's empty value. */
static bool is_null(const stk_field *f)
{
    bool has_absent = f->kind == STK_F_BYTES || f->kind == STK_F_WALL;
    return has_absent && (f->flags & STK_FIELD_NULL_OK);
}

void stk_fields_encode_members(const stk_field *table, const void *in, stk_jw *w)
{
    for (const stk_field *f = table; f->name; f++) {
        const void *at = (const char *)in + f->offset;
        bool empty = is_empty(f, at);
        if (empty && !(f->flags & STK_FIELD_KEEP))
            continue;
        stk_jw_key(w, f->name);
        if (empty && is_null(f))
            stk_jw_null(w);
        else
            write_value(f, at, w);
    }
}

void stk_fields_encode(const stk_field *table, const void *in, stk_jw *w)
{
    stk_jw_object(w);
    stk_fields_encode_members(table, in, w);
    stk_jw_close(w, '}');
}

void stk_fields_done(const stk_field *table, void *out)
{
    for (const stk_field *f = table; f->name; f++) {
        void *at = (char *)out + f->offset;
        if (f->kind == STK_F_BYTES || f->kind == STK_F_RAW)
            stk_bytes_done(at);
        else if (f->kind == STK_F_STRV)
            stk_strv_done(at);
        else if (f->kind == STK_F_MAP)
            stk_map_done(at);
        else if (f->kind == STK_F_CUSTOM && f->done)
            f->done(at);
    }
}
