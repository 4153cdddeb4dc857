#include "workers/backends/oci/oci.h"
#include <stdio.h>

#define CPU_PERIOD_US 20000 /* short, so that a throttled command waits at most this long */
#define OWN_PIDS      8     /* runtime and minders, on top of the command's limit */

static cJSON *strings(const char *const *v)
{
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; v[i]; i++)
        cJSON_AddItemToArray(list, cJSON_CreateString(v[i]));
    return list;
}

static void mount_add(cJSON *mounts, const char *to, const char *type, const char *from,
                      const char *const *options)
{
    cJSON *mount = cJSON_CreateObject();
    cJSON_AddStringToObject(mount, "destination", to);
    cJSON_AddStringToObject(mount, "type", type);
    cJSON_AddStringToObject(mount, "source", from);
    cJSON_AddItemToObject(mount, "options", strings(options));
    cJSON_AddItemToArray(mounts, mount);
}

static void mount_tmpfs(cJSON *mounts, const char *to, int64_t bytes, const char *mode)
{
    char size[32], mode_option[16];
    snprintf(size, sizeof(size), "size=%lld", (long long)bytes);
    snprintf(mode_option, sizeof(mode_option), "mode=%s", mode);
    const char *options[] = {"nosuid", "nodev", size, mode_option, NULL};
    mount_add(mounts, to, "tmpfs", "tmpfs", options);
}

static void mount_bind(cJSON *mounts, const char *from_dir, const char *from, const char *to, bool exec)
{
    char source[512];
    snprintf(source, sizeof(source), "%s%s", from_dir, from);
    const char *options[] = {"bind", "ro", "nosuid", "nodev", exec ? "exec" : "noexec", NULL};
    mount_add(mounts, to, "bind", source, options);
}

static cJSON *mounts_of(const stk_sandbox_spec *spec, const stk_oci_paths *paths)
{
    static const char *const proc[] = {"nosuid", "noexec", "nodev", NULL};
    static const char *const dev[] = {"nosuid", "noexec", "strictatime", "mode=755", "size=65536", NULL};
    static const char *const shm[] = {"nosuid", "noexec", "nodev", "mode=1777", "size=16777216", NULL};
    cJSON *mounts = cJSON_CreateArray();
    mount_add(mounts, "/proc", "proc", "proc", proc);
    mount_add(mounts, "/dev", "tmpfs", "tmpfs", dev);
    mount_add(mounts, "/dev/shm", "tmpfs", "shm", shm);
    if (paths->host_usr)
        mount_bind(mounts, "/usr", "", "/usr", true);
    mount_tmpfs(mounts, "/tmp", spec->limits.tmp_bytes, "1777");
    mount_tmpfs(mounts, "/workspace", spec->limits.workspace_bytes, "1777");
    mount_bind(mounts, paths->runtime_program, "", "/.stockade/runtime", true);
    mount_bind(mounts, paths->dir, "/l", "/.stockade/l", false);
    mount_bind(mounts, paths->dir, "/p", "/.stockade/p", false);
    return mounts;
}

static void rlimit_add(cJSON *list, const char *type, int64_t value)
{
    cJSON *limit = cJSON_CreateObject();
    cJSON_AddStringToObject(limit, "type", type);
    cJSON_AddNumberToObject(limit, "hard", (double)value);
    cJSON_AddNumberToObject(limit, "soft", (double)value);
    cJSON_AddItemToArray(list, limit);
}

static cJSON *process_of(const stk_sandbox_spec *spec, const stk_oci_paths *paths)
{
    char links[16];
    snprintf(links, sizeof(links), "%d", spec->max_concurrent);
    const char *args[] = {"/.stockade/runtime",
                          "--token-fd",
                          "0",
                          "--dial",
                          "unix:/.stockade/l/s",
                          "--root",
                          "/workspace",
                          "--relay",
                          "127.0.0.1:3128=unix:/.stockade/p/s",
                          "--max-concurrent",
                          links,
                          NULL};
    static const char *const env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", NULL};
    static const char *const sets[] = {"bounding", "effective", "permitted", "inheritable", "ambient"};
    cJSON *process = cJSON_CreateObject();
    cJSON_AddBoolToObject(process, "terminal", false);
    cJSON *user = cJSON_AddObjectToObject(process, "user");
    cJSON_AddNumberToObject(user, "uid", STK_OCI_UID);
    cJSON_AddNumberToObject(user, "gid", STK_OCI_UID);
    cJSON_AddItemToObject(process, "args", strings(args));
    cJSON_AddItemToObject(process, "env", strings(env));
    cJSON_AddStringToObject(process, "cwd", "/workspace");
    cJSON *capabilities = cJSON_AddObjectToObject(process, "capabilities");
    for (size_t i = 0; i < STK_COUNT(sets); i++)
        cJSON_AddArrayToObject(capabilities, sets[i]);
    cJSON *rlimits = cJSON_AddArrayToObject(process, "rlimits");
    rlimit_add(rlimits, "RLIMIT_NOFILE", spec->limits.open_files);
    rlimit_add(rlimits, "RLIMIT_FSIZE", spec->limits.file_bytes);
    rlimit_add(rlimits, "RLIMIT_CORE", 0);
    if (!*paths->cgroup) /* it counts per user namespace: not as exact as a cgroup, but no fork bomb */
        rlimit_add(rlimits, "RLIMIT_NPROC", spec->limits.pids + OWN_PIDS);
    cJSON_AddBoolToObject(process, "noNewPrivileges", true);
    return process;
}

