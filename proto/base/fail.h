/* Named failpoints: places at which a test kills the process or makes an operation fail.
 *
 * STK_FAILPOINTS in the environment: "name=kill,name=error@3,name=stop,name=sleep:200" (@n = at the n-th hit
 * only, else at every one). Each hit of an armed point is appended to the file named by STK_FAILPOINT_LOG
 * ("name hit pid") before it acts, so that a test can prove that it was reached. Unarmed, a point costs one
 * load and one branch. Only in builds with STK_FAILPOINTS_ON (all builds but Release); the name must be
 * unique in the tree. */
#ifndef STK_BASE_FAIL_H
#define STK_BASE_FAIL_H

#include "proto/base/err.h"

extern bool stk__failpoints_armed;
/* Reads the environment; call once in main. A malformed value is -STK_E_CONFIG. */
int stk_failpoints_init(stk_err *err) STK_MUST_USE;
int stk__failpoint_hit(const char *name, stk_err *err);

/* Returns 0, or -STK_E_INJECTED when an "error" is armed here; "kill" does not return. */
static inline int stk_failpoint(const char *name, stk_err *err)
{
#ifdef STK_FAILPOINTS_ON
    return __builtin_expect(stk__failpoints_armed, 0) ? stk__failpoint_hit(name, err) : 0;
#else
    return 0;
#endif
}

#endif
