#include "proto/message/agent_config.h"
#include "proto/message/request.h"

#define ENTRIES_MAX 10000

typedef struct reading {
    stk_org_doc doc;
    stk_bytes reason;
} reading;

#define S(m) STK_FIELD_AT(stk_org_scope, m)
static const stk_field scope_fields[] = {
    {"allow", STK_F_STRV, S(allow), 0, 0, ENTRIES_MAX},
    {"default", STK_F_TEXT, S(def)},
    {"deny", STK_F_STRV, S(deny), 0, 0, ENTRIES_MAX},
    STK_FIELD_END,
};
static const stk__check scope_checks[] = {
    {"default", offsetof(stk_org_scope, def), STK__WORD, "allow|deny", STK__MAY}, {0}};

static int one_scope(stk_str name, stk_jv v, void *arg, stk_err *err)
{
    reading *in = arg;
    stk_org_scope *scope = &in->doc.agents[in->doc.nagents++];
    stk_str_copy(name, scope->agent, sizeof(scope->agent));
    int rc = stk_fields_decode(scope_fields, v, scope, err);
    if (rc == 0)
        return stk__checks_run(scope_checks, scope, err);
    stk__explain(scope_fields, scope_checks, err);
    return rc;
}

static int agents_read(stk_jv v, void *at, stk_err *err)
{
    reading *in = STK_CONTAINER(at, reading, doc.agents);
    if (stk_jv_is(v, STK_J_OBJECT))
        in->doc.agents = stk_xcalloc(stk_jv_count(v) + 1, sizeof(*in->doc.agents));
    return stk__named_read(v, stk_agent_ok,
                           "an agent's name is 1 to 128 of A-Z a-z 0-9 . _ - and does not begin with . or -",
                           one_scope, in, err);
}

static void never_written(stk_jw *w, const void *at)
{
    w->bad = true;
}

#define F(m) STK_FIELD_AT(reading, m)
static const stk_field fields[] = {
    {"agents", STK_F_CUSTOM, F(doc.agents), .read = agents_read, .write = never_written},
    {"allow", STK_F_STRV, F(doc.all.allow), 0, 0, ENTRIES_MAX},
    {"default", STK_F_TEXT, F(doc.all.def)},
    {"deny", STK_F_STRV, F(doc.all.deny), 0, 0, ENTRIES_MAX},
    {"reason", STK_F_BYTES, F(reason), 0, 0, 1000},
    STK_FIELD_END,
};

void stk_org_doc_done(stk_org_doc *doc)
{
    stk_fields_done(scope_fields, &doc->all);
    for (size_t i = 0; i < doc->nagents; i++)
        stk_fields_done(scope_fields, &doc->agents[i]);
    free(doc->agents);
    *doc = (stk_org_doc){0};
}

static int by_agent(const void *a, const void *b)
{
    return strcmp(((const stk_org_scope *)a)->agent, ((const stk_org_scope *)b)->agent);
}

int stk_org_doc_decode(stk_jv v, stk_org_doc *ret, stk_bytes *ret_reason, stk_err *err)
{
    reading in = {0};
    memset(ret, 0, sizeof(*ret));
    int rc = stk_fields_decode(fields, v, &in, err);
    if (rc < 0)
        stk__explain(fields, scope_checks, err);
    else
        rc = stk__checks_run(scope_checks, &in.doc.all, err);
    if (rc == 0) {
        if (in.doc.nagents)
            qsort(in.doc.agents, in.doc.nagents, sizeof(*in.doc.agents), by_agent);
        *ret = in.doc;
    } else {
        stk_org_doc_done(&in.doc);
    }
    if (rc == 0 && ret_reason)
        *ret_reason = in.reason;
    else
        stk_bytes_done(&in.reason);
    return rc;
}

void stk_org_doc_write(stk_jw *w, const stk_org_doc *doc)
{
    stk_jw_object(w);
    stk_jw_key(w, "agents");
    stk_jw_object(w);
    for (size_t i = 0; i < doc->nagents; i++) {
        stk_jw_key(w, doc->agents[i].agent);
        stk_fields_encode(scope_fields, &doc->agents[i], w);
    }
    stk_jw_close(w, '}');
    stk_fields_encode_members(scope_fields, &doc->all, w);
    stk_jw_close(w, '}');
}
