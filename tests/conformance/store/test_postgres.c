/* The suite against PostgreSQL, then what only a server can do: fail, and come back. */
#include "tests/conformance/store/postgres.h"

int main(void)
{
    factory = &served_factory;
    int failed = _cmocka_run_group_tests("store: append", append_tests, nappend_tests, NULL, NULL);
    failed += _cmocka_run_group_tests("store: query", query_tests, nquery_tests, NULL, NULL);
    failed += _cmocka_run_group_tests("store: verify", verify_tests, nverify_tests, NULL, NULL);
    failed += _cmocka_run_group_tests("store: months", month_tests, nmonth_tests, NULL, NULL);
    failed += _cmocka_run_group_tests("store: faults", fault_tests, nfault_tests, NULL, NULL);
    return failed;
}
