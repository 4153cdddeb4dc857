/* The suite against the embedded adapter. */
#include "proto/store/store_sqlite.h"
#include "tests/conformance/store/suite.h"
#include <sqlite3.h>

typedef struct embedded {
    char folder[64], path[96];
    stk_store_file *file;
} embedded;

static void open_file(embedded *e)
{
    stk_err err = {0};
    if (stk_store_file_open(e->path, NULL, &e->file, &err) < 0)
        fail_msg("open: %s", err.detail);
}

static void *make(void)
{
    embedded *e = stk_xcalloc(1, sizeof(*e));
    snprintf(e->folder, sizeof(e->folder), "/tmp/stk-store-XXXXXX");
    assert_non_null(mkdtemp(e->folder));
    snprintf(e->path, sizeof(e->path), "%s/store.db", e->folder);
    open_file(e);
    return e;
}

static stk_store *open_handle(void *self, stk_loop *loop)
{
    stk_store *store = NULL;
    stk_err err;
    assert_int_equal(stk_store_sqlite_new(((embedded *)self)->file, loop, &store, &err), 0);
    return store;
}

static void restart(void *self)
{
    stk_store_file_close(((embedded *)self)->file);
    open_file(self);
}

static void hurt(void *self, damage what, int32_t partition, int64_t seq)
{
    static const char *const sql[] = {
        [FLIP_BYTE] = "UPDATE audit SET row = CAST(replace(CAST(row AS TEXT), 'worker', 'walker') AS BLOB)",
        [FLIP_HASH] = "UPDATE audit SET hash = zeroblob(32)",
        [DROP_ROW] = "DELETE FROM audit",
        [CHANGE_COLUMN] = "UPDATE audit SET tenant = 'hidden'",
    };
    char text[256];
    snprintf(text, sizeof(text), "%s WHERE partition = %d AND seq = %lld", sql[what], partition,
             (long long)seq);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(((embedded *)self)->path, &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 5000);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
    sqlite3_close(db);
}

static void destroy(void *self)
{
    embedded *e = self;
    stk_store_file_close(e->file);
    unlink(e->path);
    assert_int_equal(rmdir(e->folder), 0);
    free(e);
}

static const store_factory embedded_factory = {make, open_handle, restart, hurt, destroy};

int main(void)
{
    factory = &embedded_factory;
    int failed = _cmocka_run_group_tests("store: append", append_tests, nappend_tests, NULL, NULL);
    failed += _cmocka_run_group_tests("store: query", query_tests, nquery_tests, NULL, NULL);
    failed += _cmocka_run_group_tests("store: verify", verify_tests, nverify_tests, NULL, NULL);
    return failed;
}
