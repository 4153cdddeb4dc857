#include "tests/conformance/store/postgres.h"
const struct CMUnitTest month_tests[] = {{0}};
const size_t nmonth_tests = 0;
