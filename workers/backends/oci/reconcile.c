#include "proto/base/fd.h"
#include "proto/base/id.h"
#include "workers/backends/oci/oci.h"
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#define RECONCILE_POLL  stk_ms(5)
#define RECONCILE_LIMIT stk_sec(15)

/* What an earlier life of this worker left: names of sandboxes, from directories, cgroups and journals. */
typedef struct leftovers {
    stk_oci *oci;
    char (*names)[STK_ID_SIZE];
    size_t n;
    stk_timer *timer;
    stk_mono until;
    void (*journal)(const char *path, const char *sandbox, void *arg);
    stk_destroy_done done;
    void *arg;
} leftovers;

static void add_name(const char *name, void *arg)
{
    leftovers *left = arg;
    if (!stk_id_valid("sbx", stk_str_of(name)))
        return;
    for (size_t i = 0; i < left->n; i++)
        if (strcmp(left->names[i], name) == 0)
            return;
    left->names = stk_xrealloc(left->names, (left->n + 1) * sizeof(*left->names));
    snprintf(left->names[left->n++], STK_ID_SIZE, "%s", name);
}

static void add_directory(leftovers *left, const char *path)
{
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        add_name(entry->d_name, left);
    if (dir)
        closedir(dir);
}

/* Without cgroups: the pid file, if that process still is our runtime. */
static bool pid_file_gone(const stk_oci *oci, const char *name)
{
    char path[512], expected[] = "/.stockade/runtime";
    stk_err ignored;
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(4096);
    uint64_t pid;
    snprintf(path, sizeof(path), "%s/%s/pid", oci->env.run_dir, name);
    if (stk_file_read(path, &text, &ignored) < 0 || !stk_str_u64(stk_buf_view(&text), INT32_MAX, &pid) ||
        pid < 2)
        return true;
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    stk_buf_reset(&text);
    if (stk_file_read(path, &text, &ignored) < 0 || text.n < sizeof(expected) ||
        memcmp(text.p, expected, sizeof(expected)) != 0)
        return true;
    kill((pid_t)pid, SIGKILL);
    return false;
}

static bool remove_one(leftovers *left, const char *name)
{
    char cgroup[256], path[512];
    stk_err ignored;
    const stk_oci *oci = left->oci;
    snprintf(cgroup, sizeof(cgroup), "/%s/%s/%s", oci->env.cgroup, oci->env.worker, name);
    if (!stk_cgroups_remove(&oci->cg, cgroup) || !pid_file_gone(oci, name))
        return false;
    snprintf(path, sizeof(path), "%s/rt/%s", oci->env.run_dir, name);
    if (stk_rmtree(AT_FDCWD, path, &ignored) < 0)
        return false;
    snprintf(path, sizeof(path), "%s/%s", oci->env.run_dir, name);
    return stk_rmtree(AT_FDCWD, path, &ignored) == 0;
}

static void emit_journals(leftovers *left)
{
    char dir_path[256];
    snprintf(dir_path, sizeof(dir_path), "%s/journal", left->oci->env.state_dir);
    DIR *dir = opendir(dir_path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        size_t n = strlen(entry->d_name);
        char path[600], name[STK_ID_SIZE];
        if (n < 7 || strcmp(entry->d_name + n - 6, ".jsonl") != 0 || n - 6 >= sizeof(name))
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)(n - 6), entry->d_name);
        snprintf(path, sizeof(path), "%s/%s", dir_path, entry->d_name);
        left->journal(path, name, left->arg);
    }
    if (dir)
        closedir(dir);
}

static void step(void *arg)
{
    leftovers *left = arg;
    for (size_t i = 0; i < left->n;) {
        if (!remove_one(left, left->names[i])) {
            i++;
            continue;
        }
        memmove(left->names[i], left->names[left->n - 1], STK_ID_SIZE);
        left->n--;
    }
    bool late = stk_mono_before(left->until, stk_mono_now());
    if (left->n && !late) {
        stk_timer_set(left->timer, RECONCILE_POLL);
        return;
    }
    emit_journals(left);
    stk_err err;
    if (left->n)
        stk_err_set(&err, STK_E_SANDBOX, "%zu sandboxes of an earlier life can't be removed, %s among them",
                    left->n, left->names[0]);
    leftovers end = *left;
    free(left->names);
    stk_timer_free(left->timer);
    free(left);
    end.done(end.n ? &err : NULL, end.arg);
}

void stk_oci_reconcile(stk_backend *be, void (*journal)(const char *path, const char *sandbox, void *arg),
                       stk_destroy_done done, void *arg)
{
    stk_oci *oci = STK_CONTAINER(be, stk_oci, be);
    leftovers *left = stk_xcalloc(1, sizeof(*left));
    *left = (leftovers){.oci = oci, .journal = journal, .done = done, .arg = arg};
    left->until = stk_mono_add(stk_mono_now(), RECONCILE_LIMIT);
    char path[512];
    add_directory(left, oci->env.run_dir);
    snprintf(path, sizeof(path), "%s/rt", oci->env.run_dir);
    add_directory(left, path);
    snprintf(path, sizeof(path), "/%s/%s", oci->env.cgroup, oci->env.worker);
    stk_cgroups_each_child(&oci->cg, path, add_name, left);
    left->timer = stk_timer_new(oci->env.loop, step, left);
    stk_timer_set(left->timer, stk_us(1));
}
