#include "workers/pool.h"
#include "proto/base/log.h"
#include <stdio.h>

#define CREATE_LIMIT  stk_sec(30)
#define CREATING_MOST 4 /* at once */
#define BACKOFF_FIRST stk_ms(500)
#define BACKOFF_MOST  stk_sec(30)
#define CLAIM_WITHIN  stk_sec(30) /* after state gave it to a run; else it is removed */

/* REGISTERING and TAKING (back, to remove it) have an operation in flight; GONE has no box (any more) and
 * waits for such an operation to come back before it is freed. */
typedef enum warm_state {
    WARM_CREATING,
    WARM_REGISTERING,
    WARM_READY,
    WARM_TAKING,
    WARM_REMOVING,
    WARM_GONE
} warm_state;

typedef struct warm {
    struct warm *next;
    stk_pool *pool;
    stk_box *box;
    warm_state state;
    char name[64]; /* of the pool */
    char tenant[STK_TENANT_MAX];
    char key[STK_ID_SIZE];
    char backend[STK_BACKEND_MAX];
    char sandbox[STK_ID_SIZE];
    stk_mono expires;
    char journal[256];
    size_t calls;   /* operations of state in flight */
    bool dead;      /* lost while it was being registered */
    bool stale;     /* to be removed as soon as it can */
    bool renounced; /* it belongs to an ended incarnation: state does not count it any more */
    bool given;     /* state has given it to a run … */
    stk_mono until; /* … whose assignment must come before this */
} warm;

struct stk_pool {
    stk_ctx *ctx;
    warm *first;
    stk_span backoff;
    stk_mono not_before; /* creating, after failures */
    uint64_t failures;
    bool draining;
    stk_fn drained;
    void *drained_arg;
};

static void unlink_warm(warm *w)
{
    for (warm **at = &w->pool->first; *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            break;
        }
}

static void forget(warm *w)
{
    stk_pool *pool = w->pool;
    w->state = WARM_GONE;
    if (w->calls)
        return;
    unlink_warm(w);
    free(w);
    if (pool->draining && !pool->first && pool->drained) {
        stk_fn drained = pool->drained;
        pool->drained = NULL;
        drained(pool->drained_arg);
    }
}

static void on_destroyed(const stk_err *err, void *arg)
{
    warm *w = arg;
    if (*w->journal)
        unlink(w->journal); /* it served nobody */
    forget(w);
}

static void destroy_posted(void *arg)
{
    warm *w = arg;
    stk_box_destroy(w->box, w->journal, on_destroyed, w);
}

static void destroy(warm *w)
{
    if (w->state == WARM_REMOVING || w->state == WARM_GONE)
        return;
    w->state = WARM_REMOVING;
    stk_loop_post(w->pool->ctx->loop, destroy_posted, w);
}

/* --- out of the pool --- */

static void on_taken_back(stk_op *base, void *arg)
{
    warm *w = arg;
    stk_op_pool_take *op = (stk_op_pool_take *)base;
    w->calls--;
    if (w->state == WARM_GONE) {
        forget(w);
    } else if (w->state == WARM_TAKING &&
               ((base->rc == 0 && op->found) || w->renounced || w->pool->draining)) {
        destroy(w);
    } else if (w->state == WARM_TAKING) {
        w->state = WARM_READY;
        w->given = base->rc == 0;
        w->until = stk_mono_add(stk_mono_now(), CLAIM_WITHIN);
    }
}

/* Only what we take from state ourselves can be removed: a run may have been given it this moment. Draining,
 * the lane is idle and paused: nobody will come for what was given. */
static void take_back(warm *w)
{
    if (w->state == WARM_CREATING || w->state == WARM_REGISTERING) {
        w->stale = true;
    } else if (w->state == WARM_READY && w->given) {
        if (w->pool->draining || stk_mono_before(w->until, stk_mono_now()))
            destroy(w);
    } else if (w->state == WARM_READY) {
        w->state = WARM_TAKING;
        w->calls++;
        stk_op_pool_take *op = stk_op_new(STK_OP_POOL_TAKE, on_taken_back, w);
        snprintf(op->in.sandbox, sizeof(op->in.sandbox), "%s", stk_box_id(w->box));
        stk_state_call(w->pool->ctx->state, op);
    }
}

static void drop_from_state(warm *w)
{
    stk_op_pool_drop *op = stk_op_new(STK_OP_POOL_DROP, NULL, NULL);
    memcpy(op->in.sandbox, w->sandbox, sizeof(op->in.sandbox));
    memcpy(op->in.worker, w->pool->ctx->worker, sizeof(op->in.worker));
    stk_state_call(w->pool->ctx->state, op);
}

/* Nothing is made for a while after a failure, longer after each. */
static void back_off(stk_pool *pool)
{
    pool->failures++;
    pool->not_before = stk_mono_add(stk_mono_now(), pool->backoff);
    pool->backoff.ns = pool->backoff.ns * 2 > BACKOFF_MOST.ns ? BACKOFF_MOST.ns : pool->backoff.ns * 2;
}

