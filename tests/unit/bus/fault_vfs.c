#include "tests/unit/bus/fault_vfs.h"
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>

typedef struct image {
    char *p;
    size_t n, room;
} image;

typedef struct pending { /* a write, or with data NULL a truncation to `at` */
    struct pending *next;
    int64_t at;
    size_t n;
    char *data;
} pending;

/* What the disk holds of one path, and what it was only told. */
typedef struct disk {
    struct disk *next;
    char path[256];
    image durable;
    bool exists; /* after a power cut */
    pending *first, **last;
    size_t unsynced;
    int syncs;
} disk;

typedef struct shim {
    sqlite3_file base;
    disk *disk;
    sqlite3_file *real;
} shim;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static disk *disks;
static fault_plan now = {.full_after = -1};
static sqlite3_vfs *below;
static sqlite3_vfs vfs;

static bool ends(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && strcmp(s + n - m, suffix) == 0;
}

static disk *disk_of(const char *path)
{
    for (disk *d = disks; d; d = d->next)
        if (strcmp(d->path, path) == 0)
            return d;
    disk *d = stk_xcalloc(1, sizeof(*d));
    snprintf(d->path, sizeof(d->path), "%s", path);
    d->last = &d->first;
    d->next = disks;
    disks = d;
    return d;
}

static void apply(image *to, const pending *p)
{
    size_t end = (size_t)p->at + p->n;
    if (!p->data) {
        to->n = stk_min(to->n, (size_t)p->at);
        return;
    }
    if (end > to->room) {
        to->room = end * 2;
        to->p = stk_xrealloc(to->p, to->room);
    }
    if (end > to->n) {
        memset(to->p + to->n, 0, end - to->n);
        to->n = end;
    }
    memcpy(to->p + p->at, p->data, p->n);
}

static void forget(disk *d)
{
    for (pending *p; (p = d->first);) {
        d->first = p->next;
        free(p->data);
        free(p);
    }
    d->last = &d->first;
    d->unsynced = 0;
}

static void remember(disk *d, int64_t at, const void *data, size_t n)
{
    pending *p = stk_xcalloc(1, sizeof(*p));
    *p = (pending){.at = at, .n = n, .data = data ? stk_xmemdup(data, n) : NULL};
    *d->last = p;
    d->last = &p->next;
    d->unsynced += n;
}

static int on_write(sqlite3_file *file, const void *data, int n, sqlite3_int64 at)
{
    shim *s = (shim *)file;
    pthread_mutex_lock(&lock);
    int rc = now.fail_write ? SQLITE_IOERR_WRITE : SQLITE_OK;
    if (now.full_after >= 0 && rc == SQLITE_OK) {
        rc = n > now.full_after ? SQLITE_FULL : SQLITE_OK;
        now.full_after -= rc == SQLITE_OK ? n : 0;
    }
    if (rc == SQLITE_OK)
        rc = s->real->pMethods->xWrite(s->real, data, n, at);
    if (rc == SQLITE_OK)
        remember(s->disk, at, data, (size_t)n);
    pthread_mutex_unlock(&lock);
    return rc;
}

static int on_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    shim *s = (shim *)file;
    pthread_mutex_lock(&lock);
    int rc = s->real->pMethods->xTruncate(s->real, size);
    if (rc == SQLITE_OK)
        remember(s->disk, size, NULL, 0);
    pthread_mutex_unlock(&lock);
    return rc;
}

static int on_sync(sqlite3_file *file, int flags)
{
    shim *s = (shim *)file;
    int rc = SQLITE_OK;
    pthread_mutex_lock(&lock);
    s->disk->syncs++;
    if (now.fail_sync && ends(s->disk->path, now.fail_sync) && --now.fail_sync_at <= 0)
        rc = SQLITE_IOERR_FSYNC;
    if (rc == SQLITE_OK && !now.lying_sync) {
        for (pending *p = s->disk->first; p; p = p->next)
            apply(&s->disk->durable, p);
        forget(s->disk);
        s->disk->exists = true;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

static int on_close(sqlite3_file *file)
{
    shim *s = (shim *)file;
    return s->real->pMethods->xClose(s->real);
}

#define REAL(file) (((shim *)(file))->real)
static int on_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    return REAL(f)->pMethods->xRead(REAL(f), p, n, at);
}
static int on_size(sqlite3_file *f, sqlite3_int64 *n)
{
    return REAL(f)->pMethods->xFileSize(REAL(f), n);
}
static int on_lock(sqlite3_file *f, int how)
{
    return REAL(f)->pMethods->xLock(REAL(f), how);
}
static int on_unlock(sqlite3_file *f, int how)
{
    return REAL(f)->pMethods->xUnlock(REAL(f), how);
}
static int on_reserved(sqlite3_file *f, int *out)
{
    return REAL(f)->pMethods->xCheckReservedLock(REAL(f), out);
}
static int on_control(sqlite3_file *f, int op, void *arg)
{
    return REAL(f)->pMethods->xFileControl(REAL(f), op, arg);
}
static int on_sector(sqlite3_file *f)
{
    return REAL(f)->pMethods->xSectorSize(REAL(f));
}
static int on_features(sqlite3_file *f)
{
    return REAL(f)->pMethods->xDeviceCharacteristics(REAL(f));
}
static int on_map(sqlite3_file *f, int page, int size, int grow, void volatile **out)
{
    return REAL(f)->pMethods->xShmMap(REAL(f), page, size, grow, out);
}
static int on_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
    return REAL(f)->pMethods->xShmLock(REAL(f), at, n, flags);
}
static void on_barrier(sqlite3_file *f)
{
    REAL(f)->pMethods->xShmBarrier(REAL(f));
}
static int on_unmap(sqlite3_file *f, int gone)
{
    return REAL(f)->pMethods->xShmUnmap(REAL(f), gone);
}

