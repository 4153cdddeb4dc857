#include "proto/base/json_tape.h"

stk_str stk__json_string(const stk_json *doc, const stk__node *node)
{
    if (!(node->bits & STK__NODE_ESCAPED))
        return stk_str_n(doc->text + node->start + 1, node->end - node->start - 2);
    uint32_t n;
    memcpy(&n, doc->plain.p + node->link, sizeof(n));
    return stk_str_n(doc->plain.p + node->link + sizeof(n), n);
}

static bool is_container(const stk__node *node)
{
    return stk__node_type(node) >= STK_J_ARRAY;
}

uint32_t stk__json_first(const stk_json *doc, uint32_t at)
{
    const stk__node *node = &doc->node[at];
    if (!is_container(node) || node->bits >> STK__NODE_COUNT == 0)
        return 0;
    return at + (stk__node_type(node) == STK_J_OBJECT ? 2 : 1);
}

uint32_t stk__json_next(const stk_json *doc, uint32_t at)
{
    const stk__node *node = &doc->node[at];
    if (node->bits & STK__NODE_LAST)
        return 0;
    uint32_t after = is_container(node) ? node->link : at + 1;
    return after + (node->bits & STK__NODE_MEMBER ? 1 : 0);
}

static const stk__node *node_of(stk_jv v)
{
    return v.doc ? &v.doc->node[v.at] : NULL;
}

static const stk__node *node_if(stk_jv v, stk_jtype type)
{
    return stk_jv_type(v) == type ? node_of(v) : NULL;
}

static stk_jv value(const stk_json *doc, uint32_t at)
{
    return at ? (stk_jv){doc, at} : (stk_jv){NULL, 0};
}

stk_jv stk_json_root(const stk_json *doc)
{
    return (stk_jv){doc, 0};
}

stk_jtype stk_jv_type(stk_jv v)
{
    return v.doc ? (stk_jtype)stk__node_type(node_of(v)) : STK_J_NONE;
}

const char *stk_jtype_name(stk_jtype t)
{
    static const char *const name[] = {"nothing", "null", "boolean", "number", "string", "array", "object"};
    return (unsigned)t < STK_COUNT(name) ? name[t] : name[0];
}

stk_jv stk_jv_first(stk_jv parent)
{
    return parent.doc ? value(parent.doc, stk__json_first(parent.doc, parent.at)) : parent;
}

stk_jv stk_jv_next(stk_jv v)
{
    return v.doc ? value(v.doc, stk__json_next(v.doc, v.at)) : v;
}

stk_str stk_jv_key(stk_jv member)
{
    const stk__node *node = node_of(member);
    if (!node || !(node->bits & STK__NODE_MEMBER))
        return (stk_str){NULL, 0};
    return stk__json_string(member.doc, node - 1);
}

stk_jv stk_jv_get(stk_jv object, const char *key)
{
    stk_str want = stk_str_of(key);
    if (stk_jv_is(object, STK_J_OBJECT))
        for (stk_jv v = stk_jv_first(object); v.doc; v = stk_jv_next(v))
            if (stk_str_eq(stk_jv_key(v), want))
                return v;
    return (stk_jv){NULL, 0};
}

size_t stk_jv_count(stk_jv parent)
{
    const stk__node *node = node_of(parent);
    return node && is_container(node) ? node->bits >> STK__NODE_COUNT : 0;
}

stk_str stk_jv_str(stk_jv v)
{
    const stk__node *node = node_if(v, STK_J_STRING);
    return node ? stk__json_string(v.doc, node) : (stk_str){NULL, 0};
}

bool stk_jv_bool(stk_jv v)
{
    const stk__node *node = node_if(v, STK_J_BOOL);
    return node && v.doc->text[node->start] == 't';
}

double stk_jv_double(stk_jv v)
{
    const stk__node *node = node_if(v, STK_J_NUMBER);
    return node ? strtod(v.doc->text + node->start, NULL) : 0;
}

stk_str stk_jv_raw(stk_jv v)
{
    const stk__node *node = node_of(v);
    return node ? stk_str_n(v.doc->text + node->start, node->end - node->start) : (stk_str){NULL, 0};
}

/* The exponent, kept within what no text can make up for with digits. */
static int64_t read_exponent(const char *p, const char *end)
{
    bool minus = p < end && *p == '-';
    int64_t e = 0;
    for (p += p < end && (*p == '-' || *p == '+'); p < end; p++)
        if (e < (int64_t)1 << 40)
            e = e * 10 + (*p - '0');
    return minus ? -e : e;
}

/* value * 10^zeros, exactly. */
static bool scale(uint64_t *v, int64_t zeros)
{
    for (; zeros > 0; zeros--)
        if (__builtin_mul_overflow(*v, 10u, v))
            return false;
    return true;
}

/* |number| when it is whole and fits. `zeros` counts the digits seen since the last one that is not 0. */
static bool read_whole(const char *p, const char *end, uint64_t *ret)
{
    uint64_t v = 0;
    int64_t zeros = 0, decimals = 0;
    bool point = false;
    for (; p < end && (*p | 0x20) != 'e'; p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        decimals += point;
        if (*p == '0') {
            zeros += v != 0;
            continue;
        }
        if (zeros > 20 || !scale(&v, zeros + 1) || __builtin_add_overflow(v, (unsigned)(*p - '0'), &v))
            return false;
        zeros = 0;
    }
    int64_t power = zeros - decimals + (p < end ? read_exponent(p + 1, end) : 0);
    *ret = v;
    return v == 0 || (power >= 0 && power <= 20 && scale(ret, power));
}

bool stk_jv_int(stk_jv v, int64_t *ret_n)
{
    const stk__node *node = node_if(v, STK_J_NUMBER);
    if (!node)
        return false;
    const char *p = v.doc->text + node->start;
    bool minus = *p == '-';
    uint64_t n;
    if (!read_whole(p + minus, v.doc->text + node->end, &n) || n > (uint64_t)INT64_MAX + minus)
        return false;
    *ret_n = (int64_t)(minus ? 0 - n : n);
    return true;
}
