/* Error answers, in the shapes clients of the upstream runtime know: {"detail": "text"}, and for a body of
 * the wrong shape 422 {"detail": [{"loc": ["body", …], "msg", "type"}]}. */
#ifndef STK_RUNTIME_PROBLEM_H
#define STK_RUNTIME_PROBLEM_H

#include "proto/http/server.h"

/* headers as stk_http_answer. */
void stk_rt_problem(stk_http_x *x, int status, const char *headers, const char *detail);
/* By err->code; err->pointer is into the body. */
void stk_rt_refuse(stk_http_x *x, const stk_err *err);
/* The body of stk_rt_problem alone; returns its content type. */
const char *stk_rt_problem_body(const char *detail, stk_buf *out);

#endif
