/* The embedded bus: one SQLite file, one writer thread, WAL, synchronous=FULL, group commit, checkpoints off
 * the commit path. An fsync error ends the process. Many handles (loops) of one process share the file
 * through one `stk_bus_file`; new messages wake readers by eventfd. */
#ifndef STK_BUS_BUS_SQLITE_H
#define STK_BUS_BUS_SQLITE_H

#include "proto/bus/bus.h"

typedef struct stk_bus_file stk_bus_file;

typedef struct stk_bus_topic {
    const char *name;
    int32_t partitions;
    bool compacted; /* only the newest message of a key is kept by trim */
} stk_bus_topic;

typedef struct stk_bus_file_spec {
    const char *path;
    const stk_bus_topic *topics; /* created when missing; a different partition count is -STK_E_CONFIG */
    size_t ntopics;
    size_t queue;    /* publishes waiting for the writer at most; then BUSY. default 20000 */
    const char *vfs; /* SQLite VFS, NULL = default; tests inject faults here */
} stk_bus_file_spec;

/* Opens or creates. A damaged file is -STK_E_CORRUPT naming it. */
int stk_bus_file_open(const stk_bus_file_spec *spec, stk_bus_file **ret, stk_err *err) STK_MUST_USE;
/* All handles must be closed. */
void stk_bus_file_close(stk_bus_file *file);
/* A handle of one loop. Consumers of the same group on several handles share the partitions. */
int stk_bus_sqlite_new(stk_bus_file *file, stk_loop *loop, stk_bus **ret, stk_err *err) STK_MUST_USE;
/* Tests and `doctor`: refuse all publishes from now on (UNAVAILABLE), or stop refusing. */
void stk_bus_file_refuse(stk_bus_file *file, bool on);

#endif
