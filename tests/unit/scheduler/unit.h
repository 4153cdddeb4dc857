/* What the tests of the scheduler share. */
#ifndef STK_TEST_SCHEDULER_UNIT_H
#define STK_TEST_SCHEDULER_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#endif
