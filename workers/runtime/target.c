#include "workers/runtime/target.h"
#include "workers/runtime/paths.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int stk_target_relative(const stk_runtime *rt, stk_str path, char out[PATH_MAX], stk_err *err)
{
    stk_str root = stk_str_of(rt->opt->root);
    while (root.n && root.p[root.n - 1] == '/')
        root.n--;
    if (path.n && path.p[0] == '/' && stk_str_starts(path, root) &&
        (path.n == root.n || path.p[root.n] == '/')) {
        path = stk_str_n(path.p + root.n, path.n - root.n);
        while (path.n && path.p[0] == '/')
            path = stk_str_n(path.p + 1, path.n - 1);
    }
    if (path.n && memchr(path.p, '\0', path.n))
        return stk_err_set(err, STK_E_FORBIDDEN, "the path holds a NUL byte");
    if (path.n && path.p[0] == '/')
        return stk_err_set(err, STK_E_FORBIDDEN, "the path leaves the root");
    if (!stk_str_copy(path, out, PATH_MAX))
        return stk_err_set(err, STK_E_NOT_FOUND, "the path is too long");
    return 0;
}

int stk_target_of(const stk_exchange *ex, const char *prefix, char out[PATH_MAX], stk_err *err)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(4 * PATH_MAX);
    stk_str path = stk_http_path(ex->x), skip = stk_str_of(prefix);
    path = stk_str_starts(path, skip) ? stk_str_n(path.p + skip.n, path.n - skip.n) : (stk_str){NULL, 0};
    int rc = stk_percent_decode(path, &text, err);
    if (rc == -STK_E_LIMIT)
        return stk_err_set(err, STK_E_NOT_FOUND, "the path is too long");
    return rc < 0 ? rc : stk_target_relative(ex->rt, stk_buf_view(&text), out, err);
}

int stk_target_errno(int errnum, stk_err *err)
{
    switch (errnum) {
    case EXDEV:
        return stk_err_set(err, STK_E_FORBIDDEN, "the path leaves the root");
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
        return stk_err_set(err, STK_E_NOT_FOUND, "%s", strerrordesc_np(errnum));
    case EACCES:
    case EPERM:
    case EROFS:
        return stk_err_set(err, STK_E_FORBIDDEN, "%s", strerrordesc_np(errnum));
    case ELOOP:
    case ENXIO:
    case EEXIST:
    case EISDIR:
    case ENOTEMPTY:
    case EBUSY:
        return stk_err_set(err, STK_E_CONFLICT, "%s", strerrordesc_np(errnum));
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
        return stk_err_set(err, STK_E_UNAVAILABLE, "%s", strerrordesc_np(errnum));
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return stk_err_set(err, STK_E_NO_SPACE, "%s", strerrordesc_np(errnum));
    default:
        return stk_err_set(err, STK_E_SYSTEM, "%s", strerrordesc_np(errnum));
    }
}

#define DIR_FLAGS (O_PATH | O_DIRECTORY)

/* Each directory on the way is opened from the root anew, so that a name that is changed meanwhile leads
 * nowhere else. */
static int make_way(int root, char *dir, stk_err *err)
{
    int at STK_AUTO(stk_closep) = stk_open_beneath(root, "", DIR_FLAGS, 0);
    for (char *slash = dir; *slash;) {
        char *name = slash;
        slash = strchrnul(name, '/');
        char was = *slash;
        *slash = '\0';
        int next = stk_open_beneath(root, dir, DIR_FLAGS, 0);
        if (next < 0 && errno == ENOENT && (mkdirat(at, name, 0755) == 0 || errno == EEXIST))
            next = stk_open_beneath(root, dir, DIR_FLAGS, 0);
        *slash = was;
        if (next < 0)
            return errno == ENOTDIR || errno == ENOENT
                       ? stk_err_set(err, STK_E_CONFLICT, "a part of the path is no directory")
                       : stk_target_errno(errno, err);
        close(at);
        at = next;
        slash += strspn(slash, "/");
    }
    int found = at;
    at = -1;
    return found;
}

int stk_target_parent(int root, const char *path, bool make, char ret_name[NAME_MAX + 1], int *ret_dir,
                      stk_err *err)
{
    char dir[PATH_MAX];
    size_t n = strlen(path);
    while (n && path[n - 1] == '/')
        n--;
    const char *slash = n ? memrchr(path, '/', n) : NULL;
    size_t from = slash ? (size_t)(slash - path) + 1 : 0;
    stk_str name = {path + from, n - from};
    if (name.n == 0 || stk_str_eq(name, STK_STR(".")) || stk_str_eq(name, STK_STR("..")))
        return stk_err_set(err, STK_E_FORBIDDEN, "the path names the root, or ends with '.' or '..'");
    if (!stk_str_copy(name, ret_name, NAME_MAX + 1))
        return stk_target_errno(ENAMETOOLONG, err);
    memcpy(dir, path, from);
    dir[from] = '\0';
    int fd = stk_open_beneath(root, dir, DIR_FLAGS, 0);
    if (fd < 0 && make && (errno == ENOENT || errno == ENOTDIR))
        fd = make_way(root, dir, err);
    else if (fd < 0)
        fd = stk_target_errno(errno, err);
    if (fd < 0)
        return fd;
    *ret_dir = fd;
    return 0;
}

/* Links are not followed, so one that is refused is told apart by where it leads. */
static int refuse_open(int root, const char *path, int errnum, stk_err *err)
{
    if (errnum == EISDIR)
        return stk_err_set(err, STK_E_NOT_FOUND, "a directory");
    if (errnum != ELOOP)
        return stk_target_errno(errnum, err);
    int fd STK_AUTO(stk_closep) = stk_open_beneath(root, path, O_PATH, 0);
    if (fd < 0 && errno == EXDEV)
        return stk_target_errno(EXDEV, err);
    return stk_err_set(err, STK_E_CONFLICT, "a symbolic link; links are not followed");
}

int stk_target_open(int root, const char *path, int *ret_fd, uint64_t *ret_size, stk_err *err)
{
    struct stat st;
    int fd STK_AUTO(stk_closep) =
        stk_open_beneath(root, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY, 0);
    if (fd < 0)
        return refuse_open(root, path, errno, err);
    if (fstat(fd, &st) < 0)
        return stk_target_errno(errno, err);
    if (S_ISDIR(st.st_mode))
        return stk_err_set(err, STK_E_NOT_FOUND, "a directory");
    if (!S_ISREG(st.st_mode))
        return stk_err_set(err, STK_E_CONFLICT, "not a regular file");
    *ret_fd = fd;
    *ret_size = (uint64_t)st.st_size;
    fd = -1;
    return 0;
}
