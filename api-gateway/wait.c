#include "api-gateway/wait.h"
#include <stdio.h>

#define SWEEP stk_sec(1)

typedef struct waiter {
    stk_gw_exchange *ex;
    char run[STK_ID_SIZE];
    int64_t watch;
    stk_timer *sweep, *limit;
    bool asking, again, ended;
    stk_run_state seen;
    stk_gw_waited done;
    void *arg;
} waiter;

static void ask(void *arg);

static void waiter_free(waiter *w)
{
    stk_gw_exchange *ex = w->ex;
    free(w);
    stk_gw_unref_exchange(ex);
}

/* The waiter itself stays until its question is answered. */
static void finish(waiter *w, const stk_run_row *row, bool tell)
{
    if (w->ended)
        return;
    w->ended = true;
    w->ex->interrupt = NULL;
    w->ex->waiting = NULL;
    stk_state_unwatch(w->ex->gw->spec.state, w->watch);
    stk_timer_free(w->sweep);
    stk_timer_free(w->limit);
    if (tell)
        w->done(w->ex, row, w->seen, w->arg);
    if (!w->asking)
        waiter_free(w);
}

static void on_row(stk_op *op_, void *arg)
{
    stk_op_run_get *op = (stk_op_run_get *)op_;
    waiter *w = arg;
    w->asking = false;
    if (w->ended) {
        waiter_free(w);
        return;
    }
    stk_timer_set(w->sweep, SWEEP);
    if (op_->rc == 0 && op->found)
        w->seen = op->row.state;
    if (op_->rc == 0 && op->found && op->row.state == STK_RUN_FINISHED)
        finish(w, &op->row, true);
    else if (w->again)
        ask(w);
}

static void ask(void *arg)
{
    waiter *w = arg;
    w->again = w->asking;
    if (w->asking)
        return;
    w->asking = true;
    stk_op_run_get *op = stk_op_new(STK_OP_RUN_GET, on_row, w);
    memcpy(op->in.run, w->run, sizeof(op->in.run));
    memcpy(op->in.tenant, w->ex->caller.tenant, sizeof(op->in.tenant));
    stk_state_call(w->ex->gw->spec.state, op);
}

static void on_note(const char *what, void *arg)
{
    ask(arg);
}

static void on_limit(void *arg)
{
    finish(arg, NULL, true);
}

static void on_interrupt(stk_gw_exchange *ex, bool gone)
{
    finish(ex->waiting, NULL, !gone);
}

void stk_gw_wait(stk_gw_exchange *ex, const char *run, stk_span span, stk_gw_waited done, void *arg)
{
    char what[STK_ID_SIZE + 8];
    stk_gateway *gw = ex->gw;
    waiter *w = stk_xcalloc(1, sizeof(*w));
    *w = (waiter){.ex = stk_gw_ref(ex), .done = done, .arg = arg, .seen = STK_RUN_SUBMITTED};
    snprintf(w->run, sizeof(w->run), "%s", run);
    snprintf(what, sizeof(what), "run/%s", run);
    ex->interrupt = on_interrupt;
    ex->waiting = w;
    gw->counts.waits++;
    w->watch = stk_state_watch(gw->spec.state, what, on_note, w);
    w->sweep = stk_timer_new(gw->spec.loop, ask, w);
    w->limit = stk_timer_new(gw->spec.loop, on_limit, w);
    stk_timer_set(w->limit, gw->draining || !ex->x ? stk_ns(0) : span);
    ask(w);
}
