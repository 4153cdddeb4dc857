#include "proto/state/outbox.h"

/* One take and the publishes it led to. Items of one take go out one after the other: their order matters (an
 * audit row before the configuration it speaks of). */
typedef struct flush {
    stk_bus *bus;
    stk_state *st;
    stk_outbox_items items;
    size_t at, published;
    stk_outbox_flushed done;
    void *arg;
} flush;

static void finish(flush *f, bool ok)
{
    stk_outbox_flushed done = f->done;
    void *arg = f->arg;
    size_t published = f->published;
    for (size_t i = 0; i < f->items.n; i++)
        stk_bytes_done(&f->items.v[i].value);
    free(f->items.v);
    free(f);
    if (done)
        done(ok, published, arg);
}

static void next(flush *f);

static void on_marked(stk_op *op, void *arg)
{
    flush *f = arg;
    f->at++;
    next(f);
}

static void on_published(stk_publish_outcome outcome, int32_t partition, int64_t offset, const stk_err *err,
                         void *arg)
{
    flush *f = arg;
    if (outcome != STK_PUBLISHED) {
        finish(f, false);
        return;
    }
    f->published++;
    stk_op_outbox_done *op = stk_op_new(STK_OP_OUTBOX_DONE, on_marked, f);
    op->in.id = f->items.v[f->at].id;
    stk_state_call(f->st, op);
}

static void next(flush *f)
{
    if (f->at == f->items.n) {
        finish(f, true);
        return;
    }
    const stk_outbox_item *item = &f->items.v[f->at];
    stk_bus_out out = {.topic = item->topic,
                       .partition = -1,
                       .key = stk_str_of(item->key),
                       .value = stk_bytes_view(&item->value)};
    stk_bus_publish(f->bus, &out, on_published, f);
}

static void on_taken(stk_op *op, void *arg)
{
    flush *f = arg;
    stk_op_outbox_take *take = (stk_op_outbox_take *)op;
    f->items = take->items;
    take->items = (stk_outbox_items){0};
    if (op->rc < 0)
        finish(f, false);
    else
        next(f);
}

static void begin(stk_bus *bus, stk_state *st, int64_t id, stk_span older, stk_span hold,
                  stk_outbox_flushed done, void *arg)
{
    flush *f = stk_xcalloc(1, sizeof(*f));
    *f = (flush){.bus = bus, .st = st, .done = done, .arg = arg};
    stk_op_outbox_take *op = stk_op_new(STK_OP_OUTBOX_TAKE, on_taken, f);
    op->in.id = id;
    op->in.older = older;
    op->in.hold = hold;
    op->in.most = 100;
    stk_state_call(st, op);
}

void stk_outbox_publish(stk_bus *bus, stk_state *st, int64_t id, stk_outbox_flushed done, void *arg)
{
    if (id == 0 && !done)
        return;
    begin(bus, st, id ? id : INT64_MAX, stk_ns(0), stk_sec(30), done, arg);
}

void stk_outbox_sweep(stk_bus *bus, stk_state *st, stk_span older, stk_span hold, stk_outbox_flushed done,
                      void *arg)
{
    begin(bus, st, 0, older, hold, done, arg);
}
