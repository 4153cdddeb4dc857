/* GET and PUT /api/admin/platform/agent-sandbox. */
#include "api-gateway/change.h"
#include "proto/message/audit.h"
#include "proto/message/env_seal.h"
#include <stdio.h>

#define DOC_MAX ((size_t)4 << 20)

typedef struct put {
    stk_sandbox_doc asked; /* as the client wrote it */
    stk_bytes reason;
} put;

static void put_free(void *arg)
{
    put *p = arg;
    stk_sandbox_doc_done(&p->asked);
    stk_bytes_done(&p->reason);
    free(p);
}

static const stk_str keep = {"unchanged", 9};

static int env_pointer(const stk_agent_config *agent, stk_str name, char out[192])
{
    return snprintf(out, 192, "/agents/%s/env/%.*s", agent->name, (int)stk_min(name.n, 40), name.p);
}

/* Seals one value, or keeps the sealed one that is there. */
static int seal_value(const stk_gw_exchange *ex, const stk_agent_config *agent, const stk_agent_config *old,
                      stk_pair *pair, stk_err *err)
{
    stk_str name = stk_bytes_view(&pair->key);
    stk_bytes sealed = {0};
    char pointer[192];
    if (stk_str_eq(stk_bytes_view(&pair->value), keep)) {
        const stk_bytes *kept = old ? stk_map_get(&old->env, name) : NULL;
        env_pointer(agent, name, pointer);
        if (!kept)
            return stk_err_field(err, STK_E_FIELD, pointer,
                                 "\"unchanged\" keeps a value, but this variable has none yet");
        stk_bytes_set(&pair->value, stk_bytes_view(kept));
        return 0;
    }
    int rc = stk_env_seal(ex->gw->spec.ring, ex->caller.tenant, agent->name, name,
                          stk_bytes_view(&pair->value), &sealed, err);
    if (rc < 0)
        return rc;
    stk_bytes_done(&pair->value);
    pair->value = sealed;
    return 0;
}

static int seal_env(const stk_gw_exchange *ex, stk_sandbox_doc *next, const stk_sandbox_doc *before,
                    stk_err *err)
{
    for (size_t i = 0; i < next->nagents; i++) {
        stk_agent_config *agent = &next->agents[i];
        const stk_agent_config *old = before ? stk_sandbox_doc_agent(before, stk_str_of(agent->name)) : NULL;
        for (size_t k = 0; k < agent->env.n; k++) {
            int rc = seal_value(ex, agent, old, &agent->env.v[k], err);
            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

static int write_doc(const stk_sandbox_doc *doc, bool blank, stk_buf *out, stk_err *err)
{
    stk_jw w;
    stk_jw_init(&w, out);
    stk_sandbox_doc_write(&w, doc, blank);
    int rc = stk_jw_end(&w, err);
    return rc == -STK_E_LIMIT ? stk_err_set(err, STK_E_TOO_LARGE, "the document is too large") : rc;
}

static int read_stored(const stk_config_record *rec, stk_sandbox_doc *ret, stk_err *err)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    int rc = stk_json_parse(stk_bytes_view(&rec->doc), NULL, &doc, err);
    if (rc == 0)
        rc = stk_sandbox_doc_decode(stk_json_root(doc), true, ret, NULL, err);
    if (rc < 0 && err)
        err->code = STK_E_CORRUPT;
    return rc < 0 ? stk_err_wrap(err, "version %lld of %s", (long long)rec->version, rec->name) : 0;
}

/* Built anew from the body each time: what "unchanged" means depends on the version that is replaced. */
static int build(stk_gw_change *change, const stk_config_record *rec, stk_err *err)
{
    stk_sandbox_doc before STK_AUTO(stk_sandbox_doc_done) = {0};
    stk_sandbox_doc next STK_AUTO(stk_sandbox_doc_done) = {0};
    int rc = rec ? read_stored(rec, &before, err) : 0;
    if (rc == 0)
        rc = stk_sandbox_doc_decode(stk_json_root(change->ex->doc), false, &next, NULL, err);
    if (rc == 0)
        rc = seal_env(change->ex, &next, rec ? &before : NULL, err);
    if (rc == 0)
        rc = write_doc(&next, false, &change->stored, err);
    if (rc == 0)
        rc = write_doc(&next, true, &change->after, err);
    if (rc == 0 && rec)
        rc = write_doc(&before, true, &change->before, err);
    if (rc == 0)
        stk_weaken_sandbox(rec ? &before : NULL, &next, &change->weak);
    return rc;
}

static const stk_gw_change_kind kind = {STK_CONF_AGENT_SANDBOX, STK_AUDIT_CONFIG_UPDATE, build, NULL};

void stk_gw_sandbox_put(stk_gw_exchange *ex)
{
    stk_err err;
    put *p = ex->work = stk_xcalloc(1, sizeof(*p));
    ex->work_free = put_free;
    int rc = stk_sandbox_doc_decode(stk_json_root(ex->doc), false, &p->asked, &p->reason, &err);
    if (rc == 0)
        rc = stk_sandbox_doc_check(&p->asked, &err);
    if (rc < 0)
        stk_gw_answer_err(ex, &err);
    else
        stk_gw_change_start(ex, &kind, p, stk_bytes_view(&p->reason));
}

void stk_gw_sandbox_get(stk_gw_exchange *ex)
{
    static const stk_sandbox_doc off = {.backend = "auto"};
    stk_buf body STK_AUTO(stk_buf_done) = STK_BUF(DOC_MAX);
    const stk_gw_view *view = ex->gw->view;
    int64_t version = stk_gw_view_version(view, ex->caller.tenant, STK_CONF_AGENT_SANDBOX);
    const stk_sandbox_doc *doc = stk_gw_view_sandbox(view, ex->caller.tenant);
    char etag[32], header[64];
    stk_err err = {0};
    int rc = 0;
    if (!stk_gw_view_ready(view))
        rc = stk_err_set(&err, STK_E_UNAVAILABLE, "the configuration is still being read");
    else if (!doc && version)
        rc = stk_err_set(&err, STK_E_CORRUPT, "version %lld of this document can't be read",
                         (long long)version);
    else
        rc = write_doc(doc ? doc : &off, true, &body, &err);
    stk_gw_etag(version, etag);
    snprintf(header, sizeof(header), "ETag: %s\r\n", etag);
    if (rc < 0)
        stk_gw_answer_err(ex, &err);
    else
        stk_gw_answer_json(ex, 200, header, &body);
}
