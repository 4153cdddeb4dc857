#include "proto/base/fd.h"
#include "proto/base/id.h"
#include "workers/backends/oci/oci.h"
#include "workers/backends/oci/sandbox.h"
#include <stdio.h>

/* A canary with our own flags: a whole sandbox is created and destroyed with each runtime that is installed,
 * the strongest first, until one works. */
typedef struct candidate {
    stk_oci_kind kind;
    const char *name;
} candidate;
static const candidate candidates[] = {
    {STK_OCI_RUNSC, "runsc"}, {STK_OCI_CRUN, "crun"}, {STK_OCI_RUNC, "runc"}};

typedef struct canary {
    stk_oci *oci;
    size_t at;
    stk_mono begun;
    stk_span limit;
    char journal[256];
    stk_probe probe;
    stk_probe_done done;
    void *arg;
} canary;

static void try_next(canary *c);

/* What would enforce them: root; in v1 also our parent cgroup given to this user. */
static void note_limits(const stk_oci *oci, stk_probe *probe)
{
    bool v1 = oci->cg.layout == STK_CGROUP_V1 || oci->cg.layout == STK_CGROUP_HYBRID;
    if (!oci->cg.writable)
        snprintf(
            probe->notes, sizeof(probe->notes),
            "memory and cpu limits are not enforced, the limit of processes counts per sandbox only: %s; "
            "they need root%s%.60s%s",
            oci->cg.why, v1 ? ", or the cgroup " : "", v1 ? oci->env.cgroup : "",
            v1 ? " made in each hierarchy and given to this user (chown -R)" : "");
}

static void finish(canary *c)
{
    stk_oci *oci = c->oci;
    stk_probe *probe = &c->probe;
    probe->took = stk_mono_sub(stk_mono_now(), c->begun);
    probe->ok = oci->have_runtime;
    if (probe->ok) {
        probe->strength = oci->kind == STK_OCI_RUNSC ? STK_STRENGTH_GVISOR : STK_STRENGTH_CONTAINER;
        snprintf(probe->runtime, sizeof(probe->runtime), "%s", oci->version);
        probe->reason[0] = probe->remedy[0] = '\0';
        note_limits(oci, probe);
    } else {
        bool tried = *probe->reason;
        if (!tried && *oci->env.runtime)
            snprintf(probe->reason, sizeof(probe->reason), "%.60s is none of runsc, crun, runc",
                     oci->env.runtime);
        else if (!tried)
            snprintf(probe->reason, sizeof(probe->reason), "none of runsc, crun, runc is installed");
        if (!*probe->remedy)
            snprintf(probe->remedy, sizeof(probe->remedy), "%s",
                     tried ? "put right what the reason names, then run stockade doctor again"
                           : "apt-get install crun");
    }
    stk_probe_done done = c->done;
    stk_probe result = *probe;
    void *arg = c->arg;
    free(c);
    done(&result, arg);
}

static void on_destroyed(const stk_err *err, void *arg)
{
    canary *c = arg;
    unlink(c->journal); /* nobody had a connection: there is nothing to emit */
    finish(c);
}

static void on_created(const stk_err *err, stk_sandbox *sbx, void *arg)
{
    canary *c = arg;
    if (!err) {
        snprintf(c->journal, sizeof(c->journal), "%s", sbx->journal_path);
        stk_oci_destroy(sbx, on_destroyed, c);
        return;
    }
    c->oci->have_runtime = false;
    snprintf(c->probe.reason, sizeof(c->probe.reason), "%.40s: %.200s", candidates[c->at].name, err->detail);
    c->at++;
    try_next(c);
}

static bool find_program(const char *name, char *out, size_t size)
{
    static const char *const dirs[] = {"/usr/local/sbin", "/usr/local/bin", "/usr/sbin",
                                       "/usr/bin",        "/sbin",          "/bin"};
    if (strchr(name, '/')) {
        snprintf(out, size, "%s", name);
        return access(out, X_OK) == 0;
    }
    for (size_t i = 0; i < STK_COUNT(dirs); i++) {
        snprintf(out, size, "%s/%s", dirs[i], name);
        if (access(out, X_OK) == 0)
            return true;
    }
    return false;
}

/* True when the configuration asks for this runtime or for none in particular. */
static bool wanted(const stk_oci *oci, const char *name)
{
    const char *asked = oci->env.runtime;
    const char *base = strrchr(asked, '/');
    return !*asked || strcmp(base ? base + 1 : asked, name) == 0;
}

