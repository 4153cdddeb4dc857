#include "proto/base/fd.h"
#include "proto/base/id.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define LOCK_TRIES    400 /* of a dead holder's lock: 2 s */
#define LOCK_PAUSE_NS 5000000L

int stk_fd_write_all(int fd, const void *p, size_t n, stk_err *err)
{
    const char *at = p;
    while (n > 0) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return stk_err_errno(err, errno, "write");
        at += done;
        n -= (size_t)done;
    }
    return 0;
}

int stk_fd_nonblock(int fd, stk_err *err)
{
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
        return stk_err_errno(err, errno, "set descriptor %d nonblocking", fd);
    return 0;
}

static ssize_t read_some(int fd, void *p, size_t n)
{
    ssize_t got;
    do
        got = read(fd, p, n);
    while (got < 0 && errno == EINTR);
    return got;
}

static int read_all(int fd, const char *name, stk_buf *out, stk_err *err)
{
    for (;;) {
        char past;
        size_t room = stk_min(out->cap - out->n, out->n < 4096 ? 4096 : 64 * 1024);
        char *into = room ? stk_buf_room(out, room) : &past;
        if (!into)
            return stk_err_set(err, STK_E_LIMIT, "%s is larger than %zu bytes", name, out->cap);
        ssize_t got = read_some(fd, into, room ? room : 1);
        if (got < 0)
            return stk_err_errno(err, errno, "read %s", name);
        if (got == 0)
            break;
        if (!room)
            return stk_err_set(err, STK_E_LIMIT, "%s is larger than %zu bytes", name, out->cap);
        out->n += (size_t)got;
    }
    if (out->p)
        out->p[out->n] = '\0';
    return 0;
}

int stk_file_read_at(int dirfd, const char *name, stk_buf *out, stk_err *err)
{
    /* O_NONBLOCK: opening a FIFO somebody put there must not hang. */
    int fd STK_AUTO(stk_closep) = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return stk_err_set(err, STK_E_NOT_FOUND, "%s does not exist", name);
    if (fd < 0)
        return stk_err_errno(err, errno, "open %s", name);
    struct stat st;
    if (fstat(fd, &st) < 0)
        return stk_err_errno(err, errno, "stat %s", name);
    if (!S_ISREG(st.st_mode))
        return stk_err_set(err, STK_E_SYSTEM, "%s is not a regular file", name);
    return read_all(fd, name, out, err);
}

int stk_file_read(const char *path, stk_buf *out, stk_err *err)
{
    return stk_file_read_at(AT_FDCWD, path, out, err);
}

int stk_sync_parent(const char *path, stk_err *err)
{
    const char *slash = strrchr(path, '/');
    char dir[4096];
    int n = slash == path ? 1 : slash ? (int)(slash - path) : 0;
    if (stk_path(dir, sizeof(dir), err, "%.*s", n ? n : 1, n ? path : ".") < 0)
        return -STK_E_LIMIT;
    int fd STK_AUTO(stk_closep) = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return stk_err_errno(err, errno, "fsync %s", dir);
    return 0;
}

static int fill(const char *path, int fd, mode_t mode, stk_str content, stk_err *err)
{
    if (fchmod(fd, mode) < 0)
        return stk_err_errno(err, errno, "chmod %s", path);
    if (stk_fd_write_all(fd, content.p, content.n, err) < 0)
        return stk_err_wrap(err, "%s", path);
    if (fsync(fd) < 0)
        return stk_err_errno(err, errno, "fsync %s", path);
    return 0;
}

int stk_file_replace(const char *path, mode_t mode, stk_str content, stk_err *err)
{
    char tmp[4096];
    uint64_t unique;
    stk_random(&unique, sizeof(unique));
    if (stk_path(tmp, sizeof(tmp), err, "%s.tmp-%016llx", path, (unsigned long long)unique) < 0)
        return -STK_E_LIMIT;
    int fd STK_AUTO(stk_closep) = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return stk_err_errno(err, errno, "create %s", tmp);
    int rc = fill(tmp, fd, mode, content, err);
    if (rc == 0 && rename(tmp, path) < 0)
        rc = stk_err_errno(err, errno, "rename to %s", path);
    if (rc < 0) {
        unlink(tmp);
        return rc;
    }
    return stk_sync_parent(path, err);
}

