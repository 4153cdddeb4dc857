/* stk.config: versioned documents, per tenant: "agent-sandbox", "egress-policy", "pools", "tokens". The
 * record's key is "<tenant>/<name>". Documents are decoded into structs by the functions here; policy rules
 * over them are in proto/policy. */
#ifndef STK_MESSAGE_CONFIG_H
#define STK_MESSAGE_CONFIG_H

#include "proto/base/crypto.h"
#include "proto/base/field.h"
#include "proto/message/limits.h"

#define STK_CONF_AGENT_SANDBOX "agent-sandbox"
#define STK_CONF_EGRESS_POLICY "egress-policy"
#define STK_CONF_POOLS         "pools"
#define STK_CONF_TOKENS        "tokens"

/* The envelope on the topic. */
typedef struct stk_config_record {
    int64_t v;
    char tenant[STK_TENANT_MAX];
    char name[32];
    int64_t version; /* 1, 2, 3 … */
    stk_wall updated;
    char actor[STK_ACTOR_MAX];
    stk_bytes doc; /* JSON; env values sealed */
} stk_config_record;
void stk_config_record_done(stk_config_record *rec);
int stk_config_record_encode(const stk_config_record *rec, stk_buf *out, stk_err *err) STK_MUST_USE;
int stk_config_record_decode(stk_str json, stk_config_record *ret, stk_err *err) STK_MUST_USE;

typedef struct stk_agent_limits {
    int64_t memory_bytes;    /* default 512 MiB; 16 MiB .. 1 TiB     */
    int64_t cpu_millis;      /* default 1000; 50 .. 256000           */
    int64_t pids;            /* default 128; 8 .. 32768              */
    int64_t open_files;      /* default 1024; 16 .. 1048576          */
    int64_t workspace_bytes; /* default 256 MiB; 1 MiB .. 64 GiB     */
    int64_t tmp_bytes;       /* default 64 MiB; 1 MiB .. 64 GiB      */
    int64_t file_bytes;      /* largest file; default = workspace; 4 KiB .. 64 GiB */
    stk_span timeout;        /* most a run may ask for; default 3600 s; "timeout_seconds" */
} stk_agent_limits;
void stk_agent_limits_default(stk_agent_limits *limits);

typedef struct stk_agent_config {
    char name[STK_AGENT_MAX];
    stk_strv allow;
    char backend[STK_BACKEND_MAX]; /* "" = the document's */
    char image[STK_IMAGE_MAX];
    char template_[64];
    char tls[8]; /* match | require | off; "" = match */
    stk_agent_limits limits;
    stk_map env; /* on the bus and in state: values are base64 of sealed bytes, "sealed:…" */
} stk_agent_config;

typedef struct stk_sandbox_doc {
    bool enabled;
    char backend[STK_BACKEND_MAX]; /* auto | k8s | firecracker | docker | oci; default auto */
    bool require_runtime_class;
    stk_agent_config *agents;
    size_t nagents;
} stk_sandbox_doc; /* agents sorted by name after decode */
void stk_sandbox_doc_done(stk_sandbox_doc *doc);
/* From an API body or a stored document (`stored`: env values must be sealed; else clear or "unchanged"). The
 * reason member of a body is returned separately (may be NULL). Allow entries are checked by proto/policy,
 * not here. */
int stk_sandbox_doc_decode(stk_jv v, bool stored, stk_sandbox_doc *ret, stk_bytes *ret_reason,
                           stk_err *err) STK_MUST_USE;
/* `blank`: env values are written as "***" (GET, audit); else as they are. Members sorted; limits written
 * whole. */
void stk_sandbox_doc_write(stk_jw *w, const stk_sandbox_doc *doc, bool blank);
/* Key of a sandbox template, "tpl-…": two agents of one tenant whose sandboxes could be exchanged have the
 * same key (a hash of tenant, backend, image and limits; egress policy and env are given later, at the take).
 */
void stk_template_key(const char *tenant, const char *backend, const char *image,
                      const stk_agent_limits *limits, char out[STK_ID_SIZE]);
const stk_agent_config *stk_sandbox_doc_agent(const stk_sandbox_doc *doc,
                                              stk_str agent); /* NULL: not listed */

typedef struct stk_org_scope {
    char agent[STK_AGENT_MAX]; /* "" = for all */
    char def[8];               /* allow | deny; "" = inherits */
    stk_strv allow;
    stk_strv deny;
} stk_org_scope;
typedef struct stk_org_doc {
    stk_org_scope all;
    stk_org_scope *agents;
    size_t nagents;
} stk_org_doc;
void stk_org_doc_done(stk_org_doc *doc);
int stk_org_doc_decode(stk_jv v, stk_org_doc *ret, stk_bytes *ret_reason, stk_err *err) STK_MUST_USE;
void stk_org_doc_write(stk_jw *w, const stk_org_doc *doc);

/* Warm pools: {"name":{"agent","target","min","max","ttl_seconds"}}; min <= target <= max. */
typedef struct stk_pool_spec {
    char name[64];
    char agent[STK_AGENT_MAX]; /* whose limits and image it is made for */
    int64_t target, min, max;  /* default 0, 0, = target; <= 1000 */
    stk_span ttl;              /* default 600 s */
} stk_pool_spec;
typedef struct stk_pools_doc {
    stk_pool_spec *v;
    size_t n;
} stk_pools_doc;
/* One pool, as GET and PUT /v1/pools/{name} carry it. Nothing to free. */
int stk_pool_spec_decode(stk_str name, stk_jv v, stk_pool_spec *ret, stk_err *err) STK_MUST_USE;
void stk_pool_spec_write(stk_jw *w, const stk_pool_spec *pool);
void stk_pools_doc_done(stk_pools_doc *doc);
int stk_pools_doc_decode(stk_jv v, stk_pools_doc *ret, stk_err *err) STK_MUST_USE;
void stk_pools_doc_write(stk_jw *w, const stk_pools_doc *doc);

#endif
