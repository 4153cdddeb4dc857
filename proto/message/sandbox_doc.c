#include "proto/message/agent_config.h"
#include "proto/message/request.h"

typedef struct reading {
    stk_sandbox_doc doc;
    stk_bytes reason;
    bool stored;
} reading;

static int one_agent(stk_str name, stk_jv v, void *arg, stk_err *err)
{
    reading *in = arg;
    stk_agent_config *agent = &in->doc.agents[in->doc.nagents++];
    stk_str_copy(name, agent->name, sizeof(agent->name));
    return stk__agent_config_read(v, in->stored, agent, err);
}

static int agents_read(stk_jv v, void *at, stk_err *err)
{
    reading *in = STK_CONTAINER(at, reading, doc.agents);
    if (stk_jv_is(v, STK_J_OBJECT))
        in->doc.agents = stk_xcalloc(stk_jv_count(v) + 1, sizeof(*in->doc.agents));
    return stk__named_read(v, stk_agent_ok,
                           "an agent's name is 1 to 128 of A-Z a-z 0-9 . _ - and does not begin with . or -",
                           one_agent, in, err);
}

static void never_written(stk_jw *w, const void *at)
{
    w->bad = true;
}

#define F(m) STK_FIELD_AT(reading, m)
#define STORED_FIELDS                                                                                        \
    {"agents", STK_F_CUSTOM, F(doc.agents), .read = agents_read, .write = never_written},                    \
        {"backend", STK_F_TEXT, F(doc.backend)},                                                             \
        {"enabled", STK_F_BOOL, F(doc.enabled), STK_FIELD_REQUIRED},                                         \
    {                                                                                                        \
        "require_runtime_class", STK_F_BOOL, F(doc.require_runtime_class)                                    \
    }
static const stk_field stored_fields[] = {STORED_FIELDS, STK_FIELD_END};
static const stk_field body_fields[] = {
    STORED_FIELDS, {"reason", STK_F_BYTES, F(reason), 0, 0, 1000}, STK_FIELD_END};

static const stk__check checks[] = {
    {"backend", offsetof(reading, doc.backend), STK__WORD, STK__BACKENDS, STK__FULL},
    {0},
};

void stk_sandbox_doc_done(stk_sandbox_doc *doc)
{
    for (size_t i = 0; i < doc->nagents; i++)
        stk__agent_config_free(&doc->agents[i]);
    free(doc->agents);
    *doc = (stk_sandbox_doc){0};
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const stk_agent_config *)a)->name, ((const stk_agent_config *)b)->name);
}

int stk_sandbox_doc_decode(stk_jv v, bool stored, stk_sandbox_doc *ret, stk_bytes *ret_reason, stk_err *err)
{
    reading in = {.stored = stored, .doc.backend = "auto"};
    memset(ret, 0, sizeof(*ret));
    int rc = stk_fields_decode(stored ? stored_fields : body_fields, v, &in, err);
    if (rc < 0)
        stk__explain(stored_fields, checks, err);
    else
        rc = stk__checks_run(checks, &in, err);
    if (rc == 0) {
        if (in.doc.nagents)
            qsort(in.doc.agents, in.doc.nagents, sizeof(*in.doc.agents), by_name);
        *ret = in.doc;
    } else {
        stk_sandbox_doc_done(&in.doc);
    }
    if (rc == 0 && ret_reason)
        *ret_reason = in.reason;
    else
        stk_bytes_done(&in.reason);
    return rc;
}

static int by_pointed_name(const void *a, const void *b)
{
    return by_name(*(const stk_agent_config *const *)a, *(const stk_agent_config *const *)b);
}

void stk_sandbox_doc_write(stk_jw *w, const stk_sandbox_doc *doc, bool blank)
{
    const stk_agent_config **sorted STK_AUTO(stk_freep) = stk_xcalloc(doc->nagents + 1, sizeof(*sorted));
    for (size_t i = 0; i < doc->nagents; i++)
        sorted[i] = &doc->agents[i];
    qsort(sorted, doc->nagents, sizeof(*sorted), by_pointed_name);
    stk_jw_object(w);
    stk_jw_key(w, "agents");
    stk_jw_object(w);
    for (size_t i = 0; i < doc->nagents; i++) {
        stk_jw_key(w, sorted[i]->name);
        stk__agent_config_write(w, sorted[i], blank);
    }
    stk_jw_close(w, '}');
    stk_jw_ktext(w, "backend", doc->backend[0] ? doc->backend : "auto");
    stk_jw_kbool(w, "enabled", doc->enabled);
    stk_jw_kbool(w, "require_runtime_class", doc->require_runtime_class);
    stk_jw_close(w, '}');
}

const stk_agent_config *stk_sandbox_doc_agent(const stk_sandbox_doc *doc, stk_str agent)
{
    for (size_t i = 0; i < doc->nagents; i++)
        if (stk_str_eq(stk_str_of(doc->agents[i].name), agent))
            return &doc->agents[i];
    return NULL;
}
