#include "workers/backends/oci/oci.h"
#include "proto/base/fd.h"
#include "workers/backends/oci/sandbox.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

void stk_oci_paths_fill(const stk_oci *oci, const stk_sandbox_spec *spec, stk_oci_paths *ret)
{
    *ret = (stk_oci_paths){.host_usr = !*oci->env.rootfs, .user = geteuid()};
    ret->group = ret->user ? getegid() : 0;
    snprintf(ret->dir, sizeof(ret->dir), "%s/%s", oci->env.run_dir, spec->id);
    snprintf(ret->runtime_program, sizeof(ret->runtime_program), "%s", oci->runtime_program);
    if (*oci->env.rootfs)
        snprintf(ret->root, sizeof(ret->root), "%s", oci->env.rootfs);
    else
        snprintf(ret->root, sizeof(ret->root), "%s/root", oci->env.run_dir);
    if (oci->cg.writable)
        snprintf(ret->cgroup, sizeof(ret->cgroup), "/%.60s/%s/%s", oci->env.cgroup, oci->env.worker,
                 spec->id);
}

/* Appends one argument; the texts share one buffer, which is larger than all of them together can get. */
STK_PRINTF(2, 3) static void arg_add(stk_oci_argv *argv, const char *fmt, ...)
{
    size_t left = sizeof(argv->text) - argv->used;
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(argv->text + argv->used, left, fmt, args);
    va_end(args);
    if (length < 0 || (size_t)length >= left || argv->n + 1 >= STK_COUNT(argv->v))
        return;
    argv->v[argv->n++] = argv->text + argv->used;
    argv->v[argv->n] = NULL;
    argv->used += (size_t)length + 1;
}

void stk_oci_runtime_argv(const stk_oci *oci, const stk_oci_paths *paths, const char *id, stk_oci_argv *ret)
{
    *ret = (stk_oci_argv){0};
    arg_add(ret, "%s", oci->program);
    arg_add(ret, "--root=%s/rt", oci->env.run_dir);
    arg_add(ret, "--log=%s/log", paths->dir);
    if (oci->kind == STK_OCI_CRUN)
        arg_add(ret, "--cgroup-manager=cgroupfs");
    if (oci->kind == STK_OCI_RUNSC) {
        arg_add(ret, "--platform=systrap");
        arg_add(ret, "--network=none");
        arg_add(ret, "--host-uds=open");
        if (!*paths->cgroup)
            arg_add(ret, "--ignore-cgroups");
    }
    arg_add(ret, "run");
    arg_add(ret, "--detach");
    arg_add(ret, "--bundle=%s", paths->dir);
    arg_add(ret, "--pid-file=%s/pid", paths->dir);
    arg_add(ret, "%s", id);
}

void stk_oci_proxy_argv(const stk_oci *oci, const char *run, stk_oci_argv *ret)
{
    *ret = (stk_oci_argv){0};
    arg_add(ret, "%s", oci->proxy_program);
    arg_add(ret, "--listen=fd:%d", STK_OCI_PROXY_LISTEN_FD);
    arg_add(ret, "--control-fd=%d", STK_OCI_PROXY_CONTROL_FD);
    arg_add(ret, "--journal-fd=%d", STK_OCI_PROXY_JOURNAL_FD);
    for (size_t i = 0; i < oci->nresolvers; i++)
        arg_add(ret, "--resolver=%s", oci->resolvers[i]);
}

/* Nameservers of resolv.conf as IP:53, or the configured list. At most three, as the C library. */
static void find_resolvers(stk_oci *oci)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(65536);
    stk_err ignored;
    if (*oci->env.resolvers) {
        const char *p = oci->env.resolvers;
        while (*p && oci->nresolvers < STK_COUNT(oci->resolvers)) {
            size_t n = strcspn(p, ",");
            snprintf(oci->resolvers[oci->nresolvers++], sizeof(oci->resolvers[0]), "%.*s", (int)n, p);
            p += n + (p[n] == ',');
        }
        return;
    }
    if (stk_file_read("/etc/resolv.conf", &text, &ignored) < 0 || !text.n)
        return;
    for (char *line = text.p; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        char addr[48];
        if (oci->nresolvers < STK_COUNT(oci->resolvers) &&
            sscanf(line, "nameserver %45[0-9a-fA-F:.]", addr) == 1)
            snprintf(oci->resolvers[oci->nresolvers++], sizeof(oci->resolvers[0]),
                     strchr(addr, ':') ? "[%s]:53" : "%s:53", addr);
    }
}

static int plan(stk_backend *be, const stk_sandbox_spec *spec, cJSON **ret_objects, stk_err *err)
{
    stk_oci *oci = STK_CONTAINER(be, stk_oci, be);
    int rc = stk_oci_can(oci, spec, err);
    if (rc < 0)
        return rc;
    stk_oci_paths paths;
    stk_oci_argv runtime, proxy;
    stk_oci_paths_fill(oci, spec, &paths);
    stk_oci_runtime_argv(oci, &paths, spec->id, &runtime);
    stk_oci_proxy_argv(oci, spec->run, &proxy);
    cJSON *objects = cJSON_CreateObject();
    cJSON_AddStringToObject(objects, "runtime", oci->version);
    cJSON_AddItemToObject(objects, "runtime_argv", cJSON_CreateStringArray(runtime.v, (int)runtime.n));
    cJSON_AddItemToObject(objects, "proxy_argv", cJSON_CreateStringArray(proxy.v, (int)proxy.n));
    cJSON_AddItemToObject(objects, "config.json", stk_oci_config(spec, &paths, &oci->cg, oci->kind, 0, 0));
    *ret_objects = objects;
    return 0;
}

