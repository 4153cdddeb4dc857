/* What the pure tests need. */
#ifndef TEST_GATEWAY_UNIT_H
#define TEST_GATEWAY_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#endif
