/* What every unit test of base includes. */
#ifndef STK_TESTS_UNIT_BASE_TEST_H
#define STK_TESTS_UNIT_BASE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

/* A string literal as a slice, NUL bytes inside kept. */
#define S(literal) ((stk_str){literal, sizeof(literal) - 1})

#define assert_str(got, literal)                                                                             \
    do {                                                                                                     \
        stk_str got_ = (got);                                                                                \
        assert_int_equal(got_.n, sizeof(literal) - 1);                                                       \
        if (got_.n)                                                                                          \
            assert_memory_equal(got_.p, literal, sizeof(literal) - 1);                                       \
    } while (0)

#endif
