#include "proto/message/agent_config.h"
#include "proto/message/request.h"

#define POOL_MOST 1000
#define F(m)      STK_FIELD_AT(stk_pool_spec, m)
/* A max that nobody gave; it becomes the target. */
#define MAX_UNSET (-1)

static const stk_field fields[] = {
    {"agent", STK_F_TEXT, F(agent), STK_FIELD_REQUIRED | STK_FIELD_KEEP},
    {"max", STK_F_INT, F(max), STK_FIELD_KEEP, 0, POOL_MOST},
    {"min", STK_F_INT, F(min), STK_FIELD_KEEP, 0, POOL_MOST},
    {"target", STK_F_INT, F(target), STK_FIELD_KEEP, 0, POOL_MOST},
    {"ttl_seconds", STK_F_SECONDS, F(ttl), STK_FIELD_KEEP, 1000000000LL, STK_TIMEOUT_MAX_NS},
    STK_FIELD_END,
};
static const stk__check checks[] = {{STK__CHECK_AT(stk_pool_spec, agent), STK__AGENT, NULL, STK__FULL}, {0}};

int stk_pool_spec_decode(stk_str name, stk_jv v, stk_pool_spec *ret, stk_err *err)
{
    *ret = (stk_pool_spec){.max = MAX_UNSET, .ttl = stk_sec(600)};
    if (!stk_tenant_ok(name) || !stk_str_copy(name, ret->name, sizeof(ret->name)))
        return stk_err_field(
            err, STK_E_FIELD, "",
            "a pool's name is 1 to 63 of a-z 0-9 - and begins and ends with a letter or digit");
    int rc = stk_fields_decode(fields, v, ret, err);
    if (rc < 0) {
        stk__explain(fields, checks, err);
        return rc;
    }
    if ((rc = stk__checks_run(checks, ret, err)) < 0)
        return rc;
    if (ret->max == MAX_UNSET)
        ret->max = ret->target;
    if (ret->min > ret->target)
        return stk_err_field(err, STK_E_FIELD, "/min", "min must not be over target");
    if (ret->max < ret->target)
        return stk_err_field(err, STK_E_FIELD, "/max", "max must not be below target");
    return 0;
}

void stk_pool_spec_write(stk_jw *w, const stk_pool_spec *pool)
{
    stk_fields_encode(fields, pool, w);
}

static int one_pool(stk_str name, stk_jv v, void *arg, stk_err *err)
{
    stk_pools_doc *doc = arg;
    return stk_pool_spec_decode(name, v, &doc->v[doc->n++], err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const stk_pool_spec *)a)->name, ((const stk_pool_spec *)b)->name);
}

static bool any_name(stk_str name)
{
    return true; /* stk_pool_spec_decode looks at it */
}

int stk_pools_doc_decode(stk_jv v, stk_pools_doc *ret, stk_err *err)
{
    *ret = (stk_pools_doc){0};
    if (stk_jv_is(v, STK_J_OBJECT))
        ret->v = stk_xcalloc(stk_jv_count(v) + 1, sizeof(*ret->v));
    int rc = stk__named_read(v, any_name, "", one_pool, ret, err);
    if (rc < 0)
        stk_pools_doc_done(ret);
    else if (ret->n)
        qsort(ret->v, ret->n, sizeof(*ret->v), by_name);
    return rc;
}

void stk_pools_doc_done(stk_pools_doc *doc)
{
    free(doc->v);
    *doc = (stk_pools_doc){0};
}

void stk_pools_doc_write(stk_jw *w, const stk_pools_doc *doc)
{
    stk_jw_object(w);
    for (size_t i = 0; i < doc->n; i++) {
        stk_jw_key(w, doc->v[i].name);
        stk_pool_spec_write(w, &doc->v[i]);
    }
    stk_jw_close(w, '}');
}
