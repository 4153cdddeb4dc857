/* Durably acknowledged publishes per second on the embedded bus: `bench_bus N IN_FLIGHT BYTES`. The floor is
 * what fdatasync of one page allows when every publish had its own. Per core = publishes / CPU seconds of all
 * threads. */
#include "proto/base/fd.h"
#include "proto/bus/bus_sqlite.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>

typedef struct bench {
    stk_loop *loop;
    stk_bus *bus;
    int64_t n, sent, acked;
    char *value;
    size_t bytes;
} bench;

static void send_one(bench *b);

static void on_done(stk_publish_outcome outcome, int32_t partition, int64_t offset, const stk_err *err,
                    void *arg)
{
    bench *b = arg;
    if (outcome != STK_PUBLISHED)
        exit(1);
    b->acked++;
    if (b->sent < b->n)
        send_one(b);
    else if (b->acked == b->n)
        stk_loop_stop(b->loop);
}

static void send_one(bench *b)
{
    char key[32];
    int n = snprintf(key, sizeof(key), "run-%lld", (long long)b->sent++);
    stk_bus_out out = {.topic = "bench",
                       .partition = -1,
                       .key = stk_str_n(key, (size_t)n),
                       .value = stk_str_n(b->value, b->bytes)};
    stk_bus_publish(b->bus, &out, on_done, b);
}

static double fdatasyncs_per_second(const char *dir)
{
    char path[128];
    char page[4096] = {1};
    snprintf(path, sizeof(path), "%s/floor", dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    stk_mono begun = stk_mono_now();
    for (int i = 0; i < 500; i++)
        if (pwrite(fd, page, sizeof(page), 0) < 0 || fdatasync(fd) < 0)
            exit(1);
    double seconds = stk_span_sec(stk_mono_sub(stk_mono_now(), begun));
    close(fd);
    return 500 / seconds;
}

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv)
{
    static const stk_bus_topic topics[] = {{"bench", 4, false}};
    char dir[] = "/var/tmp/stk-bench-XXXXXX", path[64];
    stk_err err;
    stk_bus_file *file;
    if (argc != 4 || !mkdtemp(dir)) {
        fputs("usage: bench_bus N IN_FLIGHT BYTES\n", stderr);
        return 2;
    }
    bench b = {.n = strtoll(argv[1], NULL, 10), .bytes = (size_t)strtoul(argv[3], NULL, 10)};
    b.value = stk_xcalloc(b.bytes + 1, 1);
    memset(b.value, 'x', b.bytes);
    snprintf(path, sizeof(path), "%s/bus.db", dir);
    stk_bus_file_spec spec = {.path = path, .topics = topics, .ntopics = 1};
    if (stk_loop_new(&b.loop, &err) < 0 || stk_bus_file_open(&spec, &file, &err) < 0 ||
        stk_bus_sqlite_new(file, b.loop, &b.bus, &err) < 0) {
        fprintf(stderr, "bench_bus: %s\n", err.detail);
        return 1;
    }
    double floor = fdatasyncs_per_second(dir), cpu = cpu_seconds();
    stk_mono begun = stk_mono_now();
    for (int64_t i = 0, most = strtoll(argv[2], NULL, 10); i < most && b.sent < b.n; i++)
        send_one(&b);
    stk_loop_run(b.loop);
    double seconds = stk_span_sec(stk_mono_sub(stk_mono_now(), begun));
    cpu = cpu_seconds() - cpu;
    printf("{\"name\":\"bus_publishes_per_second\",\"in_flight\":%s,\"bytes\":%s,\"n\":%lld,\"value\":%.0f,"
           "\"per_core\":%.0f,"
           "\"floor\":\"fdatasync of one page each\",\"floor_value\":%.0f,\"ratio\":%.2f}\n",
           argv[2], argv[3], (long long)b.n, (double)b.n / seconds, (double)b.n / cpu, floor,
           (double)b.n / seconds / floor);
    stk_bus_close(b.bus);
    stk_bus_file_close(file);
    stk_loop_free(b.loop);
    free(b.value);
    return stk_rmtree(AT_FDCWD, dir, &err) < 0;
}
