/* GET /v1/pools, GET and PUT /v1/pools/{name}: warm pools of a tenant, one document in the background. */
#include "api-gateway/change.h"
#include "proto/message/audit.h"
#include <stdio.h>

#define DOC_MAX ((size_t)1 << 20)

static int read_stored(const stk_config_record *rec, stk_pools_doc *ret, stk_err *err)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    *ret = (stk_pools_doc){0};
    if (!rec)
        return 0;
    int rc = stk_json_parse(stk_bytes_view(&rec->doc), NULL, &doc, err);
    if (rc == 0)
        rc = stk_pools_doc_decode(stk_json_root(doc), ret, err);
    if (rc < 0 && err)
        err->code = STK_E_CORRUPT;
    return rc < 0 ? stk_err_wrap(err, "version %lld of %s", (long long)rec->version, rec->name) : 0;
}

static stk_pool_spec *find(const stk_pools_doc *doc, const char *name)
{
    for (size_t i = 0; i < doc->n; i++)
        if (strcmp(doc->v[i].name, name) == 0)
            return &doc->v[i];
    return NULL;
}

/* --- PUT --- */

static int write_one(const stk_pool_spec *pool, stk_buf *out, stk_err *err)
{
    stk_jw w;
    stk_jw_init(&w, out);
    stk_pool_spec_write(&w, pool);
    return stk_jw_end(&w, err);
}

/* Audit row and answer show the one pool; stored is the whole document. */
static int build(stk_gw_change *change, const stk_config_record *rec, stk_err *err)
{
    const stk_pool_spec *asked = change->arg;
    stk_pools_doc doc STK_AUTO(stk_pools_doc_done) = {0};
    stk_jw w;
    int rc = read_stored(rec, &doc, err);
    stk_pool_spec *old = rc == 0 ? find(&doc, asked->name) : NULL;
    if (rc == 0 && old)
        rc = write_one(old, &change->before, err);
    if (rc < 0)
        return rc;
    if (!old) {
        doc.v = stk_xrealloc(doc.v, (doc.n + 1) * sizeof(*doc.v));
        old = &doc.v[doc.n++];
    }
    *old = *asked;
    stk_jw_init(&w, &change->stored);
    stk_pools_doc_write(&w, &doc);
    rc = stk_jw_end(&w, err);
    return rc < 0 ? rc : write_one(asked, &change->after, err);
}

static const stk_gw_change_kind kind = {STK_CONF_POOLS, STK_AUDIT_CONFIG_UPDATE, build, NULL};

void stk_gw_pool_put(stk_gw_exchange *ex)
{
    stk_err err;
    stk_pool_spec *asked = ex->work = stk_xcalloc(1, sizeof(*asked));
    ex->work_free = free;
    if (stk_pool_spec_decode(stk_str_of(ex->param), stk_json_root(ex->doc), asked, &err) < 0)
        stk_gw_answer_err(ex, &err);
    else
        stk_gw_change_start(ex, &kind, asked, (stk_str){NULL, 0});
}

/* --- GET --- */

static void put_pool(stk_jw *w, const stk_pool_spec *pool, const stk_gw_exchange *ex,
                     const stk_op_pool_list *list)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(4096);
    int64_t warm = 0;
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->rows[i].pool, pool->name) == 0 &&
            strcmp(list->rows[i].tenant, ex->caller.tenant) == 0)
            warm++;
    stk_jw_object(w);
    stk_jw_ktext(w, "name", pool->name);
    stk_jw_kint(w, "warm", warm);
    if (write_one(pool, &text, NULL) == 0)
        stk_jw_kraw(w, "spec", stk_buf_view(&text));
    stk_jw_close(w, '}');
}

static int write_answer(stk_gw_exchange *ex, const stk_op_pool_list *list, const stk_pools_doc *doc,
                        stk_buf *body, stk_err *err)
{
    const stk_pool_spec *one = ex->param[0] ? find(doc, ex->param) : NULL;
    stk_jw w;
    if (ex->param[0] && !one)
        return stk_err_set(err, STK_E_NOT_FOUND, "no pool %s", ex->param);
    stk_jw_init(&w, body);
    if (one) {
        put_pool(&w, one, ex, list);
        return stk_jw_end(&w, err);
    }
    stk_jw_object(&w);
    stk_jw_key(&w, "pools");
    stk_jw_array(&w);
    for (size_t i = 0; i < doc->n; i++)
        put_pool(&w, &doc->v[i], ex, list);
    stk_jw_close(&w, ']');
    stk_jw_close(&w, '}');
    return stk_jw_end(&w, err);
}

static void on_list(stk_op *op, void *arg)
{
    stk_gw_exchange *ex STK_AUTO(stk_gw_leave) = arg;
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(4 * DOC_MAX);
    stk_pools_doc doc STK_AUTO(stk_pools_doc_done) = {0};
    char etag[32], header[64];
    stk_err err;
    if (stk_gw_over(ex))
        return;
    if (op->rc < 0) {
        stk_gw_answer_err(ex, &op->err);
        return;
    }
    const stk_config_record *rec = stk_gw_view_record(ex->gw->view, ex->caller.tenant, STK_CONF_POOLS);
    int rc = read_stored(rec, &doc, &err);
    if (rc == 0)
        rc = write_answer(ex, (const stk_op_pool_list *)op, &doc, &body, &err);
    stk_gw_etag(rec ? rec->version : 0, etag);
    snprintf(header, sizeof(header), "ETag: %s\r\n", etag);
    if (rc < 0)
        stk_gw_answer_err(ex, &err);
    else
        stk_gw_answer_json(ex, 200, header, &body);
}

void stk_gw_pools_list(stk_gw_exchange *ex)
{
    stk_state_call(ex->gw->spec.state, stk_gw_op(ex, STK_OP_POOL_LIST, on_list));
}

void stk_gw_pool_get(stk_gw_exchange *ex)
{
    stk_gw_pools_list(ex);
}
