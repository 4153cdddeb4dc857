/* Bus and state behind recorders: what happens is noted, refused, failed or held. */
#include "tests/unit/workers/rig.h"

/* --- the bus, recorded: a message is noted when it is durable */

typedef struct publishing {
    rig *r;
    char name[48];
    stk_publish_done done;
    void *arg;
} publishing;

static void keep_event(rig *r, stk_str value, char *name, size_t size)
{
    stk_err err;
    stk_event_done(&r->event);
    memset(&r->event, 0, sizeof(r->event));
    if (stk_event_decode(value, &r->event, &err) < 0)
        fail_msg("%s %s", err.pointer, err.detail);
    snprintf(name, size, "%.16s:%.24s", r->event.kind, r->event.reason);
}

static void name_of(rig *r, const stk_bus_out *out, char *name, size_t size)
{
    stk_audit_row row = {0};
    stk_err err;
    snprintf(name, size, "%s", out->topic + 4);
    if (strcmp(out->topic, STK_TOPIC_EVENTS) == 0) {
        keep_event(r, out->value, name, size);
    } else if (strcmp(out->topic, STK_TOPIC_AUDIT) == 0) {
        if (stk_audit_decode(out->value, &row, &err) < 0)
            fail_msg("%s %s", err.pointer, err.detail);
        snprintf(name, size, "%s", strrchr(row.action, '.') + 1);
        stk_audit_row_done(&row);
    }
}

static void on_recorded(stk_publish_outcome outcome, int32_t partition, int64_t offset, const stk_err *err,
                        void *arg)
{
    publishing *p = arg;
    publishing copy = *p;
    free(p);
    copy.r->flying--;
    if (outcome == STK_PUBLISHED)
        rig_note(copy.r, copy.name);
    if (copy.done)
        copy.done(outcome, partition, offset, err, copy.arg);
}

static void refuse_posted(void *arg)
{
    stk_err err;
    stk_err_set(&err, STK_E_UNAVAILABLE, "refused by the test");
    on_recorded(STK_PUBLISH_REFUSED, -1, -1, &err, arg);
}

static void record_publish(stk_bus *bus, const stk_bus_out *out, stk_publish_done done, void *arg)
{
    rig *r = STK_CONTAINER(bus, rig, bus_recorder);
    publishing *p = stk_xcalloc(1, sizeof(*p));
    *p = (publishing){.r = r, .done = done, .arg = arg};
    name_of(r, out, p->name, sizeof(p->name));
    r->flying++;
    if (r->refusals && strcmp(p->name, r->refuse) == 0) {
        r->refusals--;
        rig_note(r, "refused");
        stk_loop_post(r->loop, refuse_posted, p);
        return;
    }
    stk_bus_publish(r->bus, out, on_recorded, p);
}

static int pass_subscribe(stk_bus *bus, const stk_consumer_spec *spec, const stk_consumer_ops *ops, void *arg,
                          stk_consumer **ret, stk_err *err)
{
    return stk_bus_subscribe(STK_CONTAINER(bus, rig, bus_recorder)->bus, spec, ops, arg, ret, err);
}

static const stk_bus_ops bus_ops = {.publish = record_publish, .subscribe = pass_subscribe};

/* --- state, recorded: an operation is noted when it is answered */

typedef struct calling {
    rig *r;
    stk_op_done done;
    void *arg;
} calling;

static void note_answer(rig *r, const stk_op *op)
{
    char text[48];
    bool told = op->kind == STK_OP_START || op->kind == STK_OP_FINISH || op->kind == STK_OP_REQUEUE ||
                op->kind == STK_OP_POOL_PUT || op->kind == STK_OP_POOL_TAKE || op->kind == STK_OP_POOL_DROP;
    snprintf(text, sizeof(text), "%s%s", op->rc < 0 ? "failed:" : "", stk_op_name(op->kind));
    if (told)
        rig_note(r, text);
}

static void on_answered(stk_op *op, void *arg)
{
    calling *c = arg;
    calling copy = *c;
    free(c);
    copy.r->flying--;
    note_answer(copy.r, op);
    if (copy.done)
        copy.done(op, copy.arg);
}

static void fail_posted(void *arg)
{
    stk_op *op = arg;
    op->rc = stk_err_set(&op->err, STK_E_UNAVAILABLE, "failed by the test");
    op->done(op, op->arg);
    stk_op_free(op);
}

static void record_call(stk_state *st, stk_op *op)
{
    rig *r = STK_CONTAINER(st, rig, state_recorder);
    calling *c = stk_xcalloc(1, sizeof(*c));
    *c = (calling){.r = r, .done = op->done, .arg = op->arg};
    op->done = on_answered;
    op->arg = c;
    r->flying++;
    if (r->failures && op->kind == r->fail) {
        r->failures--;
        stk_loop_post(r->loop, fail_posted, op);
    } else if (r->holding && op->kind == r->hold && !r->held) {
        r->held = op;
    } else {
        stk_state_call(r->st, op);
    }
}

static const stk_state_ops state_ops = {.call = record_call};

void rig_release(rig *r)
{
    r->holding = false;
    if (r->held)
        stk_state_call(r->st, STK_TAKE(r->held));
}

void rig_record(rig *r)
{
    r->bus_recorder.ops = &bus_ops;
    r->state_recorder.ops = &state_ops;
}
