/* A real server for the suite's PostgreSQL factory: one schema for each store. run_postgres.py starts it. */
#ifndef STK_TESTS_CONFORMANCE_STORE_POSTGRES_H
#define STK_TESTS_CONFORMANCE_STORE_POSTGRES_H

#include "proto/store/store_postgres.h"
#include "tests/conformance/store/suite.h"

typedef struct served {
    char conninfo[512], schema[32];
    const stk_keyring *ring;
    bool read_only;
    stk_store_pg *pg;
} served;

extern const store_factory served_factory;
/* Opens it again, as the next process would. */
void served_open(served *s);
/* SQL on a connection of our own, in the store's schema; returns the first column of the first row (or "").
 */
const char *served_sql(const served *s, const char *sql);
/* "stop", "abort", "kill" or "start": returns when it is done. */
void server_order(const char *order);

extern const struct CMUnitTest fault_tests[], month_tests[];
extern const size_t nfault_tests, nmonth_tests;

#endif
