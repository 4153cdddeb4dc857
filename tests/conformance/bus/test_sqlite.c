/* The suite against the embedded adapter. */
#include "proto/bus/bus_sqlite.h"
#include "tests/conformance/bus/suite.h"
#include <unistd.h>

typedef struct embedded {
    char folder[64], path[96];
    stk_bus_file *file;
} embedded;

static void open_file(embedded *e)
{
    static const stk_bus_topic topics[] = {{ONE, 1, false}, {MANY, PARTITIONS, false}};
    stk_bus_file_spec spec = {.path = e->path, .topics = topics, .ntopics = STK_COUNT(topics)};
    stk_err err = {0};
    if (stk_bus_file_open(&spec, &e->file, &err) < 0)
        fail_msg("open: %s", err.detail);
}

static void *make(void)
{
    embedded *e = stk_xcalloc(1, sizeof(*e));
    snprintf(e->folder, sizeof(e->folder), "/tmp/stk-bus-XXXXXX");
    assert_non_null(mkdtemp(e->folder));
    snprintf(e->path, sizeof(e->path), "%s/bus.db", e->folder);
    open_file(e);
    return e;
}

static stk_bus *open_handle(void *self, stk_loop *loop)
{
    stk_bus *bus = NULL;
    stk_err err;
    assert_int_equal(stk_bus_sqlite_new(((embedded *)self)->file, loop, &bus, &err), 0);
    return bus;
}

static void restart(void *self)
{
    stk_bus_file_close(((embedded *)self)->file);
    open_file(self);
}

static void refuse(void *self, bool on)
{
    stk_bus_file_refuse(((embedded *)self)->file, on);
}

static void destroy(void *self)
{
    embedded *e = self;
    stk_bus_file_close(e->file);
    unlink(e->path);
    assert_int_equal(rmdir(e->folder), 0);
    free(e);
}

static const bus_factory embedded_factory = {make, open_handle, restart, refuse, destroy};

int main(void)
{
    factory = &embedded_factory;
    int failed = _cmocka_run_group_tests("bus: publish", publish_tests, npublish_tests, NULL, NULL);
    failed += _cmocka_run_group_tests("bus: deliver", deliver_tests, ndeliver_tests, NULL, NULL);
    failed += _cmocka_run_group_tests("bus: group", group_tests, ngroup_tests, NULL, NULL);
    return failed;
}
