#include "tests/unit/message/golden.h"
#include "proto/message/assignment.h"
#include "proto/message/audit.h"
#include "proto/message/config.h"
#include "proto/message/event.h"
#include "proto/message/link.h"

/* decode, encode, done of a message with the same three shapes of functions. */
#define THROUGH(name, T, decode, encode, done)                                                               \
    static int name(stk_str json, stk_buf *out, stk_err *err)                                                \
    {                                                                                                        \
        T *m = stk_xcalloc(1, sizeof(*m));                                                                   \
        int rc = decode(json, m, err);                                                                       \
        if (rc == 0) {                                                                                       \
            rc = encode(m, out, err);                                                                        \
            done(m);                                                                                         \
        }                                                                                                    \
        free(m);                                                                                             \
        return rc;                                                                                           \
    }

static void nothing(void *m)
{
}

static int hello_encode(const stk_hello *hello, stk_buf *out, stk_err *err)
{
    int rc = stk_hello_encode(hello, out);
    out->n -= rc == 0;
    return rc;
}

static int control_encode(const stk_control *ctl, stk_buf *out, stk_err *err)
{
    int rc = stk_control_encode(ctl, out, err);
    out->n -= rc == 0;
    return rc;
}

THROUGH(request, stk_request, stk_request_decode, stk_request_encode, stk_request_done)
THROUGH(assignment, stk_assignment, stk_assignment_decode, stk_assignment_encode, stk_assignment_done)
THROUGH(event, stk_event, stk_event_decode, stk_event_encode, stk_event_done)
THROUGH(audit, stk_audit_row, stk_audit_decode, stk_audit_encode, stk_audit_row_done)
THROUGH(record, stk_config_record, stk_config_record_decode, stk_config_record_encode, stk_config_record_done)
THROUGH(egress, stk_egress_record, stk_egress_decode, stk_egress_encode, nothing)
THROUGH(control, stk_control, stk_control_decode, control_encode, stk_control_done)
THROUGH(hello, stk_hello, stk_hello_decode, hello_encode, nothing)

/* The same for what is decoded from a value and written by a writer. */
#define WRITTEN(name, T, DECODE, WRITE, done)                                                                \
    static int name(stk_str json, stk_buf *out, stk_err *err)                                                \
    {                                                                                                        \
        stk_json *doc STK_AUTO(stk_json_freep) = NULL;                                                       \
        T m = {0};                                                                                           \
        int rc = stk_json_parse(json, NULL, &doc, err);                                                      \
        if (rc < 0)                                                                                          \
            return rc;                                                                                       \
        stk_jv v = stk_json_root(doc);                                                                       \
        if ((rc = DECODE) < 0)                                                                               \
            return rc;                                                                                       \
        stk_jw w;                                                                                            \
        stk_jw_init(&w, out);                                                                                \
        WRITE;                                                                                               \
        done(&m);                                                                                            \
        return stk_jw_end(&w, err);                                                                          \
    }

WRITTEN(exit_line, stk_exec_end, stk_exec_end_decode(v, &m, err), stk_exec_end_write(&w, &m), nothing)
WRITTEN(sandbox, stk_sandbox_doc, stk_sandbox_doc_decode(v, true, &m, NULL, err),
        stk_sandbox_doc_write(&w, &m, false), stk_sandbox_doc_done)
WRITTEN(org, stk_org_doc, stk_org_doc_decode(v, &m, NULL, err), stk_org_doc_write(&w, &m), stk_org_doc_done)
WRITTEN(pools, stk_pools_doc, stk_pools_doc_decode(v, &m, err), stk_pools_doc_write(&w, &m),
        stk_pools_doc_done)

static const char request_optional[] = "backend|image|deadline|labels|traceparent";
static const char plan_optional[] = "backend|image|deadline|labels|traceparent|timeout_seconds";
static const char assign_optional[] = "sandbox";
static const char lane_optional[] = "assignment|worker|incarnation|sandbox|backend";
static const char egress_optional[] = "count|first|open_seq";
static const char result_optional[] =
    "sandbox|detail|late|files|backend|isolation|warm|started|egress|labels|traceparent|secret";
static const char finished_optional[] =
    "assignment|worker|sandbox|detail|late|files|backend|isolation|warm|started|egress|labels|traceparent|"
    "secret";
static const char audit_optional[] =
    "agent|run|assignment|worker|sandbox|backend|isolation|details|before|after|weakening";
static const char audit_any[] = "before|after";

const golden goldens[] = {
    {"request", request, request_optional, "", true, false},
    {"request-plan", request, plan_optional, "", true, false},
    {"request-extreme", request, request_optional, "", true, false},
    {"assignment", assignment, assign_optional, "", true, false},
    {"assignment-extreme", assignment, assign_optional, "", true, false},
    {"assignment-cancel", assignment, lane_optional, "", true, false},
    {"assignment-plan", assignment, lane_optional, "", true, false},
    {"event-result", event, result_optional, "", true, false},
    {"event-finished", event, finished_optional, "", true, false},
    {"event-extreme", event, finished_optional, "", true, false},
    {"audit-launch", audit, audit_optional, audit_any, true, false},
    {"audit-config", audit, audit_optional, audit_any, true, false},
    {"audit-extreme", audit, audit_optional, audit_any, true, false},
    {"config-record", record, "", "", true, false},
    {"config-record-extreme", record, "", "", true, false},
    {"egress-record", egress, egress_optional, "", false, false},
    {"egress-record-deny", egress, egress_optional, "", false, false},
    {"egress-record-close", egress, "count|first", "", false, false},
    {"egress-record-extreme", egress, "first|open_seq", "", false, false},
    {"control-policy", control, "run", "", false, false},
    {"control-ack", control, "", "", false, false},
    {"control-drain", control, "", "", false, false},
    {"control-stop", control, "", "", false, false},
    {"control-ready", control, "detail", "", false, false},
    {"control-policy_ok", control, "", "", false, false},
    {"control-policy_bad", control, "version", "", false, false},
    {"control-record", control, "", "", false, false},
    {"control-drained", control, "", "", false, false},
    {"hello", hello, "", "", false, false},
    {"exit", exit_line, "detail", "", false, false},
    {"exit-extreme", exit_line, "detail", "", false, false},
    {"agent-sandbox", sandbox, "agents|backend|require_runtime_class", "", false, false},
    {"agent-sandbox-extreme", sandbox, "agents|backend|require_runtime_class", "", false, false},
    {"egress-policy", org, "agents|allow|default|deny", "", false, false},
    {"egress-policy-extreme", org, "agents|allow|default|deny", "", false, false},
    {"pools", pools, "python", "", false, true},
    {"pools-extreme", pools, "0|a-------------------------------------------------------------9", "", false,
     true},
};
const size_t golden_count = STK_COUNT(goldens);
