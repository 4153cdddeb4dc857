/* Names of files, which are bytes, in JSON and in header fields; pure. */
#ifndef STK_RUNTIME_NAMES_H
#define STK_RUNTIME_NAMES_H

#include "proto/base/buf.h"

/* Appends the name as text. A name that is UTF-8 stays as it is. Any other is percent-encoded whole (all but
 * RFC 3986's unreserved bytes, so '%' too), which can be undone, and can be put into a request's path as it
 * is; then true is returned. */
bool stk_name_escape(stk_str name, stk_buf *out);
/* Appends "attachment; filename=…" (RFC 6266): an ASCII form for everybody and, where it differs, the true
 * name as filename*. */
void stk_name_disposition(stk_str name, stk_buf *out);

#endif
