#include "proto/message/secret.h"

#define KEPT (STK_FIELD_REQUIRED | STK_FIELD_KEEP)
#define F(m) STK_FIELD_AT(stk_request, m)
static const stk_field fields[] = {
    {"v", STK_F_INT, F(v), KEPT, 1, STK_MESSAGE_VERSION},
    {"kind", STK_F_TEXT, F(kind), KEPT},
    {"id", STK_F_TEXT, F(id), KEPT},
    {"tenant", STK_F_TEXT, F(tenant), KEPT},
    {"actor", STK_F_TEXT, F(actor), KEPT},
    {"agent", STK_F_TEXT, F(agent), KEPT},
    {"backend", STK_F_TEXT, F(backend)},
    {"image", STK_F_TEXT, F(image)},
    {"priority", STK_F_INT, F(priority), KEPT, 0, 9},
    {"timeout_seconds", STK_F_SECONDS, F(timeout), 0, STK_TIMEOUT_MIN_NS, STK_TIMEOUT_MAX_NS},
    {"submitted", STK_F_WALL, F(submitted), KEPT},
    {"deadline", STK_F_WALL, F(deadline)},
    {"retry", STK_F_TEXT, F(retry), KEPT},
    {"labels", STK_F_MAP, F(labels), 0, 0, STK_LABELS_MAX},
    {"config_version", STK_F_INT, F(config_version), KEPT, 0, INT64_MAX},
    {"traceparent", STK_F_TEXT, F(traceparent)},
    {"secret", STK_F_CUSTOM, F(secret), .read = stk__base64_read, .write = stk__base64_write,
     .done = stk__bytes_free},
    STK_FIELD_END,
};

#define C(m) STK__CHECK_AT(stk_request, m)
static const stk__check checks[] = {
    {C(kind), STK__WORD, "run|plan", STK__FULL},
    {C(id), STK__ID, "run", STK__FULL},
    {C(tenant), STK__TENANT, NULL, STK__FULL},
    {C(actor), STK__VISIBLE, NULL, STK__FULL},
    {C(agent), STK__AGENT, NULL, STK__FULL},
    {C(backend), STK__WORD, STK__BACKENDS},
    {C(image), STK__IMAGE},
    {C(retry), STK__WORD, "never|always", STK__FULL},
    {C(labels), STK__LABELS},
    {C(traceparent), STK__TRACE},
    {C(secret), STK__SET, NULL, STK__FULL},
    {0},
};

static int validate(const void *message, stk_err *err)
{
    const stk_request *req = message;
    if (strcmp(req->kind, "run") == 0 && req->timeout.ns == 0)
        return stk_err_field(err, STK_E_MISSING_FIELD, "/timeout_seconds", "a run has a timeout");
    return 0;
}

static const stk__message message = {.what = "request",
                                     .fields = fields,
                                     .checks = checks,
                                     .size = sizeof(stk_request),
                                     .versioned = true,
                                     .validate = validate};

void stk_request_done(stk_request *req)
{
    stk_fields_done(fields, req);
}

int stk_request_encode(const stk_request *req, stk_buf *out, stk_err *err)
{
    return stk__message_encode(&message, req, out, err);
}

int stk_request_decode(stk_str json, stk_request *ret, stk_err *err)
{
    return stk__message_decode(&message, json, ret, err);
}

int stk__request_clear(const stk_request *req, stk_buf *out, stk_err *err)
{
    stk_request clear = *req;
    stk_jw w;
    clear.secret = (stk_bytes){0};
    stk_jw_init(&w, out);
    stk__message_write(&message, &clear, &w);
    return stk_jw_end(&w, err);
}
