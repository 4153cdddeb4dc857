/* An embedded bus with one loop and one handle, for the unit tests of this folder. Topics: "t" (2
 * partitions), "c" (compacted, 1). */
#ifndef STK_TESTS_UNIT_BUS_BENCH_H
#define STK_TESTS_UNIT_BUS_BENCH_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include "proto/bus/bus_sqlite.h"

typedef struct bench {
    char folder[64], path[160];
    const char *vfs;
    stk_bus_file *file;
    stk_loop *loop;
    stk_bus *bus;
} bench;

typedef struct ack {
    size_t done, published;
    stk_publish_outcome outcome; /* of the last */
    int64_t offset;
    stk_err err;
} ack;
void on_ack(stk_publish_outcome outcome, int32_t partition, int64_t offset, const stk_err *err, void *arg);

int bench_setup(void **state);
int bench_setup_faulty(void **state); /* on the fault-injecting VFS, reset */
int bench_teardown(void **state);
int bench_open_at(bench *b, const char *path, const char *vfs); /* 0 or the error */
void bench_close(bench *b);
void bench_reopen(bench *b);
void bench_turn(bench *b);
/* Message n to a partition of "t". */
void bench_send(bench *b, int32_t partition, int n, ack *a);
void bench_send_big(bench *b, int32_t partition, size_t size, ack *a);
void bench_put(bench *b, const char *topic, const char *key, const char *value); /* and waits */
/* Whether the offset holds message n. */
bool bench_has(bench *b, int32_t partition, int64_t offset, int n);
/* Whether anything is at the offset; its value. */
bool bench_value(bench *b, const char *topic, int32_t partition, int64_t offset, char out[64]);

#define bench_until(b, condition)                                                                            \
    do {                                                                                                     \
        stk_mono until_ = stk_mono_add(stk_mono_now(), stk_sec(20));                                         \
        while (!(condition)) {                                                                               \
            if (!stk_mono_before(stk_mono_now(), until_))                                                    \
                fail_msg("not in 20 s: %s", #condition);                                                     \
            bench_turn(b);                                                                                   \
        }                                                                                                    \
    } while (0)

#endif
