#include "proto/base/config_impl.h"
#include <stdio.h>

typedef struct unit {
    const char *name;
    int64_t factor;
} unit;

/* From the largest to the smallest, so that a bound is shown in the largest that divides it. */
static const unit span_units[] = {
    {"h", 3600000000000}, {"m", 60000000000}, {"s", 1000000000}, {"ms", 1000000}, {"us", 1000}};
static const unit size_units[] = {{"TiB", (int64_t)1 << 40},
                                  {"GiB", (int64_t)1 << 30},
                                  {"MiB", (int64_t)1 << 20},
                                  {"KiB", (int64_t)1 << 10},
                                  {"", 1}};

static int wrong(const stk__load *load, const char *what)
{
    return stk_err_set(load->err, STK_E_CONFIG, "%s", what);
}

static int check_range(const stk__load *load, const stk_conf *row, int64_t n)
{
    char bound[32];
    if ((row->min || row->max) && n < row->min) {
        stk__conf_bound(row, row->min, bound);
        return stk_err_set(load->err, STK_E_CONFIG, "must be at least %s", bound);
    }
    if (row->max && n > row->max) {
        stk__conf_bound(row, row->max, bound);
        return stk_err_set(load->err, STK_E_CONFIG, "must be at most %s", bound);
    }
    return 0;
}

static int put_number(const stk__load *load, const stk_conf *row, int64_t n)
{
    int rc = check_range(load, row, n);
    if (rc < 0)
        return rc;
    int64_t *at = stk__conf_at(load, row);
    *at = n;
    return 0;
}

static int set_int(const stk__load *load, const stk_conf *row, stk_str text)
{
    uint64_t n;
    bool minus = text.n && text.p[0] == '-';
    stk_str digits = stk_str_n(text.p + minus, text.n - minus);
    if (!stk_str_u64(digits, (uint64_t)INT64_MAX, &n))
        return wrong(load, "must be a whole number");
    return put_number(load, row, minus ? -(int64_t)n : (int64_t)n);
}

/* Digits and one of the units. */
static bool with_unit(stk_str text, const unit *units, size_t count, int64_t *ret)
{
    size_t digits = 0;
    uint64_t n;
    while (digits < text.n && text.p[digits] >= '0' && text.p[digits] <= '9')
        digits++;
    if (!stk_str_u64(stk_str_n(text.p, digits), (uint64_t)INT64_MAX, &n))
        return false;
    for (size_t i = 0; i < count; i++)
        if (stk_str_eq(stk_str_n(text.p + digits, text.n - digits), stk_str_of(units[i].name)))
            return !__builtin_mul_overflow((int64_t)n, units[i].factor, ret);
    return false;
}

static int set_span(const stk__load *load, const stk_conf *row, stk_str text)
{
    int64_t ns;
    _Static_assert(sizeof(stk_span) == sizeof(int64_t), "a span is its nanoseconds");
    if (!with_unit(text, span_units, STK_COUNT(span_units), &ns))
        return wrong(load, "must be a time with a unit: us, ms, s, m or h, like 250ms");
    return put_number(load, row, ns);
}

static int set_size(const stk__load *load, const stk_conf *row, stk_str text)
{
    int64_t n;
    if (!with_unit(text, size_units, STK_COUNT(size_units), &n))
        return wrong(load, "must be bytes, or a size in KiB, MiB, GiB or TiB, like 64MiB");
    return put_number(load, row, n);
}

static int set_bool(const stk__load *load, const stk_conf *row, stk_str text)
{
    bool yes = stk_str_eq(text, STK_STR("true"));
    if (!yes && !stk_str_eq(text, STK_STR("false")))
        return wrong(load, "must be true or false");
    *(bool *)stk__conf_at(load, row) = yes;
    return 0;
}

static int set_text(const stk__load *load, const stk_conf *row, stk_str text)
{
    if (text.n && memchr(text.p, '\0', text.n))
        return wrong(load, "must not hold a NUL byte");
    char **at = stk__conf_at(load, row);
    free(*at);
    *at = stk_xmemdup(text.p, text.n);
    return 0;
}

static int set_enum(const stk__load *load, const stk_conf *row, stk_str text)
{
    for (int i = 0; row->words[i]; i++)
        if (stk_str_eq(text, stk_str_of(row->words[i]))) {
            *(int *)stk__conf_at(load, row) = i;
            return 0;
        }
    stk_buf words STK_AUTO(stk_buf_done) = STK_BUF(400);
    for (int i = 0; row->words[i]; i++)
        stk_buf_fmt(&words, "%s%s", i ? ", " : "", row->words[i]);
    return stk_err_set(load->err, STK_E_CONFIG, "must be one of: %s", words.p);
}

int stk__conf_set(const stk__load *load, const stk_conf *row, stk_str text)
{
    switch (row->type) {
    case STK_C_TEXT:
        return set_text(load, row, text);
    case STK_C_BOOL:
        return set_bool(load, row, text);
    case STK_C_INT:
        return set_int(load, row, text);
    case STK_C_SPAN:
        return set_span(load, row, text);
    case STK_C_SIZE:
        return set_size(load, row, text);
    case STK_C_ENUM:
        return set_enum(load, row, text);
    default:
        return stk_err_set(load->err, STK_E_INTERNAL, "a row of this type takes no scalar");
    }
}

void stk__conf_free(const stk_conf *row, void *at)
{
    switch (row->type) {
    case STK_C_TEXT:
        free(*(char **)at);
        *(char **)at = NULL;
        break;
    case STK_C_LIST:
        stk_strv_done(at);
        break;
    case STK_C_RAW:
        stk_bytes_done(at);
        break;
    default:
        break;
    }
}

void stk__conf_bound(const stk_conf *row, int64_t n, char out[32])
{
    static const unit one[] = {{"", 1}};
    const unit *units = row->type == STK_C_SPAN ? span_units : row->type == STK_C_SIZE ? size_units : one;
    while (units->factor > 1 && (n == 0 || n % units->factor) && strcmp(units->name, "us") != 0)
        units++;
    snprintf(out, 32, "%lld%s", (long long)(n / units->factor), units->name);
}
