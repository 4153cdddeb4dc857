#include "tests/conformance/state/rig.h"

int rig_setup(void **state)
{
    rig *r = stk_xcalloc(1, sizeof(*r));
    r->factory = *state;
    r->self = r->factory->open();
    if (stk_loop_new(&r->loop, NULL) < 0)
        return -1;
    r->st = r->factory->handle(r->self, r->loop);
    *state = r;
    return 0;
}

int rig_teardown(void **state)
{
    rig *r = *state;
    for (size_t i = 0; i < r->nkept; i++)
        stk_op_free(r->kept[i]);
    free(r->kept);
    stk_state_close(r->st);
    event_base_loop(stk_loop_base(r->loop), EVLOOP_NONBLOCK); /* what is still posted */
    r->factory->close(r->self);
    stk_loop_free(r->loop);
    free(r);
    return 0;
}

void rig_advance(rig *r, stk_span by)
{
    r->factory->advance(r->self, by);
}

void rig_restart(rig *r, bool other_boot)
{
    stk_state_close(r->st);
    event_base_loop(stk_loop_base(r->loop), EVLOOP_NONBLOCK);
    r->factory->restart(r->self, other_boot);
    r->st = r->factory->handle(r->self, r->loop);
}

typedef struct answer {
    void *op;
    size_t size;
} answer;

/* The port frees the operation after this: its contents move to the test's copy. */
static void on_answer(stk_op *op, void *arg)
{
    answer *a = arg;
    void *copy = malloc(a->size);
    memcpy(copy, op, a->size);
    memset((char *)op + sizeof(*op), 0, a->size - sizeof(*op));
    a->op = copy;
}

static bool answered(void *arg)
{
    return ((answer *)arg)->op != NULL;
}

void rig_until(rig *r, bool (*done)(void *arg), void *arg)
{
    int64_t deadline = stk_mono_now().ns + stk_sec(30).ns;
    while (!done(arg)) {
        if (stk_mono_now().ns > deadline)
            fail_msg("nothing came within 30 s");
        event_base_loop(stk_loop_base(r->loop), EVLOOP_ONCE);
    }
}

void *rig_call(rig *r, void *op, size_t size)
{
    answer a = {.size = size};
    ((stk_op *)op)->done = on_answer;
    ((stk_op *)op)->arg = &a;
    stk_state_call(r->st, op);
    assert_null(a.op); /* never from inside the call */
    rig_until(r, answered, &a);
    if ((r->nkept & (r->nkept - 1)) == 0)
        r->kept = stk_xrealloc(r->kept, (r->nkept ? r->nkept * 2 : 1) * sizeof(void *));
    return r->kept[r->nkept++] = a.op;
}

void *rig_ok(void *arg)
{
    stk_op *op = arg;
    if (op->rc < 0)
        fail_msg("%s: %s", stk_op_name(op->kind), op->err.detail);
    return op;
}
