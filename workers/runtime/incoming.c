#include "workers/runtime/incoming.h"
#include "workers/runtime/target.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>

static int check_place(stk_incoming *in, stk_err *err)
{
    struct stat st;
    if (fstatat(in->dir, in->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        st = (struct stat){.st_mode = S_IFREG | 0644}; /* nothing there; another fault shows when we write */
    if (S_ISDIR(st.st_mode))
        return stk_err_set(err, STK_E_CONFLICT, "a directory of that name is there");
    if (!S_ISREG(st.st_mode))
        return stk_err_set(err, STK_E_CONFLICT, "what is there is not a regular file");
    if (in->mode == STK_MODE_KEEP)
        in->mode = st.st_mode & 0777;
    return 0;
}

int stk_incoming_open(int root, const char *path, mode_t mode, stk_incoming *ret, stk_err *err)
{
    stk_incoming in STK_AUTO(stk_incoming_drop) = STK_INCOMING_NONE;
    uint64_t random = 0;
    in.mode = mode;
    int rc = stk_target_parent(root, path, true, in.name, &in.dir, err);
    if (rc == 0)
        rc = check_place(&in, err);
    if (rc < 0)
        return rc;
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        return stk_target_errno(errno, err);
    snprintf(in.temp, sizeof(in.temp), ".upload-%016llx", (unsigned long long)random);
    in.fd = openat(in.dir, in.temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (in.fd < 0)
        return stk_target_errno(errno, err);
    *ret = in;
    in = STK_INCOMING_NONE;
    return 0;
}

int stk_incoming_write(stk_incoming *in, stk_str data, stk_err *err)
{
    while (data.n) {
        ssize_t n = write(in->fd, data.p, data.n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return stk_target_errno(n < 0 ? errno : ENOSPC, err);
        in->size += (uint64_t)n;
        data = stk_str_n(data.p + n, data.n - (size_t)n);
    }
    return 0;
}

int stk_incoming_commit(stk_incoming *in, stk_err *err)
{
    if (fchmod(in->fd, in->mode) < 0)
        return stk_target_errno(errno, err);
    int fd = in->fd;
    in->fd = -1;
    if (close(fd) < 0 || renameat(in->dir, in->temp, in->dir, in->name) < 0) {
        int why = errno;
        unlinkat(in->dir, in->temp, 0);
        return stk_target_errno(why, err);
    }
    return 0;
}

void stk_incoming_drop(stk_incoming *in)
{
    if (in->fd >= 0) {
        unlinkat(in->dir, in->temp, 0);
        close(in->fd);
    }
    if (in->dir >= 0)
        close(in->dir);
    *in = STK_INCOMING_NONE;
}
