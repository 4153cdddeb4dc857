#include "proto/message/secret.h"

#define F(m) STK_FIELD_AT(stk_result_secret, m)
static const stk_field fields[] = {
    {"stdout", STK_F_CUSTOM, F(stdout_data), .read = stk__base64_read, .write = stk__base64_write,
     .done = stk__bytes_free},
    {"stderr", STK_F_CUSTOM, F(stderr_data), .read = stk__base64_read, .write = stk__base64_write,
     .done = stk__bytes_free},
    {"files", STK_F_RAW, F(files)},
    STK_FIELD_END,
};
static const stk__check checks[] = {{STK__CHECK_AT(stk_result_secret, files), STK__ARRAY}, {0}};

static int too_long(const char *pointer, stk_err *err)
{
    return stk_err_field(err, STK_E_LIMIT, pointer, "more than %d bytes", STK_OUTPUT_MAX);
}

static int validate(const void *message, stk_err *err)
{
    const stk_result_secret *secret = message;
    if (secret->stdout_data.n > STK_OUTPUT_MAX)
        return too_long("/stdout", err);
    return secret->stderr_data.n > STK_OUTPUT_MAX ? too_long("/stderr", err) : 0;
}

const stk__message stk__result_secret_message = {.what = "sealed result",
                                                 .fields = fields,
                                                 .checks = checks,
                                                 .size = sizeof(stk_result_secret),
                                                 .validate = validate};

void stk_result_secret_done(stk_result_secret *secret)
{
    stk_fields_done(fields, secret);
}
