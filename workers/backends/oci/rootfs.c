#include "proto/base/fd.h"
#include "workers/backends/oci/oci.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

static const char *const directories[] = {"usr",
                                          "proc",
                                          "dev",
                                          "tmp",
                                          "workspace",
                                          "etc",
                                          "etc/ssl",
                                          "etc/ssl/certs",
                                          "etc/alternatives",
                                          "root",
                                          "run",
                                          "var",
                                          ".stockade",
                                          ".stockade/l",
                                          ".stockade/p",
                                          "app",
                                          NULL};
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

/* Bind targets for files must exist beforehand: a runtime would create them in the root on the host. */
static int touch(const char *root, const char *name, stk_err *err)
{
    char path[512];
    int rc = stk_path(path, sizeof(path), err, "%s/%s", root, name);
    return rc < 0 ? rc : stk_file_replace(path, 0644, STK_STR(""), err);
}

int stk_oci_rootfs_prepare(const char *run_dir, stk_err *err)
{
    char root[256], path[512];
    int rc = stk_path(root, sizeof(root), err, "%s/root", run_dir);
    for (size_t i = 0; rc == 0 && directories[i]; i++) {
        rc = stk_path(path, sizeof(path), err, "%s/%s", root, directories[i]);
        if (rc == 0)
            rc = stk_mkdirs(path, 0755, err);
    }
    if (rc == 0)
        rc = touch(root, ".stockade/runtime", err);
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
