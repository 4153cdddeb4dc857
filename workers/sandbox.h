/* The backend port: how a worker makes, reaches and removes a sandbox. Adapters: backends/oci now; docker,
 * k8s, firecracker.
 *
 * Asynchronous, idempotent, each call with a deadline; completions on the worker's loop, never from inside
 * the call. `plan` and `create` build the same objects through the same pure function, so a plan can't lie.
 *
 * Links: before any command exists the runtime dials the worker. A created sandbox hands over connected
 * descriptors, each already checked to carry the sandbox's id and nonce: one for control and files, one for
 * health, `max_concurrent` for commands. */
#ifndef STK_WORKERS_SANDBOX_H
#define STK_WORKERS_SANDBOX_H

#include "proto/base/loop.h"
#include "proto/base/tree.h"
#include "proto/message/config.h"
#include "proto/message/egress.h"
#include "proto/policy/policy.h"

typedef struct stk_backend stk_backend;
typedef struct stk_sandbox stk_sandbox;

/* What a sandbox is made from. Pure data; borrowed for the call, copied by create. */
typedef struct stk_sandbox_spec {
    char id[STK_ID_SIZE];  /* "sbx-…" */
    char run[STK_ID_SIZE]; /* "" for a warm one */
    char tenant[STK_TENANT_MAX];
    char agent[STK_AGENT_MAX];
    char image[STK_IMAGE_MAX]; /* "" = backend's default (oci: the host's /usr) */
    stk_agent_limits limits;
    bool require_runtime_class; /* refuse weaker than gVisor */
    bool fence_by_template;     /* who fences egress: false = our proxy */
    int max_concurrent;         /* command links; 1 for a run */
} stk_sandbox_spec;

typedef enum stk_strength {
    STK_STRENGTH_NONE,
    STK_STRENGTH_CONTAINER,
    STK_STRENGTH_GVISOR,
    STK_STRENGTH_MICROVM
} stk_strength;
const char *stk_strength_text(stk_strength s); /* "container", "gvisor", "microvm" */

/* What this host has: the result of a canary run with our own flags and a deadline. */
typedef struct stk_probe {
    bool ok;
    stk_strength strength;
    char runtime[32]; /* "runc 1.1.5"                                     */
    char reason[256]; /* !ok: what is missing                              */
    char remedy[256]; /* !ok: the one command that would bring it          */
    char notes[512];  /* ok: limits that are not enforced here and how to get them ("memory limit needs
                         delegation: …"), or "" */
    stk_span took;
} stk_probe;

typedef void (*stk_probe_done)(const stk_probe *probe, void *arg);
/* err NULL = success. sbx belongs to the caller until stk_sandbox_destroy. */
typedef void (*stk_create_done)(const stk_err *err, stk_sandbox *sbx, void *arg);
typedef void (*stk_destroy_done)(const stk_err *err, void *arg);
/* The sandbox died by itself (its PID 1 or its proxy ended). May come at any time between create's done and
 * destroy. oom: the cgroup's counter says so. */
typedef void (*stk_lost_fn)(stk_sandbox *sbx, bool oom, const char *why, void *arg);

typedef struct stk_backend_ops {
    const char *name; /* "oci" */
    void (*probe)(stk_backend *be, stk_span limit, stk_probe_done done, void *arg);
    /* The exact objects create would make, secrets blanked, as a tree the caller deletes. */
    int (*plan)(stk_backend *be, const stk_sandbox_spec *spec, cJSON **ret_objects, stk_err *err);
    void (*create)(stk_backend *be, const stk_sandbox_spec *spec, stk_span limit, stk_create_done done,
                   stk_lost_fn lost, void *arg);
    /* Kills and removes every trace. Always completes. After `done` the sandbox is freed. */
    void (*destroy)(stk_sandbox *sbx, stk_destroy_done done, void *arg);
    /* At start, after kill -9: removes whatever carries this worker's id (processes, cgroups, namespaces,
     * mounts, directories), handing every left journal to `journal` first (path of a file of egress records,
     * run id inside). */
    void (*reconcile)(stk_backend *be, void (*journal)(const char *path, const char *sandbox, void *arg),
                      stk_destroy_done done, void *arg);
    /* Whole-sandbox memory counters: how many out-of-memory kills so far; -1 not known. */
    int64_t (*oom_kills)(stk_sandbox *sbx);
    void (*close)(stk_backend *be);
} stk_backend_ops;

struct stk_backend {
    const stk_backend_ops *ops;
};

struct stk_sandbox {
    stk_backend *backend;
    char id[STK_ID_SIZE];
    char nonce[STK_ID_SIZE];
    stk_strength strength;
    char runtime[32];
    int link_control; /* connected descriptors; whoever uses one sets it to -1 here; -1 = used or lost */
    int link_health;
    int link_commands[64];
    int nlinks;
    int proxy_control; /* socketpair to the egress proxy's control stream; -1 = none */
    int journal;       /* O_APPEND descriptor of the journal file, for fdatasync */
    char journal_path[256];
};

/* Where things are on this host: filled by the worker's configuration. */
typedef struct stk_backend_env {
    stk_loop *loop;
    char worker[STK_WORKER_MAX];
    char run_dir[128];   /* 0711, short-lived: bundles, sockets              */
    char state_dir[128]; /* 0700: journals (spool), images                   */
    char rootfs[128];    /* "" = the host's /usr                             */
    char cgroup[128];    /* parent cgroup name, "stockade"                   */
    char runtime[64];    /* "" = runsc if it works, else crun, else runc; or a name or path  */
    char resolvers[256]; /* "IP:PORT[,IP:PORT]" for the proxies; "" = the host's resolv.conf */
    stk_bytes internal;  /* JSON array for policies: egress.internal         */
} stk_backend_env;

int stk_backend_oci_new(const stk_backend_env *env, stk_backend **ret, stk_err *err) STK_MUST_USE;

#endif
