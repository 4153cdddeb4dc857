/* cmocka with what it wants included before it. */
#ifndef STK_TEST_WORKERS_UNIT_H
#define STK_TEST_WORKERS_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#endif