static void on_lost(stk_box *box, bool oom, const char *why, void *arg)
{
    warm *w = arg;
    if (w->state == WARM_REMOVING || w->state == WARM_GONE)
        return;
    stk_log_warn(NULL, "pooled sandbox %s is lost: %s", stk_box_id(box), why);
    if (w->state == WARM_CREATING)
        back_off(w->pool);
    else if (w->state == WARM_REGISTERING)
        w->dead = true;
    else
        drop_from_state(w);
    destroy(w);
}

/* --- into the pool --- */

static void on_put(stk_op *base, void *arg)
{
    warm *w = arg;
    stk_op_pool_put *op = (stk_op_pool_put *)base;
    stk_pool *pool = w->pool;
    w->calls--;
    if (w->dead)
        drop_from_state(w);
    bool registering = w->state == WARM_REGISTERING;
    if (w->state == WARM_GONE)
        forget(w);
    if (!registering)
        return;
    w->state = WARM_READY;
    bool refused = base->rc < 0 || !op->taken_in;
    if (refused)
        back_off(pool);
    else
        pool->backoff = BACKOFF_FIRST;
    if (refused || w->renounced)
        destroy(w);
    else if (w->stale)
        take_back(w);
    stk_pool_tend(pool);
}

static void on_ready(stk_box *box, const stk_err *err, void *arg)
{
    warm *w = arg;
    stk_pool *pool = w->pool;
    if (err) {
        stk_log_err(STK_LOG_WARN, NULL, err, "pool %s can't make a sandbox", w->name);
        back_off(pool);
        w->box = NULL;
        forget(w);
        return;
    }
    if (w->state == WARM_REMOVING)
        return;
    if (w->stale) {
        destroy(w);
        return;
    }
    w->state = WARM_REGISTERING;
    w->calls++;
    stk_op_pool_put *op = stk_op_new(STK_OP_POOL_PUT, on_put, w);
    snprintf(op->in.sandbox, sizeof(op->in.sandbox), "%s", stk_box_id(box));
    memcpy(op->in.template_key, w->key, sizeof(op->in.template_key));
    memcpy(op->in.tenant, w->tenant, sizeof(op->in.tenant));
    memcpy(op->in.pool, w->name, sizeof(op->in.pool));
    memcpy(op->in.worker, pool->ctx->worker, sizeof(op->in.worker));
    memcpy(op->in.incarnation, pool->ctx->incarnation, sizeof(op->in.incarnation));
    memcpy(op->in.backend, w->backend, sizeof(op->in.backend));
    op->in.made = stk_wall_now();
    stk_state_call(pool->ctx->state, op);
}

static const stk_box_ops warm_ops = {.on_ready = on_ready, .on_lost = on_lost};

static void create(stk_pool *pool, const stk_tenant_view *tenant, const stk_pool_spec *spec,
                   const stk_agent_config *agent, stk_worker_backend *backend, const char *key)
{
    stk_err err;
    warm *w = stk_xcalloc(1, sizeof(*w));
    *w = (warm){.pool = pool, .next = pool->first, .expires = stk_mono_add(stk_mono_now(), spec->ttl)};
    memcpy(w->name, spec->name, sizeof(w->name));
    memcpy(w->tenant, tenant->tenant, sizeof(w->tenant));
    snprintf(w->key, sizeof(w->key), "%s", key);
    snprintf(w->backend, sizeof(w->backend), "%s", backend->be->ops->name);
    pool->first = w;
    stk_sandbox_spec sandbox = {.limits = agent->limits,
                                .max_concurrent = 1,
                                .require_runtime_class = tenant->sandbox.require_runtime_class};
    stk_id_new("sbx", stk_wall_now(), sandbox.id);
    memcpy(w->sandbox, sandbox.id, sizeof(w->sandbox));
    memcpy(sandbox.tenant, tenant->tenant, sizeof(sandbox.tenant));
    memcpy(sandbox.agent, agent->name, sizeof(sandbox.agent));
    memcpy(sandbox.image, agent->image, sizeof(sandbox.image));
    if (stk_box_new(pool->ctx->loop, pool->ctx->syncer, backend->be, &sandbox, CREATE_LIMIT, &warm_ops, w,
                    &w->box, &err) < 0)
        forget(w);
}

/* --- tending --- */

static size_t creating(const stk_pool *pool)
{
    size_t n = 0;
    for (const warm *w = pool->first; w; w = w->next)
        n += w->state == WARM_CREATING;
    return n;
}

static bool belongs(const warm *w, const char *tenant, const char *name)
{
    return strcmp(w->tenant, tenant) == 0 && strcmp(w->name, name) == 0;
}

/* The backend this pool's agent would be placed on: named, or the strongest that works here. */
static stk_worker_backend *backend_for(stk_pool *pool, const stk_tenant_view *tenant,
                                       const stk_agent_config *agent)
{
    const char *name = *agent->backend ? agent->backend : tenant->sandbox.backend;
    stk_worker_backend *best = NULL;
    for (size_t i = 0; i < pool->ctx->nbackends; i++) {
        stk_worker_backend *one = &pool->ctx->backends[i];
        bool named = strcmp(name, one->be->ops->name) == 0;
        bool weak = tenant->sandbox.require_runtime_class && one->probe.strength < STK_STRENGTH_GVISOR;
        if (one->probe.ok && !weak &&
            (named || (strcmp(name, "auto") == 0 && (!best || one->probe.strength > best->probe.strength))))
            best = one;
    }
    return best;
}

