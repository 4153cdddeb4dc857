#include "proto/base/fd.h"
#include "workers/backends/oci/oci.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <linux/magic.h>

#define CGROUP_ROOT "/sys/fs/cgroup"

static bool fs_is(const char *path, long magic)
{
    struct statfs fs;
    return statfs(path, &fs) == 0 && fs.f_type == magic;
}

/* v1 hierarchies whose controllers we set limits in, plus those a runtime makes directories in. */
static void find_v1(stk_cgroups *cg)
{
    DIR *dir = opendir(CGROUP_ROOT);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir)) && cg->n < STK_COUNT(cg->controllers);) {
        char path[300];
        snprintf(path, sizeof(path), CGROUP_ROOT "/%s", entry->d_name);
        struct stat st;
        if (entry->d_name[0] == '.' || strlen(entry->d_name) >= sizeof(cg->controllers[0]) ||
            lstat(path, &st) < 0 || !S_ISDIR(st.st_mode) || !fs_is(path, CGROUP_SUPER_MAGIC))
            continue;
        snprintf(cg->controllers[cg->n++], sizeof(cg->controllers[0]), "%.31s", entry->d_name);
    }
    closedir(dir);
}

/* In v1 an ordinary user may have been given our parent cgroup in each hierarchy. */
static bool can_write(const char *root, const char *parent)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s/cgroup.procs", root, parent);
    return access(root, W_OK) == 0 || access(path, W_OK) == 0;
}

static void check_writable(stk_cgroups *cg, const char *parent)
{
    static const char *const needed[] = {"memory", "pids", "cpu"};
    cg->writable = true;
    for (size_t i = 0; cg->writable && i < STK_COUNT(needed); i++) {
        char path[128];
        bool v2 = cg->layout == STK_CGROUP_V2;
        snprintf(path, sizeof(path), CGROUP_ROOT "%s%s", v2 ? "" : "/", v2 ? "" : needed[i]);
        if (v2 ? access(path, W_OK) == 0 : can_write(path, parent))
            continue;
        cg->writable = false;
        snprintf(cg->why, sizeof(cg->why), "%s: %s is not writable by this user", needed[i], path);
    }
}

void stk_cgroups_find(const char *parent, stk_cgroups *ret)
{
    *ret = (stk_cgroups){0};
    if (fs_is(CGROUP_ROOT, CGROUP2_SUPER_MAGIC)) {
        ret->layout = STK_CGROUP_V2;
        ret->n = 1;
    } else {
        find_v1(ret);
        bool unified = fs_is(CGROUP_ROOT "/unified", CGROUP2_SUPER_MAGIC);
        ret->layout = ret->n == 0 ? STK_CGROUP_NONE : unified ? STK_CGROUP_HYBRID : STK_CGROUP_V1;
        ret->swap = access(CGROUP_ROOT "/memory/memory.memsw.limit_in_bytes", F_OK) == 0;
    }
    if (ret->layout == STK_CGROUP_NONE)
        snprintf(ret->why, sizeof(ret->why), "no cgroup file system is mounted at " CGROUP_ROOT);
    else
        check_writable(ret, parent);
}

static void cgroup_path(const stk_cgroups *cg, size_t i, const char *path, char out[512])
{
    snprintf(out, 512, CGROUP_ROOT "/%s%s", cg->controllers[i], path);
}

static int64_t counter(const char *file, const char *name)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(4096);
    stk_err ignored;
    if (stk_file_read(file, &text, &ignored) < 0)
        return -1;
    size_t length = strlen(name);
    for (char *line = text.p; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, name, length) == 0 && line[length] == ' ')
            return strtoll(line + length + 1, NULL, 10);
    return -1;
}

