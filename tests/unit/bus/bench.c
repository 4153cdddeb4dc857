#include "tests/unit/bus/bench.h"
#include "proto/base/fd.h"
#include "tests/unit/bus/fault_vfs.h"
#include <fcntl.h>

void on_ack(stk_publish_outcome outcome, int32_t partition, int64_t offset, const stk_err *err, void *arg)
{
    ack *a = arg;
    a->done++;
    a->published += outcome == STK_PUBLISHED;
    a->outcome = outcome;
    a->offset = offset;
    if (err)
        a->err = *err;
}

int bench_open_at(bench *b, const char *path, const char *vfs)
{
    static const stk_bus_topic topics[] = {{"t", 2, false}, {"c", 1, true}};
    stk_bus_file_spec spec = {.path = path, .topics = topics, .ntopics = 2, .vfs = vfs};
    stk_err err = {0};
    if (path != b->path)
        snprintf(b->path, sizeof(b->path), "%s", path);
    b->vfs = vfs;
    int rc = stk_bus_file_open(&spec, &b->file, &err);
    if (rc < 0)
        return rc;
    if (stk_loop_new(&b->loop, &err) < 0 || stk_bus_sqlite_new(b->file, b->loop, &b->bus, &err) < 0)
        fail_msg("%s", err.detail);
    return 0;
}

void bench_close(bench *b)
{
    stk_bus_close(b->bus);
    stk_bus_file_close(b->file);
    stk_loop_free(b->loop);
}

void bench_reopen(bench *b)
{
    bench_close(b);
    assert_int_equal(bench_open_at(b, b->path, b->vfs), 0);
}

static int setup(void **state, const char *vfs)
{
    bench *b = stk_xcalloc(1, sizeof(*b));
    char path[160];
    snprintf(b->folder, sizeof(b->folder), "/tmp/stk-bus-XXXXXX");
    assert_non_null(mkdtemp(b->folder));
    snprintf(path, sizeof(path), "%s/bus.db", b->folder);
    assert_int_equal(bench_open_at(b, path, vfs), 0);
    *state = b;
    return 0;
}

int bench_setup(void **state)
{
    return setup(state, NULL);
}

int bench_setup_faulty(void **state)
{
    fault_vfs_reset();
    return setup(state, FAULT_VFS);
}

int bench_teardown(void **state)
{
    bench *b = *state;
    stk_err err;
    bench_close(b);
    int rc = stk_rmtree(AT_FDCWD, b->folder, &err);
    free(b);
    return rc;
}

void bench_turn(bench *b)
{
    const struct timeval most = {0, 10000};
    event_base_loopexit(stk_loop_base(b->loop), &most);
    event_base_loop(stk_loop_base(b->loop), EVLOOP_ONCE);
}

static void send_to(bench *b, const char *topic, int32_t partition, stk_str key, stk_str value, ack *a)
{
    stk_bus_out out = {.topic = topic, .partition = partition, .key = key, .value = value};
    stk_bus_publish(b->bus, &out, on_ack, a);
}

void bench_send(bench *b, int32_t partition, int n, ack *a)
{
    char value[32];
    snprintf(value, sizeof(value), "m%d", n);
    send_to(b, "t", partition, STK_STR("k"), stk_str_of(value), a);
}

void bench_send_big(bench *b, int32_t partition, size_t size, ack *a)
{
    char *value = stk_xcalloc(1, size);
    send_to(b, "t", partition, STK_STR("k"), stk_str_n(value, size), a);
    free(value);
}

void bench_put(bench *b, const char *topic, const char *key, const char *value)
{
    ack a = {0};
    send_to(b, topic, 0, stk_str_of(key), stk_str_of(value), &a);
    bench_until(b, a.done);
    assert_int_equal(a.published, 1);
}

typedef struct fetched {
    bool done, found;
    char value[64];
} fetched;

static void on_fetched(const stk_bus_msg *msg, const stk_err *err, void *arg)
{
    fetched *f = arg;
    f->done = true;
    f->found = msg != NULL;
    if (msg)
        snprintf(f->value, sizeof(f->value), "%.*s", (int)stk_min(msg->value.n, 63), msg->value.p);
}

bool bench_value(bench *b, const char *topic, int32_t partition, int64_t offset, char out[64])
{
    fetched f = {0};
    stk_bus_fetch(b->bus, topic, partition, offset, on_fetched, &f);
    bench_until(b, f.done);
    memcpy(out, f.value, sizeof(f.value));
    return f.found;
}

bool bench_has(bench *b, int32_t partition, int64_t offset, int n)
{
    char want[32], value[64];
    snprintf(want, sizeof(want), "m%d", n);
    return bench_value(b, "t", partition, offset, value) && strcmp(value, want) == 0;
}
