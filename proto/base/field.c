#include "proto/base/field.h"
#include <math.h>
#include <stdio.h>

/* "/name" with '~' and '/' escaped (RFC 6901), cut to the size of an error's pointer. */
static const char *pointer(stk_str name, char out[192])
{
    size_t n = 0;
    out[n++] = '/';
    for (size_t i = 0; i < name.n && n < 190; i++) {
        unsigned char c = (unsigned char)name.p[i];
        if (c == '~' || c == '/') {
            out[n++] = '~';
            out[n++] = c == '~' ? '0' : '1';
        } else {
            out[n++] = (char)(c < 0x20 || c == 0x7f ? '?' : c);
        }
    }
    out[n] = '\0';
    return out;
}

static int wrong_type(stk_jv v, stk_jtype want, stk_err *err)
{
    return stk_err_field(err, STK_E_FIELD, "", "must be a JSON %s, not %s", stk_jtype_name(want),
                         stk_jtype_name(stk_jv_type(v)));
}

static bool below(const stk_field *f, int64_t n)
{
    return (f->min || f->max) && n < f->min;
}

static bool above(const stk_field *f, int64_t n)
{
    return f->max && n > f->max;
}

static int check_count(const stk_field *f, size_t n, const char *what, stk_err *err)
{
    if (below(f, (int64_t)n))
        return stk_err_field(err, STK_E_FIELD, "", "needs at least %lld %s, has %zu", (long long)f->min, what,
                             n);
    if (above(f, (int64_t)n))
        return stk_err_field(err, STK_E_FIELD, "", "may have at most %lld %s, has %zu", (long long)f->max,
                             what, n);
    return 0;
}

static bool has_nul(stk_str s)
{
    return s.n && memchr(s.p, '\0', s.n);
}

static int refuse_nul(stk_err *err)
{
    return stk_err_field(err, STK_E_FIELD, "", "must not hold a NUL byte");
}

static int read_text(const stk_field *f, stk_jv v, void *at, stk_err *err)
{
    if (!stk_jv_is(v, STK_J_STRING))
        return wrong_type(v, STK_J_STRING, err);
    stk_str s = stk_jv_str(v);
    int rc = check_count(f, s.n, "bytes", err);
    if (rc < 0)
        return rc;
    if (has_nul(s))
        return refuse_nul(err);
    if (!stk_str_copy(s, at, f->size))
        return stk_err_field(err, STK_E_FIELD, "", "may have at most %zu bytes, has %zu", f->size - 1, s.n);
    return 0;
}

static int read_bytes(const stk_field *f, stk_jv v, void *at, stk_err *err)
{
    if (!stk_jv_is(v, STK_J_STRING))
        return wrong_type(v, STK_J_STRING, err);
    int rc = check_count(f, stk_jv_str(v).n, "bytes", err);
    if (rc < 0)
        return rc;
    stk_bytes_set(at, stk_jv_str(v));
    return 0;
}

static int read_int(const stk_field *f, stk_jv v, void *at, stk_err *err)
{
    int64_t n = 0;
    if (!stk_jv_is(v, STK_J_NUMBER))
        return wrong_type(v, STK_J_NUMBER, err);
    if (!stk_jv_int(v, &n))
        return stk_err_field(err, STK_E_FIELD, "", "must be a whole number of at most 64 bits");
    if (below(f, n))
        return stk_err_field(err, STK_E_FIELD, "", "must be at least %lld", (long long)f->min);
    if (above(f, n))
        return stk_err_field(err, STK_E_FIELD, "", "must be at most %lld", (long long)f->max);
    *(int64_t *)at = n;
    return 0;
}

static int read_bool(const stk_field *f, stk_jv v, void *at, stk_err *err)
{
    if (!stk_jv_is(v, STK_J_BOOL))
        return wrong_type(v, STK_J_BOOL, err);
    *(bool *)at = stk_jv_bool(v);
    return 0;
}

static int read_seconds(const stk_field *f, stk_jv v, void *at, stk_err *err)
{
    if (!stk_jv_is(v, STK_J_NUMBER))
        return wrong_type(v, STK_J_NUMBER, err);
    double ns = stk_jv_double(v) * 1e9;
    bool fits = ns > -9.2e18 && ns < 9.2e18;
    int64_t n = fits ? llround(ns) : ns < 0 ? INT64_MIN : INT64_MAX;
    if (below(f, n))
        return stk_err_field(err, STK_E_FIELD, "", "must be at least %.9g seconds", (double)f->min / 1e9);
    if (above(f, n) || !fits)
        return stk_err_field(err, STK_E_FIELD, "", "must be at most %.9g seconds",
                             f->max ? (double)f->max / 1e9 : 9.2e9);
    ((stk_span *)at)->ns = n;
    return 0;
}

