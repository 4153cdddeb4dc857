#include "scheduler/place.h"
#include <stdio.h>

static const char *const texts[] = {[STK_PLACE_AUTO] = "auto",
                                    [STK_PLACE_K8S] = "k8s",
                                    [STK_PLACE_FIRECRACKER] = "firecracker",
                                    [STK_PLACE_DOCKER] = "docker",
                                    [STK_PLACE_OCI] = "oci"};

stk_place_backend stk_place_backend_parse(stk_str name)
{
    if (!name.n)
        return STK_PLACE_AUTO;
    for (int i = 0; i < STK_PLACE_BACKENDS; i++)
        if (stk_str_eq(name, stk_str_of(texts[i])))
            return (stk_place_backend)i;
    return STK_PLACE_BACKENDS;
}

const char *stk_place_backend_text(stk_place_backend backend)
{
    return (unsigned)backend < STK_PLACE_BACKENDS ? texts[backend] : "";
}

/* Of equal strength the later one first. */
static const stk_place_backend by_order[8] = {STK_PLACE_AUTO, STK_PLACE_DOCKER, STK_PLACE_OCI, STK_PLACE_K8S,
                                              STK_PLACE_FIRECRACKER};

/* Strength * 8 + order; 0: not to be had there. */
static int rank_of(const stk_place_probe *probe, stk_place_backend backend, bool runtime_class)
{
    if (!probe->ok || (runtime_class && probe->isolation < STK_PLACE_GVISOR))
        return 0;
    int strength = probe->isolation == STK_PLACE_MICROVM  ? 4
                   : backend == STK_PLACE_K8S             ? 3
                   : probe->isolation == STK_PLACE_GVISOR ? 2
                                                          : 1;
    for (int order = 1; order < STK_PLACE_BACKENDS; order++)
        if (by_order[order] == backend)
            return strength * 8 + order;
    return 0;
}

static int best_rank(const stk_place_view *view, const stk_place_need *need)
{
    int best = 0;
    for (size_t i = 0; i < view->nworkers; i++)
        for (int b = STK_PLACE_AUTO + 1; view->workers[i].usable && b < STK_PLACE_BACKENDS; b++) {
            if (need->backend != STK_PLACE_AUTO && (int)need->backend != b)
                continue;
            int rank = rank_of(&view->workers[i].probes[b], (stk_place_backend)b, need->runtime_class);
            best = rank > best ? rank : best;
        }
    return best;
}

static void lacking(const stk_place_view *view, const stk_place_need *need, stk_place_choice *ret)
{
    const char *name = stk_place_backend_text(need->backend);
    const char *weak = "", *reason = "";
    bool usable = false;
    for (size_t i = 0; i < view->nworkers; i++) {
        const stk_place_worker *w = &view->workers[i];
        if (!w->usable)
            continue;
        usable = true;
        const stk_place_probe *probe = &w->probes[need->backend];
        if (need->backend != STK_PLACE_AUTO && probe->ok)
            weak = "a runtime class (gVisor or stronger) is required, and no worker has one for it";
        else if (need->backend != STK_PLACE_AUTO && probe->reason[0])
            reason = probe->reason;
    }
    ret->what = usable ? STK_PLACE_LACKING : STK_PLACE_NOBODY;
    if (!usable)
        snprintf(ret->why, sizeof(ret->why), "no worker is live");
    else if (need->backend == STK_PLACE_AUTO)
        snprintf(ret->why, sizeof(ret->why), "%s",
                 need->runtime_class
                     ? "a runtime class (gVisor or stronger) is required, and no live worker has one"
                     : "no live worker has a backend");
    else
        snprintf(ret->why, sizeof(ret->why), "%s: %s", name,
                 weak[0]     ? weak
                 : reason[0] ? reason
                             : "no live worker has it");
}

/* a is less loaded than b: the share of used slots first, then the free ones. */
static bool lighter(const stk_place_worker *a, const stk_place_worker *b)
{
    int64_t x = a->used * (b->slots > 0 ? b->slots : 1), y = b->used * (a->slots > 0 ? a->slots : 1);
    return x != y ? x < y : a->slots - a->used > b->slots - b->used;
}

static bool takes(const stk_place_view *view, uint32_t i, const stk_place_need *need, int rank,
                  stk_place_backend backend)
{
    const stk_place_worker *w = &view->workers[i];
    return w->usable && (need->plan || w->used < w->slots) &&
           rank_of(&w->probes[backend], backend, need->runtime_class) == rank;
}

static void pick_warm(const stk_place_view *view, const stk_place_need *need, int rank, stk_place_choice *ret)
{
    const char *key = need->template_keys[ret->backend];
    for (uint32_t i = 0; !need->plan && key[0] && i < view->nwarm; i++) {
        const stk_place_warm *warm = &view->warm[i];
        if (warm->gone || strcmp(warm->template_key, key) != 0 ||
            !takes(view, warm->worker, need, rank, ret->backend))
            continue;
        if (ret->what == STK_PLACE_HERE &&
            !lighter(&view->workers[warm->worker], &view->workers[ret->worker]))
            continue;
        ret->what = STK_PLACE_HERE;
        ret->worker = warm->worker;
        ret->warm = i;
    }
}

static void place_at(const stk_place_view *view, const stk_place_need *need, int rank, stk_place_choice *ret)
{
    ret->backend = by_order[rank % 8];
    pick_warm(view, need, rank, ret);
    if (ret->what == STK_PLACE_HERE)
        return;
    for (uint32_t i = 0; i < view->nworkers; i++) {
        if (!takes(view, i, need, rank, ret->backend))
            continue;
        if (ret->what == STK_PLACE_HERE && !lighter(&view->workers[i], &view->workers[ret->worker]))
            continue;
        ret->what = STK_PLACE_HERE;
        ret->worker = i;
    }
}

/* A plan is answered by whoever is there, if need be to say what is lacking. */
static void any_worker(const stk_place_view *view, stk_place_choice *ret)
{
    for (uint32_t i = 0; i < view->nworkers; i++)
        if (view->workers[i].usable &&
            (ret->what != STK_PLACE_HERE || lighter(&view->workers[i], &view->workers[ret->worker]))) {
            ret->what = STK_PLACE_HERE;
            ret->worker = i;
        }
    ret->backend = STK_PLACE_AUTO;
}

/* Of backends that are equally strong the next one serves while the first is full. */
void stk_place(const stk_place_view *view, const stk_place_need *need, stk_place_choice *ret)
{
    *ret = (stk_place_choice){.what = STK_PLACE_FULL, .warm = UINT32_MAX};
    int best = best_rank(view, need);
    if (!best) {
        lacking(view, need, ret);
        if (need->plan)
            any_worker(view, ret);
        return;
    }
    for (int rank = best; rank % 8 && ret->what != STK_PLACE_HERE; rank--)
        if (need->backend == STK_PLACE_AUTO || need->backend == by_order[rank % 8])
            place_at(view, need, rank, ret);
}
