#include "proto/message/assignment.h"
#include "proto/message/check.h"

#define KEPT (STK_FIELD_REQUIRED | STK_FIELD_KEEP)
#define F(m) STK_FIELD_AT(stk_assignment, m)
static const stk_field fields[] = {
    {"v", STK_F_INT, F(v), KEPT, 1, STK_MESSAGE_VERSION},
    {"kind", STK_F_TEXT, F(kind), KEPT},
    {"assignment", STK_F_TEXT, F(assignment)},
    {"run", STK_F_TEXT, F(run), KEPT},
    {"worker", STK_F_TEXT, F(worker)},
    {"incarnation", STK_F_TEXT, F(incarnation)},
    {"sandbox", STK_F_TEXT, F(sandbox)},
    {"backend", STK_F_TEXT, F(backend)},
    {"attempt", STK_F_INT, F(attempt), KEPT, 0, 1000000},
    {"assigned", STK_F_WALL, F(assigned), KEPT},
    {"request", STK_F_RAW, F(request)},
    STK_FIELD_END,
};

#define C(m) STK__CHECK_AT(stk_assignment, m)
static const stk__check checks[] = {
    {C(kind), STK__WORD, "assign|cancel|plan", STK__FULL},
    {C(assignment), STK__ID, "asg"},
    {C(run), STK__ID, "run", STK__FULL},
    {C(worker), STK__ID, "wrk"},
    {C(incarnation), STK__ID, "inc"},
    {C(sandbox), STK__ID, "sbx"},
    {C(backend), STK__WORD, STK__BACKENDS},
    {C(request), STK__OBJECT},
    {0},
};
/* What a worker could not do without. */
static const stk__check assign_checks[] = {
    {C(assignment), STK__ID, "asg", STK__GIVEN},
    {C(worker), STK__ID, "wrk", STK__GIVEN},
    {C(incarnation), STK__ID, "inc", STK__GIVEN},
    {C(backend), STK__WORD, "k8s|firecracker|docker|oci", STK__GIVEN},
    {C(request), STK__OBJECT, NULL, STK__GIVEN},
    {0},
};
static const stk__check plan_checks[] = {{C(request), STK__OBJECT, NULL, STK__GIVEN}, {0}};

static int validate(const void *message, stk_err *err)
{
    const stk_assignment *asg = message;
    if (strcmp(asg->kind, "plan") == 0)
        return stk__checks_run(plan_checks, asg, err);
    if (strcmp(asg->kind, "cancel") == 0)
        return 0;
    if (asg->attempt < 1)
        return stk_err_field(err, STK_E_FIELD, "/attempt", "attempts count from 1");
    return stk__checks_run(assign_checks, asg, err);
}

static const stk__message message = {.what = "assignment",
                                     .fields = fields,
                                     .checks = checks,
                                     .size = sizeof(stk_assignment),
                                     .versioned = true,
                                     .validate = validate};

void stk_assignment_done(stk_assignment *asg)
{
    stk_fields_done(fields, asg);
}

int stk_assignment_encode(const stk_assignment *asg, stk_buf *out, stk_err *err)
{
    return stk__message_encode(&message, asg, out, err);
}

int stk_assignment_decode(stk_str json, stk_assignment *ret, stk_err *err)
{
    return stk__message_decode(&message, json, ret, err);
}