int stk_file_put(int dirfd, const char *name, stk_str content, stk_err *err)
{
    int fd STK_AUTO(stk_closep) = openat(dirfd, name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return stk_err_errno(err, errno, "open %s", name);
    ssize_t done;
    do
        done = write(fd, content.p, content.n);
    while (done < 0 && errno == EINTR);
    if (done < 0)
        return stk_err_errno(err, errno, "write %s", name);
    if ((size_t)done != content.n)
        return stk_err_set(err, STK_E_SYSTEM, "write %s: only %zd of %zu bytes were taken", name, done,
                           content.n);
    return 0;
}

static int make_one(const char *path, mode_t mode, stk_err *err)
{
    struct stat st;
    if (mkdir(path, mode) == 0)
        return 0;
    int why = errno;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return 0;
    return stk_err_errno(err, why == EEXIST ? ENOTDIR : why, "make directory %s", path);
}

int stk_mkdirs(const char *path, mode_t mode, stk_err *err)
{
    char part[4096];
    if (stk_path(part, sizeof(part), err, "%s", path) < 0)
        return -STK_E_LIMIT;
    for (char *p = part + 1; part[0] && *p; p++) {
        if (*p != '/' || p[-1] == '/')
            continue;
        *p = '\0';
        int rc = make_one(part, mode, err);
        if (rc < 0)
            return rc;
        *p = '/';
    }
    return make_one(part, mode, err);
}

int stk_path(char *out, size_t size, stk_err *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(out, size, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= size) {
        int rc = stk_err_set(err, STK_E_LIMIT, "path is longer than %zu bytes: %.80s", size - 1, out);
        out[0] = '\0';
        return rc;
    }
    return 0;
}

/* What the holder wrote into the file; 0 when that is no pid. */
static pid_t lock_holder(int fd)
{
    char text[16] = "";
    uint64_t pid = 0;
    ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
    size_t digits = n > 0 ? strspn(text, "0123456789") : 0;
    return stk_str_u64(stk_str_n(text, digits), INT32_MAX, &pid) ? (pid_t)pid : 0;
}

/* A killed holder's child lets go of the lock only when it executes its program: a moment later. */
static int lock_wait(int fd, const char *path, stk_err *err)
{
    for (int tries = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; tries++) {
        if (errno != EWOULDBLOCK)
            return stk_err_errno(err, errno, "lock %s", path);
        pid_t pid = lock_holder(fd);
        bool dead = pid > 0 && kill(pid, 0) < 0 && errno == ESRCH;
        if (!dead || tries == LOCK_TRIES)
            return pid > 0 ? stk_err_set(err, STK_E_CONFLICT, "%s is held by process %d", path, (int)pid)
                           : stk_err_set(err, STK_E_CONFLICT, "%s is held by process (unknown)", path);
        nanosleep(&(struct timespec){.tv_nsec = LOCK_PAUSE_NS}, NULL);
    }
    return 0;
}

int stk_lock_file(const char *path, int *ret_fd, stk_err *err)
{
    int fd STK_AUTO(stk_closep) = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return stk_err_errno(err, errno, "open %s", path);
    int rc = lock_wait(fd, path, err);
    if (rc < 0)
        return rc;
    char pid[16];
    int n = snprintf(pid, sizeof(pid), "%d\n", (int)getpid());
    if (ftruncate(fd, 0) < 0 || pwrite(fd, pid, (size_t)n, 0) != n)
        return stk_err_errno(err, errno, "write %s", path);
    *ret_fd = fd;
    fd = -1;
    return 0;
}
