#include "api-gateway/change.h"
#include <stdio.h>

void stk_gw_etag(int64_t version, char out[32])
{
    snprintf(out, 32, "\"%lld\"", (long long)version);
}

/* The next member of a comma-separated list, without blanks. */
static stk_str next_member(stk_str *list)
{
    const char *comma = memchr(list->p, ',', list->n);
    stk_str one = {list->p, comma ? (size_t)(comma - list->p) : list->n};
    size_t used = one.n + (comma != NULL);
    *list = stk_str_n(list->p + used, list->n - used);
    while (one.n && (*one.p == ' ' || *one.p == '\t'))
        one = stk_str_n(one.p + 1, one.n - 1);
    while (one.n && (one.p[one.n - 1] == ' ' || one.p[one.n - 1] == '\t'))
        one.n--;
    return one;
}

/* Weak tags never match here (RFC 9110, 13.1.1); a bare number is taken for people who type it. */
int stk_gw_if_match(stk_str list, int64_t version, stk_err *err)
{
    char etag[32];
    if (!list.p)
        return 0;
    stk_gw_etag(version, etag);
    stk_str want = stk_str_of(etag), bare = stk_str_n(etag + 1, strlen(etag) - 2);
    while (list.n) {
        stk_str one = next_member(&list);
        if (stk_str_eq(one, want) || stk_str_eq(one, bare) || (version > 0 && stk_str_eq(one, STK_STR("*"))))
            return 0;
    }
    return stk_err_set(err, STK_E_PRECONDITION,
                       "the document has version %lld now: read it again and repeat the change",
                       (long long)version);
}
