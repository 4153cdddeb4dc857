#include "proto/message/config.h"
#include "proto/message/check.h"

#define KEPT (STK_FIELD_REQUIRED | STK_FIELD_KEEP)
#define F(m) STK_FIELD_AT(stk_config_record, m)
static const stk_field fields[] = {
    {"v", STK_F_INT, F(v), KEPT, 1, STK_MESSAGE_VERSION},
    {"tenant", STK_F_TEXT, F(tenant), KEPT},
    {"name", STK_F_TEXT, F(name), KEPT},
    {"version", STK_F_INT, F(version), KEPT, 1, INT64_MAX},
    {"updated", STK_F_WALL, F(updated), KEPT},
    {"actor", STK_F_TEXT, F(actor), KEPT},
    {"doc", STK_F_RAW, F(doc), STK_FIELD_REQUIRED},
    STK_FIELD_END,
};

#define C(m) STK__CHECK_AT(stk_config_record, m)
static const stk__check checks[] = {
    {C(tenant), STK__TENANT, NULL, STK__FULL},
    {C(name), STK__WORD,
     STK_CONF_AGENT_SANDBOX "|" STK_CONF_EGRESS_POLICY "|" STK_CONF_POOLS "|" STK_CONF_TOKENS, STK__FULL},
    {C(actor), STK__VISIBLE, NULL, STK__FULL},
    {C(doc), STK__OBJECT, NULL, STK__FULL},
    {0},
};

static int validate(const void *message, stk_err *err)
{
    const stk_config_record *rec = message;
    return rec->version >= 1 ? 0 : stk_err_field(err, STK_E_FIELD, "/version", "versions count from 1");
}

static const stk__message message = {.what = "configuration record",
                                     .fields = fields,
                                     .checks = checks,
                                     .size = sizeof(stk_config_record),
                                     .versioned = true,
                                     .validate = validate};

void stk_config_record_done(stk_config_record *rec)
{
    stk_fields_done(fields, rec);
}

int stk_config_record_encode(const stk_config_record *rec, stk_buf *out, stk_err *err)
{
    return stk__message_encode(&message, rec, out, err);
}

int stk_config_record_decode(stk_str json, stk_config_record *ret, stk_err *err)
{
    return stk__message_decode(&message, json, ret, err);
}