static void map_add(cJSON *maps, uint32_t inside, uint32_t host, uint32_t size)
{
    cJSON *map = cJSON_CreateObject();
    cJSON_AddNumberToObject(map, "containerID", inside);
    cJSON_AddNumberToObject(map, "hostID", host);
    cJSON_AddNumberToObject(map, "size", size);
    cJSON_AddItemToArray(maps, map);
}

/* own: runtimes that an ordinary user starts can set up only a container whose root is that user. Nothing in
 * it ever runs as that root. */
static void mapping_add(cJSON *linux_, const char *name, bool ordinary, uint32_t own, uint32_t first)
{
    cJSON *maps = cJSON_AddArrayToObject(linux_, name);
    if (ordinary)
        map_add(maps, 0, own, 1);
    map_add(maps, ordinary, first, STK_OCI_UID_COUNT - ordinary);
}

static void resources_add(cJSON *linux_, const stk_sandbox_spec *spec, const stk_oci_paths *paths,
                          const stk_cgroups *cg)
{
    if (!*paths->cgroup)
        return;
    cJSON_AddStringToObject(linux_, "cgroupsPath", paths->cgroup);
    cJSON *resources = cJSON_AddObjectToObject(linux_, "resources");
    cJSON *memory = cJSON_AddObjectToObject(resources, "memory");
    cJSON_AddNumberToObject(memory, "limit", (double)spec->limits.memory_bytes);
    if (cg->layout == STK_CGROUP_V2 || cg->swap)
        cJSON_AddNumberToObject(memory, "swap", (double)spec->limits.memory_bytes);
    cJSON *pids = cJSON_AddObjectToObject(resources, "pids");
    cJSON_AddNumberToObject(pids, "limit", (double)(spec->limits.pids + OWN_PIDS));
    cJSON *cpu = cJSON_AddObjectToObject(resources, "cpu");
    cJSON_AddNumberToObject(cpu, "period", CPU_PERIOD_US);
    cJSON_AddNumberToObject(cpu, "quota", (double)(spec->limits.cpu_millis * CPU_PERIOD_US / 1000));
    cJSON *device = cJSON_CreateObject();
    cJSON_AddBoolToObject(device, "allow", false);
    cJSON_AddStringToObject(device, "access", "rwm");
    cJSON_AddItemToArray(cJSON_AddArrayToObject(resources, "devices"), device);
}

static cJSON *linux_of(const stk_sandbox_spec *spec, const stk_oci_paths *paths, const stk_cgroups *cg,
                       stk_oci_kind kind, uint32_t uid, uint32_t gid)
{
    static const char *const namespaces[] = {"pid", "network", "ipc", "uts", "mount", "user"};
    static const char *const masked[] = {"/proc/acpi",
                                         "/proc/asound",
                                         "/proc/kcore",
                                         "/proc/keys",
                                         "/proc/latency_stats",
                                         "/proc/timer_list",
                                         "/proc/timer_stats",
                                         "/proc/sched_debug",
                                         "/proc/scsi",
                                         "/proc/interrupts",
                                         "/proc/kallsyms",
                                         "/proc/modules",
                                         NULL};
    static const char *const readonly[] = {"/proc/bus",           "/proc/fs", "/proc/irq", "/proc/sys",
                                           "/proc/sysrq-trigger", NULL};
    cJSON *linux_ = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(linux_, "namespaces");
    for (size_t i = 0; i < STK_COUNT(namespaces); i++) {
        cJSON *ns = cJSON_CreateObject();
        cJSON_AddStringToObject(ns, "type", namespaces[i]);
        cJSON_AddItemToArray(list, ns);
    }
    mapping_add(linux_, "uidMappings", paths->user != 0, paths->user, uid);
    mapping_add(linux_, "gidMappings", paths->user != 0, paths->group, gid);
    resources_add(linux_, spec, paths, cg);
    if (kind != STK_OCI_RUNSC) /* gVisor filters its own host calls; a guest profile is not supported */
        cJSON_AddItemToObject(linux_, "seccomp", stk_oci_seccomp());
    cJSON_AddItemToObject(linux_, "maskedPaths", strings(masked));
    cJSON_AddItemToObject(linux_, "readonlyPaths", strings(readonly));
    return linux_;
}

cJSON *stk_oci_config(const stk_sandbox_spec *spec, const stk_oci_paths *paths, const stk_cgroups *cg,
                      stk_oci_kind kind, uint32_t uid, uint32_t gid)
{
    cJSON *config = cJSON_CreateObject();
    cJSON_AddStringToObject(config, "ociVersion", "1.0.2");
    cJSON_AddItemToObject(config, "process", process_of(spec, paths));
    cJSON *root = cJSON_AddObjectToObject(config, "root");
    cJSON_AddStringToObject(root, "path", paths->root);
    cJSON_AddBoolToObject(root, "readonly", true);
    cJSON_AddStringToObject(config, "hostname", "sandbox");
    cJSON_AddItemToObject(config, "mounts", mounts_of(spec, paths));
    cJSON_AddItemToObject(config, "linux", linux_of(spec, paths, cg, kind, uid, gid));
    return config;
}
