/* One sandbox of the oci backend, shared by create.c, destroy.c and probe.c. */
#ifndef STK_WORKERS_OCI_SANDBOX_H
#define STK_WORKERS_OCI_SANDBOX_H

#include "workers/backends/oci/oci.h"

typedef struct stk_oci_sandbox {
    stk_sandbox base;
    stk_oci *oci;
    stk_sandbox_spec spec;
    stk_oci_paths paths;
    uint32_t uid, gid; /* 0 = no range taken */
    stk_proc *runtime; /* `crun run --detach`; NULL once it ended */
    stk_proc *proxy;
    int pidfd;           /* of the sandbox's PID 1; -1 */
    struct event *death; /* NULL once it died */
    stk_oci_links *links;
    bool links_ready, started, created, destroying;
    stk_err failure;     /* why create failed */
    stk_timer *deadline; /* of create */
    stk_timer *removal;
    stk_mono removal_stuck, removal_until;
    stk_create_done create_done;
    stk_lost_fn lost;
    stk_destroy_done destroy_done;
    void *arg, *destroy_arg;
} stk_oci_sandbox;

/* It can't be used (any more): before create's done this fails the create (after everything was removed),
 * after it it reports `lost` once. */
void stk_oci_broken(stk_oci_sandbox *sbx, const stk_err *why);
/* Goes on with the removal after something ended. */
void stk_oci_remove_step(stk_oci_sandbox *sbx);

#endif
