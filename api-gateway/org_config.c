/* GET and PUT /api/admin/platform/egress-policy: the organisation's policy. */
#include "api-gateway/change.h"
#include "proto/message/audit.h"
#include <stdio.h>

#define DOC_MAX ((size_t)4 << 20)

typedef struct put {
    stk_org_doc asked;
    stk_bytes reason;
} put;

static void put_free(void *arg)
{
    put *p = arg;
    stk_org_doc_done(&p->asked);
    stk_bytes_done(&p->reason);
    free(p);
}

static int write_doc(const stk_org_doc *doc, stk_buf *out, stk_err *err)
{
    stk_jw w;
    stk_jw_init(&w, out);
    stk_org_doc_write(&w, doc);
    int rc = stk_jw_end(&w, err);
    return rc == -STK_E_LIMIT ? stk_err_set(err, STK_E_TOO_LARGE, "the document is too large") : rc;
}

static int read_stored(const stk_config_record *rec, stk_org_doc *ret, stk_err *err)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    int rc = stk_json_parse(stk_bytes_view(&rec->doc), NULL, &doc, err);
    if (rc == 0)
        rc = stk_org_doc_decode(stk_json_root(doc), ret, NULL, err);
    if (rc < 0 && err)
        err->code = STK_E_CORRUPT;
    return rc < 0 ? stk_err_wrap(err, "version %lld of %s", (long long)rec->version, rec->name) : 0;
}

static int build(stk_gw_change *change, const stk_config_record *rec, stk_err *err)
{
    const put *p = change->arg;
    stk_org_doc before STK_AUTO(stk_org_doc_done) = {0};
    int rc = rec ? read_stored(rec, &before, err) : 0;
    if (rc == 0)
        rc = write_doc(&p->asked, &change->stored, err);
    if (rc == 0)
        rc = write_doc(&p->asked, &change->after, err);
    if (rc == 0 && rec)
        rc = write_doc(&before, &change->before, err);
    if (rc == 0)
        stk_weaken_org(rec ? &before : NULL, &p->asked, &change->weak);
    return rc;
}

static const stk_gw_change_kind kind = {STK_CONF_EGRESS_POLICY, STK_AUDIT_POLICY_UPDATE, build, NULL};

void stk_gw_org_put(stk_gw_exchange *ex)
{
    stk_err err;
    put *p = ex->work = stk_xcalloc(1, sizeof(*p));
    ex->work_free = put_free;
    int rc = stk_org_doc_decode(stk_json_root(ex->doc), &p->asked, &p->reason, &err);
    if (rc == 0)
        rc = stk_org_doc_check(&p->asked, &err);
    if (rc < 0)
        stk_gw_answer_err(ex, &err);
    else
        stk_gw_change_start(ex, &kind, p, stk_bytes_view(&p->reason));
}

void stk_gw_org_get(stk_gw_exchange *ex)
{
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(DOC_MAX);
    stk_org_doc doc STK_AUTO(stk_org_doc_done) = {0};
    const stk_config_record *rec =
        stk_gw_view_record(ex->gw->view, ex->caller.tenant, STK_CONF_EGRESS_POLICY);
    char etag[32], header[64];
    stk_err err = {0};
    int rc = stk_gw_view_ready(ex->gw->view)
                 ? 0
                 : stk_err_set(&err, STK_E_UNAVAILABLE, "the configuration is still being read");
    if (rc == 0 && rec)
        rc = read_stored(rec, &doc, &err);
    if (rc == 0)
        rc = write_doc(&doc, &body, &err);
    stk_gw_etag(rec ? rec->version : 0, etag);
    snprintf(header, sizeof(header), "ETag: %s\r\n", etag);
    if (rc < 0)
        stk_gw_answer_err(ex, &err);
    else
        stk_gw_answer_json(ex, 200, header, &body);
}
