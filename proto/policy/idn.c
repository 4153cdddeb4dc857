#include "proto/policy/idn.h"

/* RFC 3492, section 5. */
enum { BASE = 36, TMIN = 1, TMAX = 26, SKEW = 38, DAMP = 700, INITIAL_BIAS = 72, INITIAL_N = 0x80 };

#define POINTS_MAX 64

typedef struct points {
    uint32_t v[POINTS_MAX];
    size_t n;
} points;

typedef enum take { AS_IS, SHIFT, EVEN, ODD } take;

/* Letters and digits that are taken. SHIFT: upper case, lower is + shift. EVEN, ODD: pairs whose even (odd)
 * half is upper case. Left out on purpose: marks, ligatures, long s, dotted capital I, Greek oxia doubles,
 * Devanagari with nukta, scripts with reordering marks. */
static const struct range {
    uint32_t first, last;
    take take;
    uint16_t shift;
} ranges[] = {
    {0x00c0, 0x00d6, SHIFT, 0x20}, {0x00d8, 0x00de, SHIFT, 0x20}, {0x00df, 0x00f6, AS_IS, 0},
    {0x00f8, 0x00ff, AS_IS, 0},    {0x0100, 0x012f, EVEN, 0},     {0x0131, 0x0131, AS_IS, 0},
    {0x0134, 0x0137, EVEN, 0},     {0x0138, 0x0138, AS_IS, 0},    {0x0139, 0x013e, ODD, 0},
    {0x0141, 0x0148, ODD, 0},      {0x014a, 0x0177, EVEN, 0},     {0x0179, 0x017e, ODD, 0},
    {0x01a0, 0x01a1, EVEN, 0},     {0x01af, 0x01b0, ODD, 0},      {0x01cd, 0x01dc, ODD, 0},
    {0x01de, 0x01ef, EVEN, 0},     {0x01f8, 0x021f, EVEN, 0},     {0x0222, 0x0233, EVEN, 0},
    {0x0250, 0x02af, AS_IS, 0},    {0x0386, 0x0386, SHIFT, 0x26}, {0x0388, 0x038a, SHIFT, 0x25},
    {0x038c, 0x038c, SHIFT, 0x40}, {0x038e, 0x038f, SHIFT, 0x3f}, {0x0390, 0x0390, AS_IS, 0},
    {0x0391, 0x03a1, SHIFT, 0x20}, {0x03a3, 0x03ab, SHIFT, 0x20}, {0x03ac, 0x03ce, AS_IS, 0},
    {0x0400, 0x040f, SHIFT, 0x50}, {0x0410, 0x042f, SHIFT, 0x20}, {0x0430, 0x045f, AS_IS, 0},
    {0x0460, 0x0481, EVEN, 0},     {0x048a, 0x04bf, EVEN, 0},     {0x04c0, 0x04c0, SHIFT, 0x0f},
    {0x04c1, 0x04ce, ODD, 0},      {0x04cf, 0x04cf, AS_IS, 0},    {0x04d0, 0x052f, EVEN, 0},
    {0x0531, 0x0556, SHIFT, 0x30}, {0x0561, 0x0586, AS_IS, 0},    {0x05d0, 0x05ea, AS_IS, 0},
    {0x0620, 0x063f, AS_IS, 0},    {0x0641, 0x064a, AS_IS, 0},    {0x0671, 0x0674, AS_IS, 0},
    {0x0679, 0x06d3, AS_IS, 0},    {0x0904, 0x0928, AS_IS, 0},    {0x092a, 0x0930, AS_IS, 0},
    {0x0932, 0x0933, AS_IS, 0},    {0x0935, 0x0939, AS_IS, 0},    {0x093e, 0x094d, AS_IS, 0},
    {0x0902, 0x0903, AS_IS, 0},    {0x0966, 0x096f, AS_IS, 0},

    {0x10d0, 0x10f0, AS_IS, 0},    {0x1e00, 0x1e95, EVEN, 0},     {0x1e96, 0x1e99, AS_IS, 0},
    {0x1ea0, 0x1eff, EVEN, 0},     {0x3005, 0x3007, AS_IS, 0},    {0x3041, 0x3096, AS_IS, 0},
    {0x309d, 0x309e, AS_IS, 0},    {0x30a1, 0x30fa, AS_IS, 0},    {0x30fc, 0x30fe, AS_IS, 0},
    {0x3400, 0x4dbf, AS_IS, 0},    {0x4e00, 0x9fff, AS_IS, 0},    {0xac00, 0xd7a3, AS_IS, 0},
};

