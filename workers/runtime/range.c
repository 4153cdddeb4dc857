#include "workers/runtime/range.h"

/* Digits only, leading zeros allowed; what is larger than any file is the largest number. */
static bool number(stk_str s, uint64_t *ret)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9')
            return false;
        n = n > INT64_MAX / 10 ? INT64_MAX : n * 10 + (uint64_t)(s.p[i] - '0');
    }
    *ret = n;
    return s.n > 0;
}

static stk_range part(uint64_t at, uint64_t n, uint64_t *ret_at, uint64_t *ret_n)
{
    *ret_at = at;
    *ret_n = n;
    return STK_RANGE_PART;
}

stk_range stk_range_parse(stk_str value, uint64_t size, uint64_t *ret_at, uint64_t *ret_n)
{
    stk_str unit = STK_STR("bytes=");
    uint64_t first = 0, last = 0;
    if (size == 0 || value.n < unit.n || !stk_str_ieq(stk_str_n(value.p, unit.n), unit))
        return STK_RANGE_WHOLE;
    value = stk_str_n(value.p + unit.n, value.n - unit.n);
    const char *dash = value.n ? memchr(value.p, '-', value.n) : NULL;
    if (!dash)
        return STK_RANGE_WHOLE;
    stk_str left = {value.p, (size_t)(dash - value.p)}, right = {dash + 1, value.n - left.n - 1};
    if ((left.n && !number(left, &first)) || (right.n && !number(right, &last)) || (!left.n && !right.n) ||
        (left.n && right.n && last < first))
        return STK_RANGE_WHOLE;
    if (!left.n)
        return last == 0 ? STK_RANGE_OUTSIDE
                         : part(last < size ? size - last : 0, last < size ? last : size, ret_at, ret_n);
    if (first >= size)
        return STK_RANGE_OUTSIDE;
    if (!right.n || last >= size)
        last = size - 1;
    return part(first, last - first + 1, ret_at, ret_n);
}
