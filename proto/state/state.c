#include "proto/state/state.h"
#include <stdio.h>

#define RESULT_MAX 65536

static void rows_done(stk_run_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        stk_run_row_done(&rows[i]);
    free(rows);
}

void stk_run_row_done(stk_run_row *row)
{
    stk_map_done(&row->labels);
    stk_bytes_done(&row->result);
}

void stk_worker_row_done(stk_worker_row *row)
{
    stk_bytes_done(&row->backends);
    stk_bytes_done(&row->stats);
}

#define DONE(name) static void done_##name(stk_op *op_)
#define SELF(name) stk_op_##name *op = (stk_op_##name *)op_

DONE(submit)
{
    SELF(submit);
    stk_map_done(&op->in.labels);
}

DONE(queue)
{
    SELF(queue);
    stk_map_done(&op->in.labels);
    stk_bytes_done(&op->assignment);
}

DONE(assign)
{
    SELF(assign);
    stk_map_done(&op->in.labels);
    stk_bytes_done(&op->in.record);
    stk_bytes_done(&op->record);
}

DONE(finish)
{
    SELF(finish);
    stk_bytes_done(&op->in.event);
    stk_bytes_done(&op->in.result);
}

DONE(cancel)
{
    SELF(cancel);
    stk_bytes_done(&op->in.event);
}

DONE(requeue)
{
    SELF(requeue);
    stk_bytes_done(&op->in.request);
}

DONE(run_get)
{
    SELF(run_get);
    stk_run_row_done(&op->row);
}

DONE(run_list)
{
    SELF(run_list);
    rows_done(op->rows, op->n);
}

DONE(join)
{
    SELF(join);
    stk_bytes_done(&op->in.backends);
    free(op->lost);
}

DONE(heartbeat)
{
    SELF(heartbeat);
    stk_bytes_done(&op->in.backends);
    stk_bytes_done(&op->in.stats);
    stk_strv_done(&op->cancels);
}

DONE(leave)
{
    SELF(leave);
    free(op->lost);
}

DONE(workers)
{
    SELF(workers);
    for (size_t i = 0; i < op->n; i++)
        stk_worker_row_done(&op->rows[i]);
    free(op->rows);
}

DONE(pool_list)
{
    SELF(pool_list);
    free(op->rows);
}

DONE(reap)
{
    SELF(reap);
    free(op->lost);
    stk_strv_done(&op->workers);
}

DONE(config_get)
{
    SELF(config_get);
    stk_bytes_done(&op->record);
}

DONE(config_set)
{
    SELF(config_set);
    stk_bytes_done(&op->in.record);
    stk_bytes_done(&op->in.audit);
}

DONE(config_done)
{
    SELF(config_done);
    stk_bytes_done(&op->in.record);
}

DONE(outbox_take)
{
    SELF(outbox_take);
    for (size_t i = 0; i < op->items.n; i++)
        stk_bytes_done(&op->items.v[i].value);
    free(op->items.v);
}

DONE(output_add)
{
    SELF(output_add);
    stk_bytes_done(&op->in.sealed);
}

DONE(output_read)
{
    SELF(output_read);
    for (size_t i = 0; i < op->n; i++)
        stk_bytes_done(&op->pieces[i].sealed);
    free(op->pieces);
}

/* These own nothing. */
#define done_start       NULL
#define done_lane_done   NULL
#define done_pool_put    NULL
#define done_pool_take   NULL
#define done_pool_drop   NULL
#define done_adopt       NULL
#define done_outbox_done NULL
#define done_counts      NULL
#define done_published   NULL

static const struct {
    size_t size;
    const char *name;
    void (*done)(stk_op *op);
} kinds[STK_OP_KINDS] = {
#define X(sym, name) [STK_OP_##sym] = {sizeof(stk_op_##name), #name, done_##name},
    STK_STATE_OPS(X)
#undef X
};

void *stk_op_new(stk_op_kind kind, stk_op_done done, void *arg)
{
    stk_op *op = stk_xcalloc(1, kinds[kind].size);
    op->kind = kind;
    op->done = done;
    op->arg = arg;
    return op;
}

void stk_op_free(stk_op *op)
{
    if (!op)
        return;
    if (kinds[op->kind].done)
        kinds[op->kind].done(op);
    free(op);
}

const char *stk_op_name(stk_op_kind kind)
{
    return (unsigned)kind < STK_OP_KINDS ? kinds[kind].name : "?";
}

static int encode_small(const stk_event *ev, stk_bytes *out)
{
    stk_buf buf STK_AUTO(stk_buf_done) = STK_BUF(RESULT_MAX);
    int rc = stk_event_encode(ev, &buf, NULL);
    if (rc == 0)
        stk_bytes_set(out, stk_buf_view(&buf));
    return rc;
}

/* State keeps at most 64 KiB of a result; the sealed output goes first, then the egress list. The store has
 * all of it. */
static void fit_result(stk_op_finish *op)
{
    stk_bytes *whole = op->in.result.set ? &op->in.result : &op->in.event;
    if (!whole->set || whole->n <= RESULT_MAX)
        return;
    stk_event ev = {0};
    stk_bytes small = {0};
    if (stk_event_decode(stk_bytes_view(whole), &ev, NULL) == 0) {
        stk_bytes_done(&ev.secret);
        if (encode_small(&ev, &small) < 0) {
            stk_bytes_done(&ev.egress);
            (void)encode_small(&ev, &small);
        }
    }
    stk_event_done(&ev);
    stk_bytes_done(&op->in.result);
    op->in.result = small;
    op->in.result.set = true;
}

void stk_state_call(stk_state *st, void *op)
{
    stk_op *base = op;
    if (base->kind == STK_OP_FINISH)
        fit_result(op);
    st->ops->call(st, base);
}

int64_t stk_state_watch(stk_state *st, const char *what, stk_state_note note, void *arg)
{
    return st->ops->watch(st, what, note, arg);
}

void stk_state_unwatch(stk_state *st, int64_t id)
{
    st->ops->unwatch(st, id);
}

bool stk_state_ready(const stk_state *st)
{
    return st->ops->ready(st);
}

void stk_state_close(stk_state *st)
{
    if (st)
        st->ops->close(st);
}