/* The lower-case form, or 0 when the table does not have it. */
static uint32_t lower(uint32_t c)
{
    if (c < 0x80) {
        if (c >= 'A' && c <= 'Z')
            return c + 0x20;
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ? c : 0;
    }
    if (c == 0x0178)
        return 0x00ff;
    for (size_t i = 0; i < STK_COUNT(ranges); i++) {
        if (c < ranges[i].first || c > ranges[i].last)
            continue;
        switch (ranges[i].take) {
        case AS_IS:
            return c;
        case SHIFT:
            return c + ranges[i].shift;
        case EVEN:
            return c | 1;
        case ODD:
            return c + (c & 1);
        }
    }
    return 0;
}

/* One code point of checked UTF-8; 0 when the bytes are not. */
static uint32_t utf8_next(stk_str s, size_t *at)
{
    const unsigned char *p = (const unsigned char *)s.p + *at;
    size_t left = s.n - *at;
    size_t len = p[0] < 0x80                   ? 1
                 : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
                 : p[0] >= 0xc2                ? 2
                                               : 0;
    if (!len || len > left || p[0] >= 0xf5)
        return 0;
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    uint32_t c = len == 1 ? p[0] : p[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3fu);
    }
    if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *at += len;
    return c;
}

static uint32_t adapt(uint32_t delta, uint32_t count, bool first)
{
    delta = first ? delta / DAMP : delta / 2;
    delta += delta / count;
    uint32_t k = 0;
    for (; delta > ((BASE - TMIN) * TMAX) / 2; k += BASE)
        delta /= BASE - TMIN;
    return k + (BASE - TMIN + 1) * delta / (delta + SKEW);
}

static uint32_t threshold(uint32_t k, uint32_t bias)
{
    return k <= bias + TMIN ? TMIN : k >= bias + TMAX ? TMAX : k - bias;
}

static bool put(char *out, size_t *n, uint32_t digit)
{
    if (*n >= STK_LABEL_MAX - 1)
        return false;
    out[(*n)++] = (char)(digit < 26 ? 'a' + digit : '0' + digit - 26);
    return true;
}

static bool put_delta(char *out, size_t *n, uint32_t delta, uint32_t bias)
{
    uint32_t q = delta;
    for (uint32_t k = BASE;; k += BASE) {
        uint32_t t = threshold(k, bias);
        if (q < t)
            return put(out, n, q);
        if (!put(out, n, t + (q - t) % (BASE - t)))
            return false;
        q = (q - t) / (BASE - t);
    }
}

static uint32_t next_point(const points *in, uint32_t least)
{
    uint32_t m = UINT32_MAX;
    for (size_t i = 0; i < in->n; i++)
        if (in->v[i] >= least && in->v[i] < m)
            m = in->v[i];
    return m;
}

/* False when the label would be longer than 63. At most 64 points below 0x110000: no sum here reaches 2^32.
 */
static bool punycode(const points *in, char out[STK_LABEL_MAX])
{
    memcpy(out, "xn--", 4);
    size_t n = 4;
    for (size_t i = 0; i < in->n; i++)
        if (in->v[i] < 0x80) {
            if (n >= STK_LABEL_MAX - 1)
                return false;
            out[n++] = (char)in->v[i];
        }
    uint32_t basic = (uint32_t)n - 4, done = basic;
    if (basic) {
        if (n >= STK_LABEL_MAX - 1)
            return false;
        out[n++] = '-';
    }
    uint32_t code = INITIAL_N, delta = 0, bias = INITIAL_BIAS;
    while (done < in->n) {
        uint32_t m = next_point(in, code);
        delta += (m - code) * (done + 1);
        code = m;
        for (size_t i = 0; i < in->n; i++) {
            if (in->v[i] < code)
                delta++;
            if (in->v[i] != code)
                continue;
            if (!put_delta(out, &n, delta, bias))
                return false;
            bias = adapt(delta, done + 1, done == basic);
            delta = 0;
            done++;
        }
        delta++;
        code++;
    }
    out[n] = '\0';
    return true;
}

static bool digit_of(char c, uint32_t *ret)
{
    if (c >= 'a' && c <= 'z')
        *ret = (uint32_t)(c - 'a');
    else if (c >= '0' && c <= '9')
        *ret = (uint32_t)(c - '0') + 26;
    else
        return false;
    return true;
}

