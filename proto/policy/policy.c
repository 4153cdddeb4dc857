#include "proto/policy/parts.h"
#include <stdio.h>

typedef struct org_fields {
    char def[8];
    stk_strv allow, deny;
} org_fields;
static const stk_field org_table[] = {
    {.name = "default", .kind = STK_F_TEXT, STK_FIELD_AT(org_fields, def)},
    {.name = "allow", .kind = STK_F_STRV, STK_FIELD_AT(org_fields, allow), .max = STK_ENTRIES_MAX},
    {.name = "deny", .kind = STK_F_STRV, STK_FIELD_AT(org_fields, deny), .max = STK_ENTRIES_MAX},
    STK_FIELD_END,
};

#define COUNT_MAX INT64_C(1000000000)
#define BYTES_MAX (INT64_C(1) << 50)
#define SPAN_MIN  INT64_C(1000000)
#define SPAN_MAX  (INT64_C(86400) * 1000000000)
static const stk_field limit_table[] = {
    {.name = "tunnels", .kind = STK_F_INT, STK_FIELD_AT(stk_policy_limits, tunnels), .min = 1, .max = 65536},
    {.name = "bytes", .kind = STK_F_INT, STK_FIELD_AT(stk_policy_limits, bytes), .max = BYTES_MAX},
    {.name = "bytes_per_second",
     .kind = STK_F_INT,
     STK_FIELD_AT(stk_policy_limits, bytes_per_second),
     .max = BYTES_MAX},
    {.name = "dns_queries",
     .kind = STK_F_INT,
     STK_FIELD_AT(stk_policy_limits, dns_queries),
     .max = COUNT_MAX},
    {.name = "idle_seconds",
     .kind = STK_F_SECONDS,
     STK_FIELD_AT(stk_policy_limits, idle),
     .min = SPAN_MIN,
     .max = SPAN_MAX},
    {.name = "head_seconds",
     .kind = STK_F_SECONDS,
     STK_FIELD_AT(stk_policy_limits, head),
     .min = SPAN_MIN,
     .max = SPAN_MAX},
    {.name = "connect_seconds",
     .kind = STK_F_SECONDS,
     STK_FIELD_AT(stk_policy_limits, connect),
     .min = SPAN_MIN,
     .max = SPAN_MAX},
    STK_FIELD_END,
};

typedef struct internal_fields {
    char cidr[64];
    stk_strv hosts;
    stk_bytes ports;
} internal_fields;
static const stk_field internal_table[] = {
    {.name = "cidr", .kind = STK_F_TEXT, STK_FIELD_AT(internal_fields, cidr), .flags = STK_FIELD_REQUIRED},
    {.name = "hosts",
     .kind = STK_F_STRV,
     STK_FIELD_AT(internal_fields, hosts),
     .flags = STK_FIELD_REQUIRED,
     .max = 1000},
    {.name = "ports", .kind = STK_F_RAW, STK_FIELD_AT(internal_fields, ports)},
    STK_FIELD_END,
};

static int read_org(stk_jv v, void *at, stk_err *err);
static int read_internal(stk_jv v, void *at, stk_err *err);
static int read_limits(stk_jv v, void *at, stk_err *err);

typedef struct fields {
    int64_t version;
    stk_strv allow;
    org_fields org;
    char tls[8];
    stk_policy *policy; /* where the custom readers write */
} fields;

/* Custom readers get the place of `policy`, and so the policy itself. */
static const stk_field table[] = {
    {.name = "version", .kind = STK_F_INT, STK_FIELD_AT(fields, version), .max = INT64_MAX},
    {.name = "allow", .kind = STK_F_STRV, STK_FIELD_AT(fields, allow), .max = STK_ENTRIES_MAX},
    {.name = "organisation", .kind = STK_F_CUSTOM, STK_FIELD_AT(fields, org), .read = read_org},
    {.name = "internal", .kind = STK_F_CUSTOM, STK_FIELD_AT(fields, policy), .read = read_internal},
    {.name = "tls", .kind = STK_F_TEXT, STK_FIELD_AT(fields, tls)},
    {.name = "limits", .kind = STK_F_CUSTOM, STK_FIELD_AT(fields, policy), .read = read_limits},
    STK_FIELD_END,
};

static int read_org(stk_jv v, void *at, stk_err *err)
{
    return stk_fields_decode(org_table, v, at, err);
}

static int read_limits(stk_jv v, void *at, stk_err *err)
{
    stk_policy *policy = *(stk_policy **)at;
    return stk_fields_decode(limit_table, v, &policy->limits, err);
}

static int prefix_index(stk_err *err, const char *name, size_t i)
{
    char at[48];
    snprintf(at, sizeof(at), "%s/%zu", name, i);
    return stk_err_prefix(err, at);
}

static int read_ports(stk_jv ports, stk_internal *in, stk_err *err)
{
    if (!stk_jv_is(ports, STK_J_NONE) && !stk_jv_is(ports, STK_J_ARRAY))
        return stk_err_field(err, STK_E_FIELD, "/ports", "must be an array of port numbers");
    for (stk_jv p = stk_jv_first(ports); p.doc; p = stk_jv_next(p)) {
        int64_t port;
        if (in->nports == STK_INTERNAL_PORTS_MAX)
            return stk_err_field(err, STK_E_FIELD, "/ports", "more than %d ports", STK_INTERNAL_PORTS_MAX);
        if (!stk_jv_int(p, &port) || port < 1 || port > 65535) {
            stk_err_set(err, STK_E_FIELD, "a port is 1 to 65535");
            return prefix_index(err, "/ports", in->nports);
        }
        in->ports[in->nports++] = (uint16_t)port;
    }
    return 0;
}