static void start_canary(canary *c)
{
    stk_sandbox_spec spec = {.max_concurrent = 1};
    stk_id_new("sbx", stk_wall_now(), spec.id);
    snprintf(spec.tenant, sizeof(spec.tenant), "default");
    snprintf(spec.agent, sizeof(spec.agent), "probe");
    stk_agent_limits_default(&spec.limits);
    stk_oci_create(&c->oci->be, &spec, c->limit, on_created, NULL, c);
}

/* First line of `crun --version`, cut to "crun 1.8.1". */
static void read_version(stk_oci *oci, const char *name)
{
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(4096);
    stk_proc_end end;
    stk_err ignored;
    const char *argv[] = {oci->program, "--version", NULL};
    stk_proc_spec spec = {.path = oci->program, .argv = argv};
    unsigned major = 0, minor = 0, patch = 0;
    snprintf(oci->version, sizeof(oci->version), "%s", name);
    if (stk_proc_run(&spec, stk_sec(5), &end, &out, &ignored) < 0 || !out.n)
        return;
    const char *digits = strpbrk(out.p, "0123456789");
    if (digits && sscanf(digits, "%u.%u.%u", &major, &minor, &patch) == 3)
        snprintf(oci->version, sizeof(oci->version), "%s %u.%u.%u", name, major, minor, patch);
}

static void try_next(canary *c)
{
    stk_oci *oci = c->oci;
    for (; c->at < STK_COUNT(candidates); c->at++) {
        const candidate *one = &candidates[c->at];
        const char *name = strchr(oci->env.runtime, '/') ? oci->env.runtime : one->name;
        if (!wanted(oci, one->name) || !find_program(name, oci->program, sizeof(oci->program)))
            continue;
        if (one->kind == STK_OCI_CRUN && geteuid() != 0 && oci->cg.layout == STK_CGROUP_HYBRID) {
            snprintf(c->probe.reason, sizeof(c->probe.reason),
                     "crun refuses hybrid cgroups, and only root can hide them from it");
            snprintf(c->probe.remedy, sizeof(c->probe.remedy), "apt-get install runc");
            continue;
        }
        oci->kind = one->kind;
        oci->have_runtime = true;
        stk_oci_seal(oci);
        read_version(oci, one->name);
        start_canary(c);
        return;
    }
    finish(c);
}

/* What must hold before any runtime is tried. */
static int prepare(stk_oci *oci, stk_probe *probe, stk_err *err)
{
    if (!oci->uids && stk_uids_new(&oci->uids, err) < 0) {
        snprintf(probe->remedy, sizeof(probe->remedy),
                 "apt-get install uidmap && usermod --add-subuids 100000-165535 "
                 "--add-subgids 100000-165535 $USER");
        return -(int)err->code;
    }
    int rc = *oci->env.rootfs ? stk_oci_rootfs_check(oci->env.rootfs, err)
                              : stk_oci_rootfs_prepare(oci->env.run_dir, err);
    if (rc < 0)
        snprintf(probe->remedy, sizeof(probe->remedy), "set worker.rootfs to a root file system");
    return rc;
}

static void begin(void *arg)
{
    canary *c = arg;
    stk_err err;
    if (prepare(c->oci, &c->probe, &err) < 0) {
        snprintf(c->probe.reason, sizeof(c->probe.reason), "%.250s", err.detail);
        finish(c);
        return;
    }
    if (*c->oci->env.runtime &&
        !find_program(c->oci->env.runtime, c->oci->program, sizeof(c->oci->program))) {
        snprintf(c->probe.reason, sizeof(c->probe.reason), "%.60s, the configured runtime, is not installed",
                 c->oci->env.runtime);
        snprintf(c->probe.remedy, sizeof(c->probe.remedy), "install it, or leave worker.runtime empty");
        finish(c);
        return;
    }
    try_next(c);
}

void stk_oci_probe(stk_backend *be, stk_span limit, stk_probe_done done, void *arg)
{
    stk_oci *oci = STK_CONTAINER(be, stk_oci, be);
    canary *c = stk_xcalloc(1, sizeof(*c));
    *c = (canary){.oci = oci, .limit = limit, .done = done, .arg = arg};
    c->begun = stk_mono_now();
    oci->have_runtime = false;
    stk_loop_post(oci->env.loop, begin, c);
}