static const sqlite3_io_methods methods = {.iVersion = 2,
                                           .xClose = on_close,
                                           .xRead = on_read,
                                           .xWrite = on_write,
                                           .xTruncate = on_truncate,
                                           .xSync = on_sync,
                                           .xFileSize = on_size,
                                           .xLock = on_lock,
                                           .xUnlock = on_unlock,
                                           .xCheckReservedLock = on_reserved,
                                           .xFileControl = on_control,
                                           .xSectorSize = on_sector,
                                           .xDeviceCharacteristics = on_features,
                                           .xShmMap = on_map,
                                           .xShmLock = on_shm_lock,
                                           .xShmBarrier = on_barrier,
                                           .xShmUnmap = on_unmap};

static int on_open(sqlite3_vfs *self, const char *path, sqlite3_file *file, int flags, int *out)
{
    shim *s = (shim *)file;
    *s = (shim){.real = (sqlite3_file *)(s + 1)};
    int rc = below->xOpen(below, path, s->real, flags, out);
    if (rc != SQLITE_OK)
        return rc;
    pthread_mutex_lock(&lock);
    s->disk = disk_of(path ? path : "(temporary)");
    pthread_mutex_unlock(&lock);
    s->base.pMethods = &methods;
    return SQLITE_OK;
}

static int on_delete(sqlite3_vfs *self, const char *path, int sync_folder)
{
    pthread_mutex_lock(&lock);
    int rc = below->xDelete(below, path, sync_folder);
    disk *d = disk_of(path);
    forget(d);
    d->durable.n = 0;
    d->exists = false;
    pthread_mutex_unlock(&lock);
    return rc;
}

void fault_vfs_reset(void)
{
    if (!below) {
        below = sqlite3_vfs_find(NULL);
        vfs = *below;
        vfs.szOsFile = (int)sizeof(shim) + below->szOsFile;
        vfs.zName = FAULT_VFS;
        vfs.xOpen = on_open;
        vfs.xDelete = on_delete;
        vfs.pNext = NULL;
        sqlite3_vfs_register(&vfs, 0);
    }
    for (disk *d; (d = disks);) {
        disks = d->next;
        forget(d);
        free(d->durable.p);
        free(d);
    }
    now = (fault_plan){.full_after = -1};
}

void fault_vfs_plan(const fault_plan *plan)
{
    pthread_mutex_lock(&lock);
    now = *plan;
    pthread_mutex_unlock(&lock);
}

int fault_vfs_syncs(const char *suffix)
{
    int n = 0;
    pthread_mutex_lock(&lock);
    for (disk *d = disks; d; d = d->next)
        n += ends(d->path, suffix) ? d->syncs : 0;
    pthread_mutex_unlock(&lock);
    return n;
}

size_t fault_vfs_unsynced(const char *suffix)
{
    size_t n = 0;
    pthread_mutex_lock(&lock);
    for (disk *d = disks; d; d = d->next)
        n += ends(d->path, suffix) ? d->unsynced : 0;
    pthread_mutex_unlock(&lock);
    return n;
}

static void write_out(const char *folder, const disk *d, const char *bytes, size_t n)
{
    char path[512];
    const char *slash = strrchr(d->path, '/');
    snprintf(path, sizeof(path), "%s/%s", folder, slash ? slash + 1 : d->path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    while (n > 0) {
        ssize_t k = write(fd, bytes, n);
        if (k <= 0)
            abort();
        bytes += k;
        n -= (size_t)k;
    }
    close(fd);
}

void fault_vfs_snapshot(const char *folder, unsigned *seed)
{
    mkdir(folder, 0700);
    pthread_mutex_lock(&lock);
    for (disk *d = disks; d; d = d->next) {
        if (!d->exists)
            continue;
        image copy = {stk_xmemdup(d->durable.n ? d->durable.p : "", d->durable.n), d->durable.n,
                      d->durable.n};
        for (pending *p = d->first; seed && p; p = p->next)
            if (rand_r(seed) % 2)
                apply(&copy, p);
        write_out(folder, d, copy.p, copy.n);
        free(copy.p);
    }
    pthread_mutex_unlock(&lock);
}