/* New first, then old out: stale ones stay until their replacements are ready. */
static void tend_pool(stk_pool *pool, const stk_tenant_view *tenant, const stk_pool_spec *spec)
{
    stk_mono now = stk_mono_now();
    const stk_agent_config *agent =
        tenant->sandbox.enabled ? stk_sandbox_doc_agent(&tenant->sandbox, stk_str_of(spec->agent)) : NULL;
    stk_worker_backend *backend = agent ? backend_for(pool, tenant, agent) : NULL;
    int64_t target = backend && !pool->draining ? spec->target : 0;
    char key[STK_ID_SIZE] = "";
    if (backend)
        stk_template_key(tenant->tenant, backend->be->ops->name, agent->image, &agent->limits, key);
    int64_t fresh = 0, ready = 0;
    for (const warm *w = pool->first; w; w = w->next)
        if (belongs(w, tenant->tenant, spec->name) && w->state < WARM_REMOVING && !w->given && !w->stale &&
            strcmp(w->key, key) == 0 && stk_mono_before(now, w->expires)) {
            fresh++;
            ready += w->state == WARM_READY;
        }
    for (; fresh < target && creating(pool) < CREATING_MOST && !stk_mono_before(now, pool->not_before);
         fresh++)
        create(pool, tenant, spec, agent, backend, key);
    for (warm *w = pool->first, *after; w; w = after) {
        after = w->next;
        if (!belongs(w, tenant->tenant, spec->name) || w->state >= WARM_REMOVING || w->stale)
            continue;
        bool old = strcmp(w->key, key) != 0 || !stk_mono_before(now, w->expires);
        if ((old && (ready >= target || target == 0)) || (!old && fresh > spec->max)) {
            fresh -= !old;
            take_back(w);
        }
    }
}

/* Sandboxes of pools that are not asked for any more. */
static void tend_orphans(stk_pool *pool)
{
    for (warm *w = pool->first, *after; w; w = after) {
        after = w->next;
        const stk_tenant_view *tenant = stk_view_tenant(pool->ctx->view, w->tenant);
        bool asked = false;
        for (size_t i = 0; tenant && i < tenant->pools.n; i++)
            asked = asked || strcmp(tenant->pools.v[i].name, w->name) == 0;
        if (!asked || pool->draining)
            take_back(w);
    }
}

void stk_pool_tend(stk_pool *pool)
{
    for (size_t t = 0; t < stk_view_count(pool->ctx->view); t++) {
        const stk_tenant_view *tenant = stk_view_at(pool->ctx->view, t);
        for (size_t i = 0; i < tenant->pools.n; i++)
            tend_pool(pool, tenant, &tenant->pools.v[i]);
    }
    tend_orphans(pool);
}

stk_box *stk_pool_claim(stk_pool *pool, const char *sandbox)
{
    for (warm *w = pool->first; w; w = w->next) {
        bool here = w->state == WARM_REGISTERING || w->state == WARM_READY || w->state == WARM_TAKING;
        if (!here || !w->box || strcmp(stk_box_id(w->box), sandbox) != 0)
            continue;
        stk_box *box = STK_TAKE(w->box);
        forget(w);
        return box;
    }
    return NULL;
}

stk_pool_counts stk_pool_counts_get(const stk_pool *pool)
{
    stk_pool_counts counts = {.failures = pool->failures};
    for (const warm *w = pool->first; w; w = w->next) {
        counts.ready += w->state == WARM_READY || w->state == WARM_TAKING;
        counts.creating += w->state == WARM_CREATING || w->state == WARM_REGISTERING;
        counts.removing += w->state == WARM_REMOVING;
    }
    return counts;
}

void stk_pool_renounce(stk_pool *pool)
{
    for (warm *w = pool->first; w; w = w->next) {
        w->renounced = w->state == WARM_REGISTERING || w->state == WARM_READY || w->state == WARM_TAKING;
        if (w->state == WARM_READY)
            destroy(w);
    }
}

int stk_pool_new(stk_ctx *ctx, stk_pool **ret, stk_err *err)
{
    stk_pool *pool = stk_xcalloc(1, sizeof(*pool));
    pool->ctx = ctx;
    pool->backoff = BACKOFF_FIRST;
    *ret = pool;
    return 0;
}

void stk_pool_drain(stk_pool *pool, stk_fn done, void *arg)
{
    pool->draining = true;
    pool->drained = done;
    pool->drained_arg = arg;
    stk_pool_tend(pool);
    if (!pool->first && pool->drained) {
        pool->drained = NULL;
        done(arg);
    }
}

void stk_pool_free(stk_pool *pool)
{
    free(pool);
}
