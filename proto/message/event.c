#include "proto/message/secret.h"

#define KEPT (STK_FIELD_REQUIRED | STK_FIELD_KEEP)
#define F(m) STK_FIELD_AT(stk_event, m)
static const stk_field fields[] = {
    {"v", STK_F_INT, F(v), KEPT, 1, STK_MESSAGE_VERSION},
    {"kind", STK_F_TEXT, F(kind), KEPT},
    {"run", STK_F_TEXT, F(run), KEPT},
    {"tenant", STK_F_TEXT, F(tenant), KEPT},
    {"agent", STK_F_TEXT, F(agent), KEPT},
    {"assignment", STK_F_TEXT, F(assignment)},
    {"worker", STK_F_TEXT, F(worker)},
    {"sandbox", STK_F_TEXT, F(sandbox)},
    {"attempt", STK_F_INT, F(attempt), KEPT, 0, 1000000},
    {"reason", STK_F_TEXT, F(reason), KEPT},
    {"detail", STK_F_TEXT, F(detail)},
    {"exit_code", STK_F_INT, F(exit_code), KEPT, -64, 255},
    {"signal", STK_F_INT, F(signal), KEPT, 0, 64},
    {"timed_out", STK_F_BOOL, F(timed_out), KEPT},
    {"oom_killed", STK_F_BOOL, F(oom_killed), KEPT},
    {"truncated", STK_F_BOOL, F(truncated), KEPT},
    {"late", STK_F_BOOL, F(late)},
    {"stdout_bytes", STK_F_INT, F(stdout_bytes), KEPT, 0, INT64_MAX},
    {"stderr_bytes", STK_F_INT, F(stderr_bytes), KEPT, 0, INT64_MAX},
    {"files", STK_F_INT, F(files), 0, 0, STK_FILES_MAX},
    {"backend", STK_F_TEXT, F(backend)},
    {"isolation", STK_F_TEXT, F(isolation)},
    {"warm", STK_F_BOOL, F(warm)},
    {"submitted", STK_F_WALL, F(submitted), KEPT},
    {"started", STK_F_WALL, F(started)},
    {"finished", STK_F_WALL, F(finished), KEPT},
    {"duration_ms", STK_F_CUSTOM, F(duration), KEPT, .read = stk__ms_read, .write = stk__ms_write},
    {"egress", STK_F_RAW, F(egress)},
    {"egress_dropped", STK_F_INT, F(egress_dropped), KEPT, 0, INT64_MAX},
    {"egress_allowed", STK_F_INT, F(egress_allowed), KEPT, 0, INT64_MAX},
    {"egress_denied", STK_F_INT, F(egress_denied), KEPT, 0, INT64_MAX},
    {"egress_last_seq", STK_F_INT, F(egress_last_seq), KEPT, 0, INT64_MAX},
    {"labels", STK_F_MAP, F(labels), 0, 0, STK_LABELS_MAX},
    {"traceparent", STK_F_TEXT, F(traceparent)},
    {"secret", STK_F_CUSTOM, F(secret), .read = stk__base64_read, .write = stk__base64_write,
     .done = stk__bytes_free},
    STK_FIELD_END,
};

#define C(m) STK__CHECK_AT(stk_event, m)
static const stk__check checks[] = {
    {C(kind), STK__WORD, "result|finished", STK__FULL},
    {C(run), STK__ID, "run", STK__FULL},
    {C(tenant), STK__TENANT, NULL, STK__FULL},
    {C(agent), STK__AGENT, NULL, STK__FULL},
    {C(assignment), STK__ID, "asg"},
    {C(worker), STK__ID, "wrk"},
    {C(sandbox), STK__ID, "sbx"},
    {C(detail), STK__CLEAN},
    {C(backend), STK__WORD, STK__BACKENDS},
    {C(isolation), STK__WORD, STK__ISOLATIONS},
    {C(egress), STK__ARRAY},
    {C(labels), STK__LABELS},
    {C(traceparent), STK__TRACE},
    {0},
};
static const stk__check result_checks[] = {
    {C(assignment), STK__ID, "asg", STK__GIVEN},
    {C(worker), STK__ID, "wrk", STK__GIVEN},
    {0},
};

static int validate(const void *message, stk_err *err)
{
    const stk_event *ev = message;
    if (stk_reason_parse(ev->reason) == STK_REASON_NONE)
        return stk_err_field(err, STK_E_FIELD, "/reason", "no such reason");
    return strcmp(ev->kind, "result") == 0 ? stk__checks_run(result_checks, ev, err) : 0;
}

static const stk__message message = {.what = "event",
                                     .fields = fields,
                                     .checks = checks,
                                     .size = sizeof(stk_event),
                                     .versioned = true,
                                     .validate = validate};

void stk_event_done(stk_event *ev)
{
    stk_fields_done(fields, ev);
}

int stk_event_encode(const stk_event *ev, stk_buf *out, stk_err *err)
{
    return stk__message_encode(&message, ev, out, err);
}

/* Evidence comes from workers, whose records come from proxies: each is looked at again. */
static int check_records(const stk_event *ev, stk_err *err)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    if (!ev->egress.set)
        return 0;
    int rc = stk_json_parse(stk_bytes_view(&ev->egress), NULL, &doc, err);
    if (rc < 0)
        return rc;
    stk_jv list = stk_json_root(doc);
    if (stk_jv_count(list) > STK_EGRESS_MAX)
        return stk_err_field(err, STK_E_FIELD, "/egress", "at most %d records", STK_EGRESS_MAX);
    for (stk_jv v = stk_jv_first(list); rc == 0 && !stk_jv_is(v, STK_J_NONE); v = stk_jv_next(v)) {
        stk_egress_record rec;
        rc = stk_egress_decode_jv(v, &rec, err);
    }
    if (rc < 0)
        stk_err_prefix(err, "/egress");
    return rc;
}

int stk_event_decode(stk_str json, stk_event *ret, stk_err *err)
{
    int rc = stk__message_decode(&message, json, ret, err);
    if (rc == 0 && (rc = check_records(ret, err)) < 0) {
        stk_event_done(ret);
        memset(ret, 0, sizeof(*ret));
    }
    return rc;
}