static int read_one_internal(stk_jv v, stk_internal *in, stk_err *err)
{
    internal_fields got = {.cidr = ""};
    int rc = stk_fields_decode(internal_table, v, &got, err);
    if (rc == 0 && (rc = stk_cidr_parse(stk_str_of(got.cidr), &in->cidr, err)) < 0)
        stk_err_prefix(err, "/cidr");
    if (rc == 0 && !got.hosts.n)
        rc = stk_err_field(err, STK_E_FIELD, "/hosts",
                           "name at least one host: an internal network is opened for named hosts only");
    if (rc == 0 && (rc = stk_entries_new(&got.hosts, &in->hosts, err)) < 0)
        stk_err_prefix(err, "/hosts");
    if (rc == 0)
        rc = read_ports(stk_jv_get(v, "ports"), in, err);
    stk_fields_done(internal_table, &got);
    return rc;
}

static int read_internal(stk_jv v, void *at, stk_err *err)
{
    stk_policy *policy = *(stk_policy **)at;
    if (!stk_jv_is(v, STK_J_ARRAY))
        return stk_err_set(err, STK_E_FIELD, "must be an array of {cidr, hosts, ports}");
    size_t n = stk_jv_count(v);
    if (n > STK_INTERNAL_MAX)
        return stk_err_set(err, STK_E_FIELD, "more than %d internal networks", STK_INTERNAL_MAX);
    policy->internal = stk_xcalloc(n, sizeof(*policy->internal));
    for (stk_jv one = stk_jv_first(v); one.doc; one = stk_jv_next(one)) {
        int rc = read_one_internal(one, &policy->internal[policy->ninternal++], err);
        if (rc < 0) {
            prefix_index(err, "", policy->ninternal - 1);
            return rc;
        }
    }
    return 0;
}

static int compile(const stk_strv *texts, const char *pointer, stk_entries **ret, stk_err *err)
{
    int rc = stk_entries_new(texts, ret, err);
    if (rc < 0)
        stk_err_prefix(err, pointer);
    return rc;
}

static int assemble(stk_policy *policy, const fields *got, stk_err *err)
{
    const org_fields *org = &got->org;
    policy->version = got->version;
    if (got->tls[0] && stk_tls_mode_parse(got->tls, &policy->tls) < 0)
        return stk_err_field(err, STK_E_FIELD, "/tls", "must be match, require or off");
    if (org->def[0] && strcmp(org->def, "allow") != 0 && strcmp(org->def, "deny") != 0)
        return stk_err_field(err, STK_E_FIELD, "/organisation/default", "must be allow or deny");
    policy->org_deny_default = org->def[0] ? org->def[0] == 'd' : org->allow.n > 0;
    if (compile(&got->allow, "/allow", &policy->allow, err) < 0 ||
        compile(&org->allow, "/organisation/allow", &policy->org_allow, err) < 0 ||
        compile(&org->deny, "/organisation/deny", &policy->org_deny, err) < 0)
        return -STK_E_FIELD;
    return 0;
}

int stk_policy_parse(stk_jv doc, stk_policy **ret, stk_err *err)
{
    stk_policy *policy STK_AUTO(stk_policy_freep) = stk_xcalloc(1, sizeof(*policy));
    policy->limits = (stk_policy_limits){.tunnels = 256,
                                         .dns_queries = 10000,
                                         .idle = stk_sec(300),
                                         .head = stk_sec(10),
                                         .connect = stk_sec(10)};
    fields got = {.policy = policy};
    stk_err why = {.code = STK_OK};
    int rc = stk_fields_decode(table, doc, &got, &why);
    if (rc == 0)
        rc = assemble(policy, &got, &why);
    stk_strv_done(&got.allow);
    stk_fields_done(org_table, &got.org);
    if (rc < 0)
        return stk_err_field(err, STK_E_POLICY, why.pointer, "%s", why.detail);
    *ret = STK_TAKE(policy);
    return 0;
}

int stk_policy_parse_text(stk_str json, stk_policy **ret, stk_err *err)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    stk_err why = {.code = STK_OK};
    stk_json_limits limits = {.depth = 16, .values = 4 * STK_ENTRIES_MAX};
    if (stk_json_parse(json, &limits, &doc, &why) < 0)
        return stk_err_set(err, STK_E_POLICY, "%s", why.detail);
    if (!stk_jv_is(stk_json_root(doc), STK_J_OBJECT))
        return stk_err_set(err, STK_E_POLICY, "the policy must be a JSON object");
    return stk_policy_parse(stk_json_root(doc), ret, err);
}

void stk_policy_free(stk_policy *policy)
{
    if (!policy)
        return;
    stk_entries_free(policy->allow);
    stk_entries_free(policy->org_allow);
    stk_entries_free(policy->org_deny);
    for (size_t i = 0; i < policy->ninternal; i++)
        stk_entries_free(policy->internal[i].hosts);
    free(policy->internal);
    free(policy);
}
