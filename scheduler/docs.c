#include "scheduler/impl.h"
#include <stdio.h>

#define BUCKETS 1024

typedef struct tenant_doc {
    struct tenant_doc *next;
    char tenant[STK_TENANT_MAX];
    int64_t version;
    stk_sandbox_doc doc;
} tenant_doc;

struct stk_docs {
    stk_scheduler *s;
    stk_follow *follow;
    void (*ready)(void *scheduler);
    tenant_doc *buckets[BUCKETS];
};

static tenant_doc **place_of(stk_docs *docs, stk_str tenant)
{
    tenant_doc **at = &docs->buckets[(uint32_t)stk_bus_partition_of(tenant, INT32_MAX) % BUCKETS];
    while (*at && !stk_str_eq(tenant, stk_str_of((*at)->tenant)))
        at = &(*at)->next;
    return at;
}

static void forget(tenant_doc **at)
{
    tenant_doc *old = *at;
    *at = old->next;
    stk_sandbox_doc_done(&old->doc);
    free(old);
}

static int decode(const stk_config_record *rec, stk_sandbox_doc *ret, stk_err *err)
{
    stk_json *json STK_AUTO(stk_json_freep) = NULL;
    int rc = stk_json_parse(stk_bytes_view(&rec->doc), NULL, &json, err);
    return rc < 0 ? rc : stk_sandbox_doc_decode(stk_json_root(json), true, ret, NULL, err);
}

/* A run of this tenant that waits and is in memory is looked at now; the others when they are picked. */
static void look_again(uint32_t item, void *arg)
{
    stk_docs *docs = arg;
    stk_scheduler *s = docs->s;
    const stk_job *job = s->index.slots[item].job;
    if (!job || job->plan || !job->req.id[0])
        return;
    int64_t version = 0;
    const stk_sandbox_doc *doc = stk__docs_get(docs, job->req.tenant, &version);
    if (version < job->req.config_version ||
        (doc && doc->enabled && stk_sandbox_doc_agent(doc, stk_str_of(job->req.agent))))
        return;
    stk_fair_unlist(s->fair, item);
    stk__item_go(s, item);
}

static void take(stk_docs *docs, const stk_config_record *rec, bool caught_up)
{
    stk_err err = {.code = STK_OK};
    stk_sandbox_doc doc = {.enabled = false};
    if (decode(rec, &doc, &err) < 0) {
        stk_sandbox_doc_done(&doc);
        stk_log_err(STK_LOG_ERROR, &(stk_who){.tenant = rec->tenant}, &err,
                    "the sandbox document of version %lld can't be read; the former one holds",
                    (long long)rec->version);
        return;
    }
    tenant_doc **at = place_of(docs, stk_str_of(rec->tenant));
    if (*at)
        forget(at);
    tenant_doc *made = stk_xcalloc(1, sizeof(*made));
    snprintf(made->tenant, sizeof(made->tenant), "%s", rec->tenant);
    made->version = rec->version;
    made->doc = doc;
    made->next = *at;
    *at = made;
    if (caught_up) {
        stk_fair_each(docs->s->fair, stk_str_of(rec->tenant), look_again, docs);
        stk__pump(docs->s);
    }
}

static void on_change(stk_str key, stk_str value, bool caught_up, void *arg)
{
    stk_docs *docs = arg;
    const stk_str suffix = STK_STR("/" STK_CONF_AGENT_SANDBOX);
    stk_config_record rec = {.v = 0};
    stk_err err = {.code = STK_OK};
    if (!stk_str_ends(key, suffix))
        return;
    if (!value.p) {
        tenant_doc **at = place_of(docs, stk_str_n(key.p, key.n - suffix.n));
        if (*at)
            forget(at);
        return;
    }
    if (stk_config_record_decode(value, &rec, &err) < 0)
        stk_log_err(STK_LOG_ERROR, NULL, &err, "a record of %s can't be read; the former one holds",
                    STK_TOPIC_CONFIG);
    else
        take(docs, &rec, caught_up);
    stk_config_record_done(&rec);
}

static void on_caught_up(void *arg)
{
    stk_docs *docs = arg;
    docs->ready(docs->s);
}

int stk__docs_new(stk_scheduler *s, void (*ready)(void *scheduler), stk_err *err)
{
    stk_docs *docs = stk_xcalloc(1, sizeof(*docs));
    docs->s = s;
    docs->ready = ready;
    s->docs = docs;
    int rc = stk_follow_new(s->spec.bus, STK_TOPIC_CONFIG, on_change, docs, &docs->follow, err);
    if (rc == 0)
        stk_follow_on_caught_up(docs->follow, on_caught_up, docs);
    return rc;
}

void stk__docs_free(stk_docs *docs)
{
    if (!docs)
        return;
    if (docs->follow)
        stk_follow_free(docs->follow);
    for (size_t i = 0; i < BUCKETS; i++)
        while (docs->buckets[i])
            forget(&docs->buckets[i]);
    free(docs);
}

const stk_sandbox_doc *stk__docs_get(const stk_docs *docs, const char *tenant, int64_t *ret_version)
{
    const tenant_doc *at =
        docs->buckets[(uint32_t)stk_bus_partition_of(stk_str_of(tenant), INT32_MAX) % BUCKETS];
    while (at && strcmp(at->tenant, tenant) != 0)
        at = at->next;
    if (at && ret_version)
        *ret_version = at->version;
    return at ? &at->doc : NULL;
}

bool stk__docs_ready(const stk_docs *docs)
{
    return docs->follow && stk_follow_caught_up(docs->follow);
}
