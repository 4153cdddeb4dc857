#include "scheduler/fleet.h"
#include "scheduler/impl.h"

#define READ_SPACING stk_us(500)

/* --- from rows to a picture --- */

static stk_place_isolation isolation_of(stk_str text)
{
    if (stk_str_eq(text, STK_STR("microvm")))
        return STK_PLACE_MICROVM;
    if (stk_str_eq(text, STK_STR("gvisor")))
        return STK_PLACE_GVISOR;
    return stk_str_eq(text, STK_STR("container")) ? STK_PLACE_CONTAINER : STK_PLACE_NONE;
}

static void read_probes(const stk_bytes *json, stk_place_worker *worker)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    if (!json->n || stk_json_parse(stk_bytes_view(json), NULL, &doc, NULL) < 0)
        return;
    for (stk_jv v = stk_jv_first(stk_json_root(doc)); v.doc; v = stk_jv_next(v)) {
        stk_place_backend b = stk_place_backend_parse(stk_jv_str(stk_jv_get(v, "name")));
        if (b == STK_PLACE_AUTO || b == STK_PLACE_BACKENDS)
            continue;
        stk_place_probe *probe = &worker->probes[b];
        probe->isolation = isolation_of(stk_jv_str(stk_jv_get(v, "isolation")));
        probe->ok = stk_jv_bool(stk_jv_get(v, "ok")) && probe->isolation != STK_PLACE_NONE;
        stk_str reason = stk_jv_str(stk_jv_get(v, "reason"));
        stk_str_copy(stk_str_n(reason.p, stk_min(reason.n, sizeof(probe->reason) - 1)), probe->reason,
                     sizeof(probe->reason));
    }
}

static void read_warm(const stk_pool_row *pool, size_t n, stk_place_view *view)
{
    view->warm = stk_xcalloc(n, sizeof(*view->warm));
    for (size_t i = 0; i < n; i++)
        for (uint32_t w = 0; w < view->nworkers; w++) {
            const stk_place_worker *worker = &view->workers[w];
            if (strcmp(worker->id, pool[i].worker) != 0 ||
                strcmp(worker->incarnation, pool[i].incarnation) != 0)
                continue;
            stk_place_warm *warm = &view->warm[view->nwarm++];
            stk_str_copy(stk_str_of(pool[i].sandbox), warm->sandbox, sizeof(warm->sandbox));
            stk_str_copy(stk_str_of(pool[i].template_key), warm->template_key, sizeof(warm->template_key));
            warm->worker = w;
            break;
        }
}

void stk_fleet_view(const stk_worker_row *workers, size_t nworkers, const stk_pool_row *pool, size_t npool,
                    stk_place_view *ret)
{
    *ret = (stk_place_view){.workers = stk_xcalloc(nworkers, sizeof(*ret->workers)), .nworkers = nworkers};
    for (size_t i = 0; i < nworkers; i++) {
        stk_place_worker *w = &ret->workers[i];
        stk_str_copy(stk_str_of(workers[i].id), w->id, sizeof(w->id));
        stk_str_copy(stk_str_of(workers[i].incarnation), w->incarnation, sizeof(w->incarnation));
        w->slots = workers[i].slots;
        w->used = workers[i].used;
        w->usable = workers[i].live && !workers[i].draining;
        read_probes(&workers[i].backends, w);
    }
    read_warm(pool, npool, ret);
}

void stk_fleet_view_done(stk_place_view *view)
{
    free(view->workers);
    free(view->warm);
    *view = (stk_place_view){.workers = NULL};
}

/* --- books --- */

static void apply(stk_fleet *fleet, const stk_booking *book, int64_t sign)
{
    for (size_t i = 0; book->slot && i < fleet->view.nworkers; i++)
        if (strcmp(fleet->view.workers[i].id, book->worker) == 0)
            fleet->view.workers[i].used += sign;
    for (size_t i = 0; book->sandbox[0] && sign > 0 && i < fleet->view.nwarm; i++)
        if (strcmp(fleet->view.warm[i].sandbox, book->sandbox) == 0)
            fleet->view.warm[i].gone = true;
}

uint64_t stk_fleet_book(stk_fleet *fleet, const stk_place_choice *choice, bool slot)
{
    if (fleet->nbooks == fleet->books_size) {
        fleet->books_size = fleet->books_size ? fleet->books_size * 2 : 32;
        fleet->books = stk_xrealloc(fleet->books, fleet->books_size * sizeof(*fleet->books));
    }
    stk_booking *book = &fleet->books[fleet->nbooks++];
    *book = (stk_booking){.ticket = ++fleet->tickets, .slot = slot};
    memcpy(book->worker, fleet->view.workers[choice->worker].id, sizeof(book->worker));
    if (choice->warm != UINT32_MAX)
        memcpy(book->sandbox, fleet->view.warm[choice->warm].sandbox, sizeof(book->sandbox));
    apply(fleet, book, 1);
    return book->ticket;
}

