/* What all parts of a worker share. Only worker.c changes it. */
#ifndef STK_WORKERS_CTX_H
#define STK_WORKERS_CTX_H

#include "proto/base/crypto.h"
#include "proto/bus/bus.h"
#include "proto/state/state.h"
#include "workers/sandbox.h"
#include "workers/syncer.h"
#include "workers/view.h"

#define STK_WORKER_BACKENDS 4

typedef struct stk_worker_backend {
    stk_backend *be;
    stk_probe probe;
} stk_worker_backend;

typedef struct stk_ctx {
    stk_loop *loop;
    stk_bus *bus;
    stk_state *state;
    const stk_keyring *ring;
    stk_view *view;
    stk_syncer *syncer;
    stk_bytes internal; /* egress.internal, JSON array */
    char worker[STK_WORKER_MAX];
    char incarnation[STK_ID_SIZE];
    int32_t lane;
    stk_mono lease_until; /* by our own clock: nothing starts after it */
    stk_worker_backend backends[STK_WORKER_BACKENDS];
    size_t nbackends;
    char spool[160]; /* state_dir/journal */
} stk_ctx;

/* The backend of that name; NULL when this worker has none. */
stk_worker_backend *stk_ctx_backend(stk_ctx *ctx, const char *name);
/* JSON for state and `stockade workers`: [{"name","ok","isolation","runtime","reason","remedy","notes"}]. */
void stk_ctx_backends_write(const stk_ctx *ctx, stk_buf *out);

#endif
