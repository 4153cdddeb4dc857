#include "proto/message/egress.h"
#include "proto/message/check.h"
#include <stdio.h>

#define F(m) STK_FIELD_AT(stk_control, m)
static const stk_field fields[] = {
    {"kind", STK_F_TEXT, F(kind), STK_FIELD_REQUIRED | STK_FIELD_KEEP},
    {"version", STK_F_INT, F(version), 0, 1, INT64_MAX},
    {"run", STK_F_TEXT, F(run)},
    {"seq", STK_F_INT, F(seq), 0, 1, INT64_MAX},
    {"detail", STK_F_TEXT, F(detail)},
    {"body", STK_F_RAW, F(body)},
    STK_FIELD_END,
};

static const stk__check checks[] = {
    {STK__CHECK_AT(stk_control, run), STK__ID, "run"},
    {STK__CHECK_AT(stk_control, detail), STK__CLEAN},
    {STK__CHECK_AT(stk_control, body), STK__OBJECT},
    {0},
};

enum { VERSION = 1, RUN = 2, SEQ = 4, DETAIL = 8, BODY = 16 };
static const struct {
    const char *kind;
    unsigned must;
    unsigned may;
} kinds[] = {
    [STK_CTL_POLICY] = {"policy", VERSION | BODY, RUN},
    [STK_CTL_ACK] = {"ack", SEQ, 0},
    [STK_CTL_DRAIN] = {"drain", 0, 0},
    [STK_CTL_STOP] = {"stop", 0, 0},
    [STK_CTL_READY] = {"ready", 0, DETAIL},
    [STK_CTL_POLICY_OK] = {"policy_ok", VERSION, 0},
    [STK_CTL_POLICY_BAD] = {"policy_bad", DETAIL, VERSION},
    [STK_CTL_RECORD] = {"record", BODY, 0},
    [STK_CTL_DRAINED] = {"drained", 0, 0},
};
static const char *const member_names[] = {"version", "run", "seq", "detail", "body"};

int stk_control_kind_of(const stk_control *ctl)
{
    for (size_t i = 0; i < STK_COUNT(kinds); i++)
        if (strcmp(ctl->kind, kinds[i].kind) == 0)
            return (int)i;
    return -1;
}

static unsigned members_of(const stk_control *ctl)
{
    return (ctl->version ? VERSION : 0u) | (ctl->run[0] ? RUN : 0u) | (ctl->seq ? SEQ : 0u) |
           (ctl->detail[0] ? DETAIL : 0u) | (ctl->body.set ? BODY : 0u);
}

static int validate(const void *message, stk_err *err)
{
    const stk_control *ctl = message;
    int kind = stk_control_kind_of(ctl);
    if (kind < 0)
        return stk_err_field(err, STK_E_FIELD, "/kind", "no such kind");
    unsigned has = members_of(ctl), must = kinds[kind].must, may = must | kinds[kind].may;
    for (unsigned i = 0; i < STK_COUNT(member_names); i++) {
        char pointer[16];
        snprintf(pointer, sizeof(pointer), "/%s", member_names[i]);
        if (must & ~has & (1u << i))
            return stk_err_field(err, STK_E_MISSING_FIELD, pointer, "%s needs %s", ctl->kind,
                                 member_names[i]);
        if (has & ~may & (1u << i))
            return stk_err_field(err, STK_E_UNKNOWN_FIELD, pointer, "%s has no %s", ctl->kind,
                                 member_names[i]);
    }
    return 0;
}

static const stk__message message = {.what = "control line",
                                     .fields = fields,
                                     .checks = checks,
                                     .size = sizeof(stk_control),
                                     .validate = validate};

void stk_control_done(stk_control *ctl)
{
    stk_fields_done(fields, ctl);
}

int stk_control_encode(const stk_control *ctl, stk_buf *out, stk_err *err)
{
    size_t before = out->n;
    int rc = stk__message_encode(&message, ctl, out, err);
    if (rc < 0)
        return rc;
    /* Between tokens only: inside JSON strings a line end is always escaped. */
    for (size_t i = before; i < out->n; i++)
        if (out->p[i] == '\n' || out->p[i] == '\r')
            out->p[i] = ' ';
    if (stk_buf_byte(out, '\n') < 0 || out->n - before > STK_CONTROL_LINE_MAX)
        return stk_err_set(err, STK_E_LIMIT, "a control line over %d bytes", STK_CONTROL_LINE_MAX);
    return 0;
}

int stk_control_decode(stk_str line, stk_control *ret, stk_err *err)
{
    if (line.n > STK_CONTROL_LINE_MAX) {
        memset(ret, 0, sizeof(*ret));
        return stk_err_set(err, STK_E_LIMIT, "a control line over %d bytes", STK_CONTROL_LINE_MAX);
    }
    return stk__message_decode(&message, line, ret, err);
}