int stk_oci_can(const stk_oci *oci, const stk_sandbox_spec *spec, stk_err *err)
{
    if (!oci->have_runtime)
        return stk_err_set(err, STK_E_BACKEND, "no OCI runtime works on this host");
    if (*spec->image)
        return stk_err_set(err, STK_E_BACKEND, "the image %.100s is not on this host", spec->image);
    if (spec->require_runtime_class && oci->kind != STK_OCI_RUNSC)
        return stk_err_set(err, STK_E_BACKEND, "require_runtime_class asks for gVisor, and %s is a container",
                           oci->version);
    if (spec->max_concurrent < 1 ||
        (size_t)spec->max_concurrent > STK_COUNT(((stk_sandbox *)0)->link_commands))
        return stk_err_set(err, STK_E_LIMIT, "a sandbox has 1 to %zu command links",
                           STK_COUNT(((stk_sandbox *)0)->link_commands));
    return 0;
}

static int64_t oom_kills(stk_sandbox *base)
{
    const stk_oci_sandbox *sbx = STK_CONTAINER(base, stk_oci_sandbox, base);
    return stk_cgroups_oom_kills(&sbx->oci->cg, sbx->paths.cgroup);
}

/* When no sandbox is left in it: the next start makes it again. */
static void remove_run_dir(const stk_oci *oci)
{
    char path[256];
    stk_err ignored;
    if (stk_path(path, sizeof(path), &ignored, "%s/rt", oci->env.run_dir) < 0 || rmdir(path) < 0 ||
        stk_path(path, sizeof(path), &ignored, "%s/root", oci->env.run_dir) < 0 ||
        stk_rmtree(AT_FDCWD, path, &ignored) < 0)
        return;
    rmdir(oci->env.run_dir);
}

static void oci_close(stk_backend *be)
{
    stk_oci *oci = STK_CONTAINER(be, stk_oci, be);
    char cgroup[256];
    if (oci->uids)
        stk_uids_free(oci->uids);
    stk_closep(&oci->sealed);
    snprintf(cgroup, sizeof(cgroup), "/%.60s/%s", oci->env.cgroup, oci->env.worker);
    stk_cgroups_prune(&oci->cg, cgroup);
    snprintf(cgroup, sizeof(cgroup), "/%.60s", oci->env.cgroup);
    stk_cgroups_prune(&oci->cg, cgroup);
    remove_run_dir(oci);
    free(oci);
}

static const stk_backend_ops ops = {.name = "oci",
                                    .probe = stk_oci_probe,
                                    .plan = plan,
                                    .create = stk_oci_create,
                                    .destroy = stk_oci_destroy,
                                    .reconcile = stk_oci_reconcile,
                                    .oom_kills = oom_kills,
                                    .close = oci_close};

/* With this mode whatever the umask. */
static int make_directory(const char *parent, const char *name, mode_t mode, stk_err *err)
{
    char path[256];
    int rc = stk_path(path, sizeof(path), err, "%s%s", parent, name);
    if (rc == 0)
        rc = stk_mkdirs(path, mode, err);
    if (rc == 0 && chmod(path, mode) < 0)
        rc = stk_err_errno(err, errno, "set the mode of %s", path);
    return rc;
}

/* Its parent may be one that everybody writes to, as /tmp and /dev/shm. */
static int check_ours(const char *path, stk_err *err)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return stk_err_errno(err, errno, "look at %s", path);
    if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
        return stk_err_set(err, STK_E_CONFIG, "run_dir %s is not a directory of this user", path);
    return 0;
}

static int make_directories(const stk_oci *oci, stk_err *err)
{
    int rc = stk_mkdirs(oci->env.run_dir, 0711, err);
    if (rc == 0)
        rc = check_ours(oci->env.run_dir, err);
    if (rc == 0)
        rc = make_directory(oci->env.run_dir, "", 0711, err);
    if (rc == 0)
        rc = make_directory(oci->env.run_dir, "/rt", 0711, err);
    return rc < 0 ? rc : make_directory(oci->env.state_dir, "/journal", 0700, err);
}

int stk_backend_oci_new(const stk_backend_env *env, stk_backend **ret, stk_err *err)
{
    stk_oci *oci = stk_xcalloc(1, sizeof(*oci));
    oci->be.ops = &ops;
    oci->env = *env;
    oci->sealed = -1;
    stk_cgroups_find(env->cgroup, &oci->cg);
    find_resolvers(oci);
    int rc = strlen(env->run_dir) > STK_OCI_RUN_DIR_MAX
                 ? stk_err_set(err, STK_E_CONFIG, "run_dir is longer than %d bytes: %s", STK_OCI_RUN_DIR_MAX,
                               env->run_dir)
                 : make_directories(oci, err);
    if (rc == 0)
        rc =
            stk_proc_find_helper("stockade-runtime", oci->runtime_program, sizeof(oci->runtime_program), err);
    if (rc == 0)
        rc = stk_proc_find_helper("stockade-egress-proxy", oci->proxy_program, sizeof(oci->proxy_program),
                                  err);
    if (rc < 0) {
        oci_close(&oci->be);
        return rc;
    }
    *ret = &oci->be;
    return 0;
}
