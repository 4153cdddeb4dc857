/* The oci backend's inside: runsc, crun or runc driven as programs from a config.json we write. No daemon.
 *
 * On disk, all below run_dir (mode 0711: the mapped root of a container must traverse it):
 *   root/                  host-/usr root file system skeleton (rootfs.c), shared, read-only inside
 *   rt/                    the OCI runtime's own state (--root)
 *   sbx-…/                 bundle: config.json, pid, log, l/ (runtime's link socket), p/ (proxy's socket)
 * and state_dir/journal/sbx-….jsonl, the proxy's records until the worker has emitted them. */
#ifndef STK_WORKERS_OCI_H
#define STK_WORKERS_OCI_H

#include "proto/base/proc.h"
#include "workers/sandbox.h"

typedef enum stk_oci_kind { STK_OCI_RUNC, STK_OCI_CRUN, STK_OCI_RUNSC } stk_oci_kind;
typedef enum stk_cgroup_layout {
    STK_CGROUP_NONE,
    STK_CGROUP_V1,
    STK_CGROUP_HYBRID,
    STK_CGROUP_V2
} stk_cgroup_layout;

#define STK_OCI_RUN_DIR_MAX      60 /* a Unix socket's path holds 107 bytes: run_dir + "/sbx-…/l/s" */
#define STK_OCI_PROXY_CONTROL_FD 3
#define STK_OCI_PROXY_JOURNAL_FD 4
#define STK_OCI_PROXY_LISTEN_FD  5
#define STK_OCI_UID              65532
#define STK_OCI_UID_COUNT        65536 /* of a sandbox's uid range */

/* --- cgroup.c: where the host's cgroups are, what they count, how one goes away
 * -------------------------------- */

typedef struct stk_cgroups {
    stk_cgroup_layout layout;
    char controllers[16][32]; /* v1: names of the mounted hierarchies; v2: one "" */
    size_t n;
    bool writable; /* limits can be set */
    bool swap;     /* v1: memory.memsw is there */
    char why[256]; /* !writable: what is missing */
} stk_cgroups;
/* parent: name of the cgroup in which ours are made. */
void stk_cgroups_find(const char *parent, stk_cgroups *ret);
/* Out-of-memory kills counted in <parent>/<name>; -1 = not known. */
int64_t stk_cgroups_oom_kills(const stk_cgroups *cg, const char *path);
/* Kills what is in it and removes it in every hierarchy. True when nothing is left; else call again a little
 * later. */
bool stk_cgroups_remove(const stk_cgroups *cg, const char *path);
/* Removes it where it is empty. */
void stk_cgroups_prune(const stk_cgroups *cg, const char *path);
/* Calls fn for each child directory of a cgroup (union over hierarchies, each name once). */
void stk_cgroups_each_child(const stk_cgroups *cg, const char *path, void (*fn)(const char *name, void *arg),
                            void *arg);

/* --- uids.c: a disjoint range of host uids per sandbox
 * ---------------------------------------------------------- */

typedef struct stk_uids stk_uids;
/* Root: byte-range locks in run_dir-independent /run/stockade.uids. Ordinary user: the ranges of /etc/subuid
 * and /etc/subgid. */
int stk_uids_new(stk_uids **ret, stk_err *err) STK_MUST_USE;
/* First host uid and gid of a free range; -STK_E_BUSY when all are taken. */
int stk_uids_take(stk_uids *uids, uint32_t *ret_uid, uint32_t *ret_gid, stk_err *err) STK_MUST_USE;
void stk_uids_give(stk_uids *uids, uint32_t uid);
void stk_uids_free(stk_uids *uids);

/* --- rootfs.c
 * ----------------------------------------------------------------------------------------------------- */

/* Makes run_dir/root: /usr mount point, usr-merge links, a minimal /etc of ours, all mount points.
 * Repeatable. */
int stk_oci_rootfs_prepare(const char *run_dir, stk_err *err) STK_MUST_USE;
/* Makes the mount points that a given root file system lacks. */
int stk_oci_rootfs_check(const char *root, stk_err *err) STK_MUST_USE;

/* --- config.c: pure
 * ------------------------------------------------------------------------------------------------ */

typedef struct stk_oci_paths {
    char dir[192];             /* run_dir/sbx-… */
    char runtime_program[256]; /* host path of stockade-runtime */
    char root[256];            /* root file system */
    bool host_usr;             /* bind the host's /usr */
    char cgroup[192];          /* "/stockade/wrk-…/sbx-…", "" = no limits */
    uint32_t user, group; /* an ordinary user's own ids: container root is mapped to them; 0 = we are root */
} stk_oci_paths;
/* config.json for this sandbox; the caller deletes it. uid, gid: first host ids of its range. */
cJSON *stk_oci_config(const stk_sandbox_spec *spec, const stk_oci_paths *paths, const stk_cgroups *cg,
                      stk_oci_kind kind, uint32_t uid, uint32_t gid);
cJSON *stk_oci_seccomp(void);

/* --- the backend
 * ---------------------------------------------------------------------------------------------------- */

typedef struct stk_oci {
    stk_backend be;
    stk_backend_env env;
    stk_cgroups cg;
    stk_uids *uids;
    bool have_runtime; /* a probe found one that works */
    stk_oci_kind kind;
    char program[128];       /* its path */
    char executed[32 + 128]; /* what is executed for it: a sealed copy, or program */
    int sealed;
    char version[32];
    char runtime_program[256], proxy_program[256];
    char resolvers[3][64];
    size_t nresolvers;
} stk_oci;

/* Links: a listener at path; each connection must say hello with id and nonce; complete() once all expected
 * are there. */
typedef struct stk_oci_links stk_oci_links;
int stk_oci_links_new(stk_loop *loop, const char *path, stk_sandbox *sbx, int commands,
                      void (*complete)(void *arg), void *arg, stk_oci_links **ret, stk_err *err) STK_MUST_USE;
void stk_oci_links_free(stk_oci_links *links);

/* Whether a sandbox of this kind can be made here at all: -STK_E_BACKEND with why. */
int stk_oci_can(const stk_oci *oci, const stk_sandbox_spec *spec, stk_err *err) STK_MUST_USE;
/* create.c */
void stk_oci_create(stk_backend *be, const stk_sandbox_spec *spec, stk_span limit, stk_create_done done,
                    stk_lost_fn lost, void *arg);
void stk_oci_paths_fill(const stk_oci *oci, const stk_sandbox_spec *spec, stk_oci_paths *ret);
/* argv of the OCI runtime and of the proxy as create starts them; strings live in `text`. NULL-terminated. */
typedef struct stk_oci_argv {
    const char *v[32];
    char text[4096];
    size_t n, used;
} stk_oci_argv;
void stk_oci_runtime_argv(const stk_oci *oci, const stk_oci_paths *paths, const char *id, stk_oci_argv *ret);
void stk_oci_proxy_argv(const stk_oci *oci, const char *run, stk_oci_argv *ret);
/* destroy.c */
void stk_oci_destroy(stk_sandbox *sbx, stk_destroy_done done, void *arg);
void stk_oci_reconcile(stk_backend *be, void (*journal)(const char *path, const char *sandbox, void *arg),
                       stk_destroy_done done, void *arg);
/* seal.c: sets `executed` for `program` and `kind`. */
void stk_oci_seal(stk_oci *oci);
/* probe.c */
void stk_oci_probe(stk_backend *be, stk_span limit, stk_probe_done done, void *arg);

#endif