static bool get_delta(stk_str s, size_t *at, uint32_t *i, uint32_t bias)
{
    uint64_t sum = *i, w = 1;
    for (uint32_t k = BASE;; k += BASE) {
        uint32_t digit;
        if (*at >= s.n || !digit_of(s.p[*at], &digit))
            return false;
        (*at)++;
        sum += digit * w;
        if (sum > INT32_MAX)
            return false;
        uint32_t t = threshold(k, bias);
        if (digit < t)
            break;
        w *= BASE - t;
        if (w > INT32_MAX)
            return false;
    }
    *i = (uint32_t)sum;
    return true;
}

/* `s` without "xn--". */
static bool unpunycode(stk_str s, points *ret)
{
    size_t basic = s.n;
    while (basic > 0 && s.p[basic - 1] != '-')
        basic--;
    size_t at = basic;
    ret->n = 0;
    for (size_t i = 0; basic && i < basic - 1; i++)
        ret->v[ret->n++] = (unsigned char)s.p[i];
    uint32_t code = INITIAL_N, i = 0, bias = INITIAL_BIAS;
    while (at < s.n) {
        uint32_t before = i, count = (uint32_t)ret->n + 1;
        if (ret->n >= POINTS_MAX || !get_delta(s, &at, &i, bias))
            return false;
        bias = adapt(i - before, count, before == 0);
        code += i / count;
        i %= count;
        if (code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
            return false;
        memmove(&ret->v[i + 1], &ret->v[i], (ret->n - i) * sizeof(ret->v[0]));
        ret->v[i++] = code;
        ret->n++;
    }
    return true;
}

static bool right_to_left(uint32_t c)
{
    return c >= 0x0590 && c <= 0x08ff;
}

/* RFC 5893, the short form: a label with right-to-left letters holds no left-to-right ones and does not start
 * with a digit. */
static bool bidi_ok(const points *in)
{
    bool rtl = false, ltr = false;
    for (size_t i = 0; i < in->n; i++) {
        bool neutral = in->v[i] == '-' || (in->v[i] >= '0' && in->v[i] <= '9');
        rtl |= right_to_left(in->v[i]);
        ltr |= !neutral && !right_to_left(in->v[i]);
    }
    return !rtl || (!ltr && right_to_left(in->v[0]));
}

int stk__idn_encode(stk_str label, char out[STK_LABEL_MAX], stk_err *err)
{
    points in = {.n = 0};
    for (size_t at = 0; at < label.n;) {
        uint32_t c = utf8_next(label, &at);
        if (!c)
            return stk_err_set(err, STK_E_FIELD, "a label is not UTF-8");
        if (in.n >= POINTS_MAX)
            return stk_err_set(err, STK_E_FIELD, "a label is longer than 63");
        in.v[in.n] = lower(c);
        if (!in.v[in.n++])
            return stk_err_set(err, STK_E_FIELD,
                               "U+%04X can't be written in a canonical form here; write the label as xn--…",
                               c);
    }
    if (in.v[0] == '-' || in.v[in.n - 1] == '-')
        return stk_err_set(err, STK_E_FIELD, "a label starts or ends with '-'");
    if (in.n >= 4 && in.v[2] == '-' && in.v[3] == '-')
        return stk_err_set(err, STK_E_FIELD, "a label has '--' in the third and fourth place");
    if (!bidi_ok(&in))
        return stk_err_set(err, STK_E_FIELD, "a label mixes right-to-left and left-to-right letters");
    if (!punycode(&in, out))
        return stk_err_set(err, STK_E_FIELD, "a label is longer than 63");
    return 0;
}

int stk__idn_verify(stk_str label, stk_err *err)
{
    points in;
    if (label.n < 5 || label.n >= STK_LABEL_MAX || !unpunycode(stk_str_n(label.p + 4, label.n - 4), &in))
        return stk_err_set(err, STK_E_FIELD, "an xn-- label does not decode");
    bool foreign = false;
    for (size_t i = 0; i < in.n; i++) {
        uint32_t c = lower(in.v[i]);
        foreign |= in.v[i] >= 0x80;
        if ((c && c != in.v[i]) || (in.v[i] < 0xa0 && !c))
            return stk_err_set(err, STK_E_FIELD, "an xn-- label hides a letter that is not canonical");
    }
    char again[STK_LABEL_MAX];
    if (!foreign || !punycode(&in, again) || !stk_str_eq(label, stk_str_of(again)))
        return stk_err_set(err, STK_E_FIELD, "an xn-- label is not the shortest form of its name");
    return 0;
}
