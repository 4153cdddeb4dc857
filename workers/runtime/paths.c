#include "workers/runtime/paths.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#define TRIES 16

/* Copies the next component and returns what follows it; NULL when it is too long. */
static const char *component(const char *path, char out[NAME_MAX + 1])
{
    size_t n = strcspn(path, "/");
    if (n > NAME_MAX)
        return NULL;
    memcpy(out, path, n);
    out[n] = '\0';
    return path + n + strspn(path + n, "/");
}

static int refuse(int errnum)
{
    errno = errnum;
    return -1;
}

static int walk(int root, const char *path, int flags, unsigned mode)
{
    int dir STK_AUTO(stk_closep) = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (dir >= 0) {
        char name[NAME_MAX + 1];
        const char *next = component(path, name);
        if (!next)
            return refuse(ENAMETOOLONG);
        if (strcmp(name, "..") == 0)
            return refuse(EXDEV);
        if (*next == '\0')
            return openat(dir, *name ? name : ".", flags | O_NOFOLLOW | O_CLOEXEC, mode);
        int sub = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (sub < 0)
            return -1;
        close(dir);
        dir = sub;
        path = next;
    }
    return -1;
}

int stk_open_beneath(int root, const char *path, int flags, unsigned mode)
{
    struct open_how how = {
        .flags = (uint64_t)(unsigned)flags | O_CLOEXEC,
        .mode = mode,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
    };
    if (*path == '/')
        return refuse(EXDEV);
    int fd;
    int tries = 0;
    do /* EAGAIN: a ".." was overtaken by a rename */
        fd = (int)syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));
    while (fd < 0 && errno == EAGAIN && ++tries < TRIES);
    bool unknown = fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EAGAIN);
    return unknown ? walk(root, path, flags, mode) : fd;
}
