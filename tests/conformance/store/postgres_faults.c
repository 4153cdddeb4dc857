#include "tests/conformance/store/postgres.h"
const struct CMUnitTest fault_tests[] = {{0}};
const size_t nfault_tests = 0;
