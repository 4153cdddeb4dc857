#include "proto/base/fd.h"
#include "workers/backends/oci/oci.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Of our own root. runc gives a tmpfs the mode of the directory below it. */
static const struct directory {
    const char *path;
    mode_t mode;
} directories[] = {{"", 0755},        {"usr", 0755},           {"etc", 0755},
                   {"etc/ssl", 0755}, {"etc/ssl/certs", 0755}, {"etc/alternatives", 0755},
                   {"root", 0755},    {"run", 0755},           {"var", 0755},
                   {"app", 0755}};
/* Of every root: what is mounted over. A runtime would make them in the root on the host, or fail to. */
static const struct directory mount_points[] = {
    {"proc", 0555},      {"dev", 0755},         {"tmp", 01777},       {"workspace", 01777},
    {".stockade", 0755}, {".stockade/l", 0755}, {".stockade/p", 0755}};
static const char *const merged[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32", NULL};

static const struct text_file {
    const char *path, *text;
} files[] = {
    {"etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n"
                   "sandbox:x:65532:65532:sandbox:/workspace:/bin/sh\n"
                   "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"},
    {"etc/group", "root:x:0:\nsandbox:x:65532:\nnogroup:x:65534:\n"},
    {"etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"},
    {"etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"},
    {"etc/resolv.conf", ""},
};

/* Copies a host file when it is there: what the loader and TLS clients need. */
static int copy_host_file(const char *root, const char *from, const char *to, stk_err *err)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(8 << 20);
    char path[512];
    int rc = stk_file_read(from, &text, err);
    if (rc == -STK_E_NOT_FOUND)
        return 0;
    if (rc < 0 || (rc = stk_path(path, sizeof(path), err, "%s/%s", root, to)) < 0)
        return rc;
    return stk_file_replace(path, 0644, stk_buf_view(&text), err);
}

/* /etc/alternatives holds only links into /usr: they are made again, nothing of the host is bound. */
static void copy_alternatives(const char *root)
{
    DIR *dir = opendir("/etc/alternatives");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char target[512], link[1024];
        ssize_t n = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
        if (n <= 0)
            continue;
        target[n] = '\0';
        snprintf(link, sizeof(link), "%s/etc/alternatives/%s", root, entry->d_name);
        int ignored = symlink(target, link);
        (void)ignored;
    }
    if (dir)
        closedir(dir);
}

/* /bin -> usr/bin and so on, as on the host; a host without merged /usr is refused by the caller's probe. */
static int link_merged(const char *root, stk_err *err)
{
    for (size_t i = 0; merged[i]; i++) {
        char host[32], link[512], target[32];
        struct stat st;
        snprintf(host, sizeof(host), "/%s", merged[i]);
        if (lstat(host, &st) < 0)
            continue;
        if (!S_ISLNK(st.st_mode))
            return stk_err_set(err, STK_E_BACKEND,
                               "%s is no link into /usr: give a root file system (rootfs)", host);
        snprintf(target, sizeof(target), "usr/%s", merged[i]);
        snprintf(link, sizeof(link), "%s/%s", root, merged[i]);
        if (symlink(target, link) < 0 && errno != EEXIST)
            return stk_err_errno(err, errno, "link %s", link);
    }
    return 0;
}

static int write_files(const char *root, stk_err *err)
{
    for (size_t i = 0; i < STK_COUNT(files); i++) {
        char path[512];
        int rc = stk_path(path, sizeof(path), err, "%s/%s", root, files[i].path);
        if (rc == 0)
            rc = stk_file_replace(path, 0644, stk_str_of(files[i].text), err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* One directory below root, without following a link of the root's: it may be anybody's image. */
static int make_directory(int root, const char *path, mode_t mode, stk_err *err)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    struct stat st;
    if (*path && mkdirat(root, path, mode) < 0 && errno != EEXIST)
        return stk_err_errno(err, errno, "make %s in the sandbox's root", path);
    int fd STK_AUTO(stk_closep) = (int)syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof(how));
    if (fd < 0 || fstat(fd, &st) < 0)
        return stk_err_errno(err, errno, "open %s in the sandbox's root", path);
    if ((st.st_mode & 07777) != mode && fchmod(fd, mode) < 0)
        return stk_err_errno(err, errno, "set the mode of %s in the sandbox's root", path);
    return 0;
}

static int make_mount_points(const char *path, stk_err *err)
{
    int root STK_AUTO(stk_closep) = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return stk_err_errno(err, errno, "open the root file system %s", path);
    for (size_t i = 0; i < STK_COUNT(mount_points); i++) {
        int rc = make_directory(root, mount_points[i].path, mount_points[i].mode, err);
        if (rc < 0)
            return rc;
    }
    int target STK_AUTO(stk_closep) =
        openat(root, ".stockade/runtime", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    return target < 0 ? stk_err_errno(err, errno, "make .stockade/runtime in %s", path) : 0;
}

int stk_oci_rootfs_check(const char *root, stk_err *err)
{
    int rc = make_mount_points(root, err);
    return rc < 0 ? stk_err_wrap(err, "prepare the root file system %s", root) : 0;
}

static int make_directories(const char *root, stk_err *err)
{
    int rc = stk_mkdirs(root, 0755, err);
    if (rc < 0)
        return rc;
    int fd STK_AUTO(stk_closep) = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return stk_err_errno(err, errno, "open %s", root);
    for (size_t i = 0; rc == 0 && i < STK_COUNT(directories); i++)
        rc = make_directory(fd, directories[i].path, directories[i].mode, err);
    return rc;
}

int stk_oci_rootfs_prepare(const char *run_dir, stk_err *err)
{
    char root[256];
    int rc = stk_path(root, sizeof(root), err, "%s/root", run_dir);
    if (rc == 0)
        rc = make_directories(root, err);
    if (rc == 0)
        rc = make_mount_points(root, err);
    if (rc == 0)
        rc = link_merged(root, err);
    if (rc == 0)
        rc = write_files(root, err);
    if (rc == 0)
        rc = copy_host_file(root, "/etc/ld.so.cache", "etc/ld.so.cache", err);
    if (rc == 0)
        rc = copy_host_file(root, "/etc/ssl/certs/ca-certificates.crt", "etc/ssl/certs/ca-certificates.crt",
                            err);
    if (rc < 0)
        return stk_err_wrap(err, "prepare the sandbox root %s", root);
    copy_alternatives(root);
    return 0;
}
