#include "proto/message/egress.h"
#include "proto/message/check.h"

#define F(m)    STK_FIELD_AT(stk_egress_record, m)
#define NOT_NEG .min = 0, .max = INT64_MAX

static const stk_field fields[] = {
    {"seq", STK_F_INT, F(seq), STK_FIELD_REQUIRED | STK_FIELD_KEEP, 1, INT64_MAX},
    {"kind", STK_F_TEXT, F(kind), STK_FIELD_REQUIRED | STK_FIELD_KEEP},
    {"open_seq", STK_F_INT, F(open_seq), NOT_NEG},
    {"time", STK_F_WALL, F(time), STK_FIELD_REQUIRED | STK_FIELD_KEEP},
    {"run", STK_F_TEXT, F(run), STK_FIELD_REQUIRED | STK_FIELD_KEEP},
    {"host", STK_F_TEXT, F(host), STK_FIELD_REQUIRED | STK_FIELD_KEEP},
    {"port", STK_F_INT, F(port), STK_FIELD_REQUIRED | STK_FIELD_KEEP, 0, 65535},
    {"verdict", STK_F_TEXT, F(verdict), STK_FIELD_REQUIRED | STK_FIELD_KEEP},
    {"reason", STK_F_TEXT, F(reason), STK_FIELD_REQUIRED | STK_FIELD_KEEP},
    {"rule", STK_F_TEXT, F(rule), STK_FIELD_REQUIRED | STK_FIELD_KEEP},
    {"policy_version", STK_F_INT, F(policy_version), STK_FIELD_REQUIRED | STK_FIELD_KEEP, NOT_NEG},
    {"address", STK_F_TEXT, F(address), STK_FIELD_REQUIRED | STK_FIELD_KEEP},
    {"method", STK_F_TEXT, F(method), STK_FIELD_REQUIRED | STK_FIELD_KEEP},
    {"bytes_in", STK_F_INT, F(bytes_in), STK_FIELD_REQUIRED | STK_FIELD_KEEP, NOT_NEG},
    {"bytes_out", STK_F_INT, F(bytes_out), STK_FIELD_REQUIRED | STK_FIELD_KEEP, NOT_NEG},
    {"duration_ms", STK_F_CUSTOM, F(duration), STK_FIELD_REQUIRED | STK_FIELD_KEEP, .read = stk__ms_read,
     .write = stk__ms_write},
    {"count", STK_F_INT, F(count), NOT_NEG},
    {"first", STK_F_BOOL, F(first)},
    STK_FIELD_END,
};

#define C(m) STK__CHECK_AT(stk_egress_record, m)
static const stk__check checks[] = {
    {C(kind), STK__WORD, "decision|close|summary", STK__FULL},
    {C(run), STK__ID, "run"},
    {C(host), STK__CLEAN},
    {C(verdict), STK__WORD, "allow|deny", STK__FULL},
    {C(reason), STK__CODE, NULL, STK__FULL},
    {C(rule), STK__CLEAN},
    {C(address), STK__CLEAN},
    {C(method), STK__CLEAN},
    {0},
};

static int validate(const void *message, stk_err *err)
{
    const stk_egress_record *rec = message;
    bool close = strcmp(rec->kind, "close") == 0, summary = strcmp(rec->kind, "summary") == 0;
    if (close && rec->open_seq == 0)
        return stk_err_field(err, STK_E_MISSING_FIELD, "/open_seq", "a close names the seq of its decision");
    if (close && rec->open_seq >= rec->seq)
        return stk_err_field(err, STK_E_FIELD, "/open_seq", "a close comes after its decision");
    if (summary && rec->count == 0)
        return stk_err_field(err, STK_E_MISSING_FIELD, "/count",
                             "a summary says how many refusals it stands for");
    return 0;
}

static const stk__message message = {.what = "egress record",
                                     .fields = fields,
                                     .checks = checks,
                                     .size = sizeof(stk_egress_record),
                                     .validate = validate};

int stk_egress_encode(const stk_egress_record *rec, stk_buf *out, stk_err *err)
{
    return stk__message_encode(&message, rec, out, err);
}

int stk_egress_decode(stk_str json, stk_egress_record *ret, stk_err *err)
{
    return stk__message_decode(&message, json, ret, err);
}

int stk_egress_decode_jv(stk_jv v, stk_egress_record *ret, stk_err *err)
{
    return stk__message_decode_jv(&message, v, ret, err);
}

void stk_egress_write(stk_jw *w, const stk_egress_record *rec)
{
    stk__message_write(&message, rec, w);
}
