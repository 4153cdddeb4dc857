#include "proto/state/state_sqlite.h"
#include "tests/conformance/state/rig.h"
#include <stdatomic.h>

typedef struct sqlite_state {
    char folder[64], path[80];
    stk_state_file *file;
    _Atomic(int64_t) now;
    int boots;
} sqlite_state;

static stk_mono clock_of(void *arg)
{
    return (stk_mono){atomic_load(&((sqlite_state *)arg)->now)};
}

static void start(sqlite_state *self)
{
    stk_err err = {0};
    char boot[STK_BOOT_ID];
    snprintf(boot, sizeof(boot), "00000000-0000-0000-0000-%012d", self->boots);
    if (stk_state_file_open_boot(self->path, boot, &self->file, &err) < 0)
        fail_msg("open %s: %s", self->path, err.detail);
    stk_state_file_set_clock(self->file, clock_of, self);
}

static void *sqlite_open(void)
{
    sqlite_state *self = stk_xcalloc(1, sizeof(*self));
    TEXT(self->folder, "/tmp/stk-state-XXXXXX");
    if (!mkdtemp(self->folder))
        fail_msg("mkdtemp");
    snprintf(self->path, sizeof(self->path), "%s/state.db", self->folder);
    atomic_store(&self->now, stk_mono_now().ns);
    start(self);
    return self;
}

static void sqlite_close(void *arg)
{
    sqlite_state *self = arg;
    stk_state_file_close(self->file);
    static const char *const ends[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < STK_COUNT(ends); i++) {
        char path[96];
        snprintf(path, sizeof(path), "%s%s", self->path, ends[i]);
        unlink(path);
    }
    rmdir(self->folder);
    free(self);
}

static stk_state *sqlite_handle(void *arg, stk_loop *loop)
{
    stk_state *st = NULL;
    if (stk_state_sqlite_new(((sqlite_state *)arg)->file, loop, &st, NULL) < 0)
        fail_msg("no handle");
    return st;
}

static void sqlite_advance(void *arg, stk_span by)
{
    atomic_fetch_add(&((sqlite_state *)arg)->now, by.ns);
}

static void sqlite_restart(void *arg, bool other_boot)
{
    sqlite_state *self = arg;
    stk_state_file_close(self->file);
    if (other_boot) {
        self->boots++;
        atomic_store(&self->now, stk_sec(5).ns);
    }
    start(self);
}

const state_factory sqlite_factory = {
    .name = "sqlite",
    .open = sqlite_open,
    .close = sqlite_close,
    .handle = sqlite_handle,
    .advance = sqlite_advance,
    .restart = sqlite_restart,
};