void stk_fleet_void(stk_fleet *fleet, uint64_t ticket)
{
    for (size_t i = 0; i < fleet->nbooks; i++)
        if (fleet->books[i].ticket == ticket && !fleet->books[i].void_) {
            fleet->books[i].void_ = true;
            apply(fleet, &fleet->books[i], -1);
        }
}

/* What the reading saw is in its rows; what came after it is not. */
static void settle_books(stk_fleet *fleet)
{
    size_t kept = 0;
    for (size_t i = 0; i < fleet->nbooks; i++) {
        if (fleet->books[i].ticket <= fleet->read_ticket)
            continue;
        if (!fleet->books[i].void_)
            apply(fleet, &fleet->books[i], 1);
        fleet->books[kept++] = fleet->books[i];
    }
    fleet->nbooks = kept;
}

/* --- reading --- */

static void count(stk_scheduler *s)
{
    stk_fleet *fleet = &s->fleet;
    fleet->live = 0;
    fleet->slots = fleet->used = 0;
    for (size_t i = 0; i < fleet->view.nworkers; i++) {
        const stk_place_worker *w = &fleet->view.workers[i];
        fleet->live += w->usable;
        fleet->slots += w->usable ? w->slots : 0;
        fleet->used += w->usable ? w->used : 0;
    }
    stk_mono now = stk_mono_now();
    if (!fleet->live && !s->nobody_since.ns)
        s->nobody_since = now;
    if (fleet->live && (s->nobody_since.ns || !s->somebody_since.ns))
        s->somebody_since = now;
    if (fleet->live)
        s->nobody_since.ns = 0;
}

typedef struct reading {
    stk_scheduler *s;
    stk_worker_row *workers;
    stk_pool_row *pool;
    size_t nworkers, npool, left; /* left: answers to come */
    bool failed;
} reading;

/* Both answers are there: a new picture, unless one failed. */
static void arrived(reading *r)
{
    stk_scheduler *s = r->s;
    bool dead = stk__leave(s);
    if (--r->left)
        return;
    if (!dead && !r->failed) {
        stk_fleet_view_done(&s->fleet.view);
        stk_fleet_view(r->workers, r->nworkers, r->pool, r->npool, &s->fleet.view);
        settle_books(&s->fleet);
        s->fleet.known = true;
        count(s);
    }
    for (size_t i = 0; i < r->nworkers; i++)
        stk_worker_row_done(&r->workers[i]);
    free(r->workers);
    free(r->pool);
    free(r);
    if (dead)
        return;
    s->fleet.reading = false;
    if (s->fleet.again)
        stk_fleet_stale(s);
    stk__pump(s);
}

static void on_workers(stk_op *op_, void *arg)
{
    stk_op_workers *op = (stk_op_workers *)op_;
    reading *r = arg;
    r->failed |= op_->rc < 0;
    r->workers = STK_TAKE(op->rows);
    r->nworkers = r->workers ? op->n : 0;
    op->n = 0;
    arrived(r);
}

static void on_pool(stk_op *op_, void *arg)
{
    stk_op_pool_list *op = (stk_op_pool_list *)op_;
    reading *r = arg;
    r->failed |= op_->rc < 0;
    r->pool = STK_TAKE(op->rows);
    r->npool = r->pool ? op->n : 0;
    op->n = 0;
    arrived(r);
}

static void read_now(void *arg)
{
    stk_scheduler *s = arg;
    stk_fleet *fleet = &s->fleet;
    reading *r = stk_xcalloc(1, sizeof(*r));
    r->s = s;
    r->left = 2;
    fleet->reading = true;
    fleet->again = false;
    fleet->read_at = stk_mono_now();
    fleet->read_ticket = fleet->tickets;
    stk__enter(s);
    stk_state_call(s->spec.state, stk_op_new(STK_OP_WORKERS, on_workers, r));
    stk__enter(s);
    stk_state_call(s->spec.state, stk_op_new(STK_OP_POOL_LIST, on_pool, r));
}

void stk_fleet_stale(stk_scheduler *s)
{
    stk_fleet *fleet = &s->fleet;
    if (fleet->reading) {
        fleet->again = true;
        return;
    }
    stk_span since = stk_mono_sub(stk_mono_now(), fleet->read_at);
    if (!fleet->read_at.ns || since.ns >= READ_SPACING.ns) {
        stk_timer_clear(fleet->timer);
        read_now(s);
    } else if (!fleet->again) {
        fleet->again = true;
        stk_timer_set(fleet->timer, stk_ns(READ_SPACING.ns - since.ns));
    }
}

void stk_fleet_init(stk_fleet *fleet, stk_scheduler *s)
{
    fleet->timer = stk_timer_new(s->spec.loop, read_now, s);
}

void stk_fleet_done(stk_fleet *fleet)
{
    stk_timer_free(fleet->timer);
    fleet->timer = NULL;
    stk_fleet_view_done(&fleet->view);
    free(fleet->books);
    fleet->books = NULL;
}
