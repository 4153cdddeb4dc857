/* Private to proto/message: the JSON of sealed parts and the pieces that API bodies share with them. */
#ifndef STK_MESSAGE_SECRET_H
#define STK_MESSAGE_SECRET_H

#include "proto/message/check.h"
#include "proto/message/event.h"
#include "proto/message/request.h"

extern const stk__message stk__run_secret_message;
extern const stk__message stk__result_secret_message;
/* The clear part alone, as it is bound by the seal. */
int stk__request_clear(const stk_request *req, stk_buf *out, stk_err *err) STK_MUST_USE;

/* Files in: [{"path","content" or "content_base64","executable"}]. Both spellings are read everywhere. */
int stk__files_read(stk_jv v, void *at, stk_err *err);
void stk__files_write(stk_jw *w, const void *at);
void stk__files_free(void *at);
/* collect: relative paths. */
int stk__paths_check(const stk_strv *paths, const char *name, stk_err *err) STK_MUST_USE;

#endif
