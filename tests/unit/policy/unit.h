/* cmocka in the one way the tests of this folder use it. */
#ifndef STK_TEST_POLICY_UNIT_H
#define STK_TEST_POLICY_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "proto/policy/policy.h"

static inline stk_strv list_of(const char *const *texts)
{
    stk_strv v = {.v = NULL};
    for (; texts && *texts; texts++)
        stk_strv_add(&v, stk_str_of(*texts));
    return v;
}

#endif
