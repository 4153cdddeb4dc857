#include "proto/message/audit.h"
#include "proto/message/check.h"

#define KEPT (STK_FIELD_REQUIRED | STK_FIELD_KEEP)
#define F(m) STK_FIELD_AT(stk_audit_row, m)
static const stk_field fields[] = {
    {"v", STK_F_INT, F(v), KEPT, 1, STK_MESSAGE_VERSION},
    {"id", STK_F_TEXT, F(id), KEPT},
    {"time", STK_F_WALL, F(time), KEPT},
    {"action", STK_F_TEXT, F(action), KEPT},
    {"actor", STK_F_TEXT, F(actor), KEPT},
    {"tenant", STK_F_TEXT, F(tenant), KEPT},
    {"agent", STK_F_TEXT, F(agent)},
    {"run", STK_F_TEXT, F(run)},
    {"assignment", STK_F_TEXT, F(assignment)},
    {"worker", STK_F_TEXT, F(worker)},
    {"sandbox", STK_F_TEXT, F(sandbox)},
    {"backend", STK_F_TEXT, F(backend)},
    {"isolation", STK_F_TEXT, F(isolation)},
    {"details", STK_F_RAW, F(details)},
    {"before", STK_F_RAW, F(before)},
    {"after", STK_F_RAW, F(after)},
    {"weakening", STK_F_RAW, F(weakening)},
    STK_FIELD_END,
};

static const char actions[] =
    STK_AUDIT_LAUNCH "|" STK_AUDIT_REFUSAL "|" STK_AUDIT_FAILURE "|" STK_AUDIT_TEARDOWN
                     "|" STK_AUDIT_EGRESS_DENY "|" STK_AUDIT_EGRESS_ALLOW "|" STK_AUDIT_CONFIG_UPDATE
                     "|" STK_AUDIT_POLICY_UPDATE "|" STK_AUDIT_TOKEN_CREATE;

#define C(m) STK__CHECK_AT(stk_audit_row, m)
static const stk__check checks[] = {
    {C(id), STK__ID, "aud", STK__FULL},
    {C(action), STK__WORD, actions, STK__FULL},
    {C(actor), STK__VISIBLE, NULL, STK__FULL},
    {C(tenant), STK__TENANT, NULL, STK__FULL},
    {C(agent), STK__AGENT},
    {C(run), STK__ID, "run"},
    {C(assignment), STK__ID, "asg"},
    {C(worker), STK__ID, "wrk"},
    {C(sandbox), STK__ID, "sbx"},
    {C(backend), STK__WORD, STK__BACKENDS},
    {C(isolation), STK__WORD, STK__ISOLATIONS},
    {C(details), STK__OBJECT},
    {C(weakening), STK__ARRAY},
    {0},
};

static const stk__message message = {.what = "audit row",
                                     .fields = fields,
                                     .checks = checks,
                                     .size = sizeof(stk_audit_row),
                                     .versioned = true};

void stk_audit_row_done(stk_audit_row *row)
{
    stk_fields_done(fields, row);
}

int stk_audit_encode(const stk_audit_row *row, stk_buf *out, stk_err *err)
{
    return stk__message_encode(&message, row, out, err);
}

int stk_audit_decode(stk_str json, stk_audit_row *ret, stk_err *err)
{
    return stk__message_decode(&message, json, ret, err);
}
