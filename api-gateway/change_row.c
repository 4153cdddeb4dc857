/* Audit rows of configuration changes, and the refusal of a loosening. */
#include "api-gateway/change.h"
#include "proto/base/log.h"
#include "proto/message/audit.h"
#include <stdio.h>

#define DOC_MAX ((size_t)4 << 20)

static int write_details(const stk_gw_change *change, int64_t version, stk_bytes *ret)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(16384);
    stk_jw w;
    stk_jw_init(&w, &text);
    stk_jw_object(&w);
    stk_jw_ktext(&w, "document", change->kind->name);
    stk_jw_kint(&w, "version", version);
    stk_jw_kstr(&w, "reason", change->reason);
    stk_jw_ktext(&w, "request", change->ex->request_id);
    stk_jw_close(&w, '}');
    int rc = stk_jw_end(&w, NULL);
    stk_bytes_set(ret, stk_buf_view(&text));
    return rc;
}

int stk_gw_change_row(const stk_gw_change *change, const char *action, int64_t version, stk_buf *out,
                      stk_err *err)
{
    char subject[STK_TENANT_MAX + 32];
    stk_buf weak STK_AUTO(stk_buf_done) = STK_BUF(DOC_MAX);
    stk_audit_row row STK_AUTO(stk_audit_row_done) = {.v = STK_MESSAGE_VERSION, .time = stk_wall_now()};
    const stk_gw_exchange *ex = change->ex;
    stk_jw w;
    bool refused = strcmp(action, STK_AUDIT_REFUSAL) == 0;
    snprintf(subject, sizeof(subject), "%s/%s", ex->caller.tenant, change->kind->name);
    /* A refusal is an event of its own; a version exists once. */
    stk_audit_id(row.time, subject, refused ? ex->request_id : "", action, (uint64_t)version, row.id);
    snprintf(row.action, sizeof(row.action), "%s", action);
    memcpy(row.actor, ex->caller.actor, sizeof(row.actor));
    memcpy(row.tenant, ex->caller.tenant, sizeof(row.tenant));
    stk_jw_init(&w, &weak);
    stk_weakenings_write(&w, &change->weak);
    if (write_details(change, version, &row.details) < 0 || stk_jw_end(&w, err) < 0)
        return stk_err_set(err, STK_E_TOO_LARGE, "the change is too large for an audit row");
    stk_bytes_set(&row.weakening, stk_buf_view(&weak));
    if (change->before.n)
        stk_bytes_set(&row.before, stk_buf_view(&change->before));
    if (change->after.n)
        stk_bytes_set(&row.after, stk_buf_view(&change->after));
    int rc = stk_audit_encode(&row, out, err);
    return rc == -STK_E_LIMIT
               ? stk_err_set(err, STK_E_TOO_LARGE, "the document is too large for an audit row")
               : rc;
}

/* --- a loosening without the scope --- */

static void forbid(stk_gw_change *change)
{
    stk_buf weak STK_AUTO(stk_buf_done) = STK_BUF(DOC_MAX);
    stk_err err;
    stk_jw w;
    stk_jw_init(&w, &weak);
    stk_weakenings_write(&w, &change->weak);
    stk_err_set(&err, STK_E_FORBIDDEN,
                "this change loosens %zu thing%s and the token lacks the scope governance.weaken: %s: %s",
                change->weak.n, change->weak.n == 1 ? "" : "s", change->weak.v[0].pointer,
                change->weak.v[0].what);
    stk_gw_answer_problem(change->ex, &err, "", &(stk_gw_more){.weakening = stk_buf_view(&weak)});
    stk_gw_change_end(change);
}

static void on_refusal_out(stk_publish_outcome outcome, int32_t partition, int64_t offset, const stk_err *err,
                           void *arg)
{
    stk_gw_change *change = arg;
    stk_err why;
    if (stk_gw_over(change->ex)) {
        stk_gw_change_end(change);
    } else if (outcome == STK_PUBLISHED) {
        forbid(change);
    } else {
        stk_err_set(&why, STK_E_UNAVAILABLE, "the refusal of this change can't be recorded now: %s",
                    err ? err->detail : "the bus is away");
        stk_gw_answer_err(change->ex, &why);
        stk_gw_change_end(change);
    }
}

void stk_gw_change_forbid(stk_gw_change *change)
{
    stk_buf row STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    char key[STK_TENANT_MAX + 32];
    stk_err err = {0};
    const stk_gw_exchange *ex = change->ex;
    if (stk_gw_change_row(change, STK_AUDIT_REFUSAL, change->version, &row, &err) < 0) {
        stk_gw_answer_err(change->ex, &err);
        stk_gw_change_end(change);
        return;
    }
    snprintf(key, sizeof(key), "%s/%s", ex->caller.tenant, change->kind->name);
    stk_bus_out out = {
        .topic = STK_TOPIC_AUDIT, .partition = -1, .key = stk_str_of(key), .value = stk_buf_view(&row)};
    stk_bus_publish(ex->gw->spec.bus, &out, on_refusal_out, change);
}
