/* A SQLite VFS over the default one that knows what would survive a power cut, and injects faults.
 *
 * Each write is remembered until the file's next xSync. A snapshot is what a disk could hold if the machine
 * died now: all that was synced, and of the rest nothing or a random part, in any order. One instance, usable
 * from all threads. */
#ifndef STK_TESTS_UNIT_BUS_FAULT_VFS_H
#define STK_TESTS_UNIT_BUS_FAULT_VFS_H

#include "proto/base/base.h"

#define FAULT_VFS "stk-fault"

typedef struct fault_plan {
    bool lying_sync;       /* xSync says yes and does nothing: to show that the check finds it */
    const char *fail_sync; /* xSync of files whose name ends so fails … */
    int fail_sync_at;      /* … from this one on (1 = the next) */
    int64_t full_after;    /* bytes that may still be written, then SQLITE_FULL; -1 = no limit */
    bool fail_write;       /* SQLITE_IOERR_WRITE */
} fault_plan;

/* Registers the VFS and starts from scratch with nothing written. */
void fault_vfs_reset(void);
void fault_vfs_plan(const fault_plan *plan);
/* xSync calls so far of files whose name ends so. */
int fault_vfs_syncs(const char *suffix);
/* Bytes written to such files and not synced yet. */
size_t fault_vfs_unsynced(const char *suffix);
/* Writes the files as they could be after a power cut into `folder` (made). *seed NULL: all that was not
 * synced is lost. */
void fault_vfs_snapshot(const char *folder, unsigned *seed);

#endif