int64_t stk_cgroups_oom_kills(const stk_cgroups *cg, const char *path)
{
    char file[600];
    if (!*path || cg->layout == STK_CGROUP_NONE)
        return -1;
    if (cg->layout == STK_CGROUP_V2)
        snprintf(file, sizeof(file), CGROUP_ROOT "%s/memory.events", path);
    else
        snprintf(file, sizeof(file), CGROUP_ROOT "/memory%s/memory.oom_control", path);
    return counter(file, "oom_kill");
}

static bool tell(const char *dir, const char *name, const char *text)
{
    char file[600];
    snprintf(file, sizeof(file), "%s/%s", dir, name);
    int fd STK_AUTO(stk_closep) = open(file, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) > 0;
}

/* What is frozen in v1 does not even die. */
static void kill_members(const char *dir)
{
    char file[600];
    if (tell(dir, "cgroup.kill", "1"))
        return;
    tell(dir, "freezer.state", "THAWED");
    snprintf(file, sizeof(file), "%s/cgroup.procs", dir);
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(1 << 20);
    stk_err ignored;
    if (stk_file_read(file, &text, &ignored) < 0 || text.n == 0)
        return;
    for (char *p = text.p, *end; *p; p = end + (*end == '\n')) {
        long pid = strtol(p, &end, 10);
        if (end == p)
            break;
        if (pid > 1)
            kill((pid_t)pid, SIGKILL);
    }
}

/* Depth first: a runtime or a v2 delegate may have made children. */
static bool remove_tree(const char *dir, int depth)
{
    if (rmdir(dir) == 0 || errno == ENOENT)
        return true;
    DIR *handle = depth < 8 ? opendir(dir) : NULL;
    for (struct dirent *entry; handle && (entry = readdir(handle));) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        char child[512];
        if ((size_t)snprintf(child, sizeof(child), "%s/%s", dir, entry->d_name) < sizeof(child))
            remove_tree(child, depth + 1);
    }
    if (handle)
        closedir(handle);
    kill_members(dir);
    return rmdir(dir) == 0 || errno == ENOENT;
}

bool stk_cgroups_remove(const stk_cgroups *cg, const char *path)
{
    bool gone = true;
    for (size_t i = 0; *path && i < cg->n; i++) {
        char dir[512];
        cgroup_path(cg, i, path, dir);
        gone = remove_tree(dir, 0) && gone;
    }
    if (*path && cg->layout == STK_CGROUP_HYBRID) {
        char dir[512];
        snprintf(dir, sizeof(dir), CGROUP_ROOT "/unified%s", path);
        gone = remove_tree(dir, 0) && gone;
    }
    return gone;
}

void stk_cgroups_prune(const stk_cgroups *cg, const char *path)
{
    char dir[512];
    for (size_t i = 0; *path && i < cg->n; i++) {
        cgroup_path(cg, i, path, dir);
        rmdir(dir);
    }
    snprintf(dir, sizeof(dir), CGROUP_ROOT "/unified%s", path);
    if (*path && cg->layout == STK_CGROUP_HYBRID)
        rmdir(dir);
}

typedef struct names {
    char (*v)[64];
    size_t n;
} names;

static void add_once(names *list, const char *name)
{
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->v[i], name) == 0)
            return;
    list->v = stk_xrealloc(list->v, (list->n + 1) * sizeof(*list->v));
    snprintf(list->v[list->n++], sizeof(*list->v), "%.63s", name);
}

void stk_cgroups_each_child(const stk_cgroups *cg, const char *path, void (*fn)(const char *name, void *arg),
                            void *arg)
{
    names list = {0};
    for (size_t i = 0; i < cg->n; i++) {
        char dir[512];
        cgroup_path(cg, i, path, dir);
        DIR *handle = opendir(dir);
        for (struct dirent *entry; handle && (entry = readdir(handle));)
            if (entry->d_type == DT_DIR && entry->d_name[0] != '.' && strlen(entry->d_name) < sizeof(*list.v))
                add_once(&list, entry->d_name);
        if (handle)
            closedir(handle);
    }
    for (size_t i = 0; i < list.n; i++)
        fn(list.v[i], arg);
    free(list.v);
}