static int read_wall(const stk_field *f, stk_jv v, void *at, stk_err *err)
{
    if (!stk_jv_is(v, STK_J_STRING))
        return wrong_type(v, STK_J_STRING, err);
    stk_str s = stk_jv_str(v);
    if (stk_wall_parse(s.p, s.n, at) < 0)
        return stk_err_field(err, STK_E_FIELD, "", "must be a time like 2026-01-02T03:04:05.678Z");
    return 0;
}

static int read_strv(const stk_field *f, stk_jv v, void *at, stk_err *err)
{
    if (!stk_jv_is(v, STK_J_ARRAY))
        return wrong_type(v, STK_J_ARRAY, err);
    int rc = check_count(f, stk_jv_count(v), "items", err);
    if (rc < 0)
        return rc;
    stk_strv_done(at);
    size_t i = 0;
    for (stk_jv item = stk_jv_first(v); item.doc; item = stk_jv_next(item), i++) {
        if (!stk_jv_is(item, STK_J_STRING))
            rc = wrong_type(item, STK_J_STRING, err);
        else if (!(f->flags & STK_FIELD_NUL_OK) && has_nul(stk_jv_str(item)))
            rc = refuse_nul(err);
        if (rc < 0) {
            char where[24];
            snprintf(where, sizeof(where), "/%zu", i);
            return err ? stk_err_prefix(err, where) : rc;
        }
        stk_strv_add(at, stk_jv_str(item));
    }
    return 0;
}

static int read_map(const stk_field *f, stk_jv v, void *at, stk_err *err)
{
    if (!stk_jv_is(v, STK_J_OBJECT))
        return wrong_type(v, STK_J_OBJECT, err);
    int rc = check_count(f, stk_jv_count(v), "members", err);
    if (rc < 0)
        return rc;
    stk_map_done(at);
    for (stk_jv m = stk_jv_first(v); m.doc; m = stk_jv_next(m)) {
        if (!stk_jv_is(m, STK_J_STRING))
            rc = wrong_type(m, STK_J_STRING, err);
        else if (has_nul(stk_jv_key(m)) || (!(f->flags & STK_FIELD_NUL_OK) && has_nul(stk_jv_str(m))))
            rc = refuse_nul(err);
        if (rc < 0) {
            char where[192];
            return err ? stk_err_prefix(err, pointer(stk_jv_key(m), where)) : rc;
        }
        stk_map_add(at, stk_jv_key(m), stk_jv_str(m));
    }
    return 0;
}

static int read_raw(const stk_field *f, stk_jv v, void *at, stk_err *err)
{
    int rc = check_count(f, stk_jv_raw(v).n, "bytes", err);
    if (rc < 0)
        return rc;
    stk_bytes_set(at, stk_jv_raw(v));
    return 0;
}

static int read_custom(const stk_field *f, stk_jv v, void *at, stk_err *err)
{
    return f->read(v, at, err);
}

static int (*const readers[])(const stk_field *f, stk_jv v, void *at, stk_err *err) = {
    [STK_F_TEXT] = read_text,     [STK_F_BYTES] = read_bytes,     [STK_F_INT] = read_int,
    [STK_F_BOOL] = read_bool,     [STK_F_SECONDS] = read_seconds, [STK_F_WALL] = read_wall,
    [STK_F_STRV] = read_strv,     [STK_F_MAP] = read_map,         [STK_F_RAW] = read_raw,
    [STK_F_CUSTOM] = read_custom,
};

static const stk_field *field_named(const stk_field *table, stk_str name)
{
    for (const stk_field *f = table; f->name; f++)
        if (stk_str_eq(stk_str_of(f->name), name))
            return f;
    return NULL;
}

static bool is_absent(const stk_field *f, stk_jv v)
{
    return !v.doc || ((f->flags & STK_FIELD_NULL_OK) && stk_jv_is(v, STK_J_NULL));
}

static int decode_member(const stk_field *table, stk_jv member, void *out, stk_err *err)
{
    char where[192];
    stk_str name = stk_jv_key(member);
    const stk_field *f = field_named(table, name);
    if (!f)
        return stk_err_field(err, STK_E_UNKNOWN_FIELD, pointer(name, where), "no such field");
    if (is_absent(f, member))
        return 0;
    int rc = readers[f->kind](f, member, (char *)out + f->offset, err);
    return rc < 0 && err ? stk_err_prefix(err, pointer(name, where)) : rc;
}

int stk_fields_decode(const stk_field *table, stk_jv object, void *out, stk_err *err)
{
    if (!stk_jv_is(object, STK_J_OBJECT))
        return wrong_type(object, STK_J_OBJECT, err);
    for (stk_jv member = stk_jv_first(object); member.doc; member = stk_jv_next(member)) {
        int rc = decode_member(table, member, out, err);
        if (rc < 0)
            return rc;
    }
    for (const stk_field *f = table; f->name; f++) {
        char where[192];
        if ((f->flags & STK_FIELD_REQUIRED) && is_absent(f, stk_jv_get(object, f->name)))
            return stk_err_field(err, STK_E_MISSING_FIELD, pointer(stk_str_of(f->name), where), "required");
    }
    return 0;
}
