#include "proto/base/fd.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

/* The tree may have been made by hostile code, as deep as its file system allows: so no recursion and no
 * descriptor per level. A directory below the first level is renamed up into the first and removed from
 * there. */
typedef struct remover {
    int top;
    unsigned moved;
    size_t progress;
} remover;

static void closedirp(DIR **dir)
{
    if (*dir)
        closedir(*dir);
}

static bool is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* Its owner may have taken our own permissions away. */
static void unlock_dir(int dirfd, const char *name)
{
    int fd STK_AUTO(stk_closep) = openat(dirfd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char link[32];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    if (fd >= 0 && chmod(link, 0700) < 0)
        return;
}

static DIR *open_dir(int dirfd, const char *name)
{
    const int how = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    unlock_dir(dirfd, name);
    int fd = openat(dirfd, name, how);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0)
        close(fd);
    return dir;
}

/* 1 = gone, 0 = a directory with something in it, negative = error. */
static int remove_leaf(int dirfd, const char *name, stk_err *err)
{
    if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
        return 1;
    int why = errno;
    if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 1;
    if (errno == ENOTEMPTY || errno == EEXIST)
        return 0;
    return stk_err_errno(err, errno == ENOTDIR ? why : errno, "remove %s", name);
}

static int lift(remover *r, int dirfd, const char *name, stk_err *err)
{
    char to[32];
    int rc;
    do {
        snprintf(to, sizeof(to), ".rm-%u", r->moved++);
        rc = renameat(dirfd, name, r->top, to);
    } while (rc < 0 && (errno == EEXIST || errno == ENOTEMPTY || errno == ENOTDIR));
    return rc < 0 && errno != ENOENT ? stk_err_errno(err, errno, "move %s", name) : 0;
}

static int empty_child(remover *r, const char *child, stk_err *err)
{
    DIR *dir STK_AUTO(closedirp) = open_dir(r->top, child);
    if (!dir)
        return stk_err_errno(err, errno, "open %s", child);
    struct dirent *e;
    while ((e = readdir(dir))) {
        if (is_dots(e->d_name))
            continue;
        int rc = remove_leaf(dirfd(dir), e->d_name, err);
        if (rc == 0) {
            unlock_dir(dirfd(dir), e->d_name);
            rc = lift(r, dirfd(dir), e->d_name, err);
        }
        if (rc < 0)
            return rc;
        r->progress++;
    }
    return remove_leaf(r->top, child, err);
}

static int pass(remover *r, DIR *top, bool *ret_empty, stk_err *err)
{
    struct dirent *e;
    *ret_empty = true;
    rewinddir(top);
    while ((e = readdir(top))) {
        if (is_dots(e->d_name))
            continue;
        *ret_empty = false;
        int rc = remove_leaf(r->top, e->d_name, err);
        if (rc > 0)
            r->progress++;
        if (rc == 0)
            rc = empty_child(r, e->d_name, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int stk_rmtree(int dirfd_, const char *name, stk_err *err)
{
    int rc = remove_leaf(dirfd_, name, err);
    if (rc != 0)
        return rc < 0 ? rc : 0;
    DIR *top STK_AUTO(closedirp) = open_dir(dirfd_, name);
    if (!top)
        return stk_err_errno(err, errno, "open %s", name);
    remover r = {.top = dirfd(top)};
    for (bool empty = false; !empty;) {
        size_t before = r.progress;
        rc = pass(&r, top, &empty, err);
        if (rc < 0)
            return stk_err_wrap(err, "remove tree %s", name);
        if (!empty && r.progress == before)
            return stk_err_set(err, STK_E_SYSTEM, "remove tree %s: it does not become empty", name);
    }
    rc = remove_leaf(dirfd_, name, err);
    return rc == 0  ? stk_err_set(err, STK_E_SYSTEM, "remove tree %s: it does not become empty", name)
           : rc < 0 ? rc
                    : 0;
}
