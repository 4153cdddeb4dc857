#include "proto/message/secret.h"

#define F(m) STK_FIELD_AT(stk_run_secret, m)
static const stk_field fields[] = {
    {"command", STK_F_STRV, F(command), STK_FIELD_REQUIRED | STK_FIELD_KEEP, 1, STK_ARGS_MAX},
    {"env", STK_F_MAP, F(env), 0, 0, STK_ENV_MAX},
    {"cwd", STK_F_TEXT, F(cwd)},
    {"files", STK_F_CUSTOM, F(files), .read = stk__files_read, .write = stk__files_write,
     .done = stk__files_free},
    {"stdin", STK_F_CUSTOM, F(stdin_data), .read = stk__base64_read, .write = stk__base64_write,
     .done = stk__bytes_free},
    {"collect", STK_F_STRV, F(collect), 0, 0, STK_FILES_MAX},
    STK_FIELD_END,
};
static const stk__check checks[] = {{0}};

static int validate(const void *message, stk_err *err)
{
    const stk_run_secret *secret = message;
    int rc = stk_command_check(&secret->command, &secret->env, err);
    return rc < 0 ? rc : stk__paths_check(&secret->collect, "collect", err);
}

const stk__message stk__run_secret_message = {.what = "sealed request",
                                              .fields = fields,
                                              .checks = checks,
                                              .size = sizeof(stk_run_secret),
                                              .validate = validate};

void stk_run_secret_done(stk_run_secret *secret)
{
    stk_fields_done(fields, secret);
}
