#include "api-gateway/exchange.h"

#define VALUE_MAX 1024

static bool among(const char *words, stk_str name)
{
    while (*words) {
        size_t n = strcspn(words, "|");
        if (stk_str_eq(stk_str_n(words, n), name))
            return true;
        words += n + (words[n] == '|');
    }
    return false;
}

static int add_pair(stk_gw_exchange *ex, stk_str name, stk_str value, const char *known, stk_err *err)
{
    if (!among(known, name))
        return stk_err_set(err, STK_E_HTTP, "unknown query parameter \"%.*s\"%s%s", (int)stk_min(name.n, 60),
                           name.p, known[0] ? "; this path takes " : "; this path takes none", known);
    stk_gw_pair *pair = &ex->query[ex->nquery];
    if (ex->nquery == STK_GW_QUERY_MAX || !stk_str_copy(name, pair->name, sizeof(pair->name)))
        return stk_err_set(err, STK_E_HTTP, "too many query parameters");
    if (stk_gw_query(ex, pair->name))
        return stk_err_set(err, STK_E_HTTP, "the query parameter \"%s\" is given twice", pair->name);
    stk_buf_init(&pair->value, VALUE_MAX);
    ex->nquery++;
    int rc = stk_percent_decode(value, &pair->value, err);
    if (rc < 0 || (pair->value.n && memchr(pair->value.p, 0, pair->value.n)))
        return stk_err_set(err, STK_E_HTTP,
                           "the value of the query parameter \"%s\" is malformed or too long", pair->name);
    return 0;
}

int stk_gw_query_parse(stk_gw_exchange *ex, stk_str query, const char *known, stk_err *err)
{
    while (query.n) {
        const char *amp = memchr(query.p, '&', query.n);
        stk_str pair = {query.p, amp ? (size_t)(amp - query.p) : query.n};
        size_t used = pair.n + (amp != NULL);
        query = stk_str_n(query.p + used, query.n - used);
        const char *eq = pair.n ? memchr(pair.p, '=', pair.n) : NULL;
        stk_str name = {pair.p, eq ? (size_t)(eq - pair.p) : pair.n};
        stk_str value = eq ? stk_str_n(eq + 1, pair.n - name.n - 1) : (stk_str){"", 0};
        int rc = pair.n ? add_pair(ex, name, value, known, err) : 0;
        if (rc < 0)
            return rc;
    }
    return 0;
}

const char *stk_gw_query(const stk_gw_exchange *ex, const char *name)
{
    for (size_t i = 0; i < ex->nquery; i++)
        if (strcmp(ex->query[i].name, name) == 0)
            return ex->query[i].value.n ? ex->query[i].value.p : "";
    return NULL;
}

int stk_gw_query_limit(const stk_gw_exchange *ex, int64_t *ret, stk_err *err)
{
    const char *text = stk_gw_query(ex, "limit");
    uint64_t n = 100;
    if (text && (!stk_str_u64(stk_str_of(text), 1000, &n) || n == 0))
        return stk_err_set(err, STK_E_FIELD, "limit: a whole number from 1 to 1000");
    *ret = (int64_t)n;
    return 0;
}

int stk_gw_query_span(const stk_gw_exchange *ex, const char *name, stk_span most, stk_span *ret, stk_err *err)
{
    const char *text = stk_gw_query(ex, name);
    if (!text)
        return 0;
    size_t digits = strspn(text, "0123456789");
    const char *unit = text + digits;
    uint64_t n = 0;
    int64_t each = strcmp(unit, "ms") == 0                           ? 1000000
                   : strcmp(unit, "") == 0 || strcmp(unit, "s") == 0 ? 1000000000
                   : strcmp(unit, "m") == 0                          ? 60000000000
                                                                     : 0;
    if (!each || !stk_str_u64(stk_str_n(text, digits), (uint64_t)(most.ns / each), &n))
        return stk_err_set(err, STK_E_FIELD, "%s: such as 30s, 500ms, 2m or 30 (seconds), at most %llds",
                           name, (long long)(most.ns / 1000000000));
    ret->ns = (int64_t)n * each;
    return 0;
}
