#include "tests/conformance/state/rig.h"

/* "run-1" -> a valid id with that prefix, always the same; "" stays. */
const char *ID(const char *name)
{
    static char ring[64][STK_ID_SIZE];
    static unsigned at;
    uint8_t hash[STK_SHA256];
    char prefix[13];
    char *out = ring[at++ % 64];
    out[0] = '\0';
    if (!name[0])
        return out;
    snprintf(prefix, sizeof(prefix), "%.*s", (int)strcspn(name, "-"), name);
    stk_sha256_of(stk_str_of(name), hash);
    stk_id_from(prefix, hash, out);
    return out;
}

#define OR(text, other) ((text) ? (text) : (other))

stk_op_submit *do_submit(rig *r, const char *run, const char *tenant, const char *key, const char *body,
                         int64_t cap)
{
    OP(submit, SUBMIT);
    TEXT(op->in.run, ID(run));
    TEXT(op->in.tenant, tenant);
    TEXT(op->in.agent, "coder");
    TEXT(op->in.kind, "run");
    TEXT(op->in.retry, "never");
    op->in.submitted = (stk_wall){1700000000000000000};
    op->in.queued_cap = cap;
    op->in.has_key = key != NULL;
    if (key) {
        stk_sha256_of(stk_str_of(key), op->in.key_hash);
        stk_sha256_of(stk_str_of(body), op->in.body_hash);
    }
    return CALL_OK(r, op);
}

stk_op_queue *do_queue(rig *r, const char *run, const char *tenant, int64_t offset)
{
    OP(queue, QUEUE);
    TEXT(op->in.run, ID(run));
    TEXT(op->in.tenant, tenant);
    TEXT(op->in.agent, "coder");
    TEXT(op->in.kind, "run");
    TEXT(op->in.retry, "never");
    op->in.submitted = (stk_wall){1700000000000000000};
    op->in.partition = 3;
    op->in.offset = offset;
    return CALL_OK(r, op);
}

void record_of(const assign_args *args, stk_bytes *ret)
{
    stk_assignment asg = {
        .v = STK_MESSAGE_VERSION, .kind = "assign", .attempt = 1, .assigned = {1700000001000000000}};
    stk_buf text = STK_BUF(STK_RECORD_MAX);
    stk_err err = {0};
    char request[128];
    TEXT(asg.assignment, ID(args->assignment));
    TEXT(asg.run, ID(args->run));
    TEXT(asg.worker, ID(args->worker));
    TEXT(asg.incarnation, ID(args->incarnation));
    TEXT(asg.backend, "oci");
    snprintf(request, sizeof(request), "{\"id\":\"%s\"}", ID(args->run));
    stk_bytes_set(&asg.request, stk_str_of(request));
    if (stk_assignment_encode(&asg, &text, &err) < 0)
        fail_msg("lane record: %s", err.detail);
    stk_bytes_set(ret, stk_buf_view(&text));
    stk_buf_done(&text);
    stk_assignment_done(&asg);
}

stk_op_assign *do_assign_with(rig *r, assign_args args)
{
    OP(assign, ASSIGN);
    TEXT(op->in.run, ID(args.run));
    TEXT(op->in.tenant, OR(args.tenant, "acme"));
    TEXT(op->in.agent, "coder");
    TEXT(op->in.kind, args.plan ? "plan" : "run");
    TEXT(op->in.retry, OR(args.retry, "never"));
    op->in.submitted = (stk_wall){1700000000000000000};
    op->in.partition = 3;
    op->in.offset = 7;
    TEXT(op->in.assignment, ID(args.assignment));
    TEXT(op->in.worker, ID(args.worker));
    TEXT(op->in.incarnation, ID(args.incarnation));
    TEXT(op->in.sandbox, ID(OR(args.sandbox, "")));
    op->in.attempt = args.attempt ? args.attempt : 1;
    op->in.running_cap = args.running_cap;
    op->in.plan = args.plan;
    op->in.first = args.first;
    record_of(&args, &op->in.record);
    return CALL_OK(r, op);
}

stk_op_assign *do_assign(rig *r, const char *run, const char *assignment, const char *worker,
                         const char *incarnation)
{
    return ASSIGN(r, .run = run, .assignment = assignment, .worker = worker, .incarnation = incarnation);
}

stk_op_start *do_start(rig *r, const char *run, const char *assignment, const char *worker,
                       const char *incarnation)
{
    OP(start, START);
    TEXT(op->in.run, ID(run));
    TEXT(op->in.assignment, ID(assignment));
    TEXT(op->in.worker, ID(worker));
    TEXT(op->in.incarnation, ID(incarnation));
    op->in.now = (stk_wall){1700000002000000000};
    return CALL_OK(r, op);
}

stk_op_finish *do_finish(rig *r, const char *run, const char *assignment, const char *reason)
{
    OP(finish, FINISH);
    char text[128];
    TEXT(op->in.run, ID(run));
    TEXT(op->in.assignment, ID(assignment));
    TEXT(op->in.reason, reason);
    op->in.now = (stk_wall){1700000003000000000};
    snprintf(text, sizeof(text), "finished %s %s", run, reason);
    stk_bytes_set(&op->in.event, stk_str_of(text));
    return CALL_OK(r, op);
}

stk_op_cancel *do_cancel(rig *r, const char *run, const char *tenant)
{
    OP(cancel, CANCEL);
    TEXT(op->in.run, ID(run));
    TEXT(op->in.tenant, tenant);
    op->in.now = (stk_wall){1700000004000000000};
    stk_bytes_set(&op->in.event, STK_STR("cancelled"));
    return CALL_OK(r, op);
}

stk_op_requeue *do_requeue(rig *r, const char *run, const char *assignment, bool count, bool repeat)
{
    OP(requeue, REQUEUE);
    TEXT(op->in.run, ID(run));
    TEXT(op->in.assignment, ID(assignment));
    op->in.count = count;
    op->in.repeat = repeat;
    stk_bytes_set(&op->in.request, STK_STR("the request"));
    return CALL_OK(r, op);
}

stk_op_run_get *do_get(rig *r, const char *run)
{
    OP(run_get, RUN_GET);
    TEXT(op->in.run, ID(run));
    return CALL_OK(r, op);
}

stk_op_join *do_join(rig *r, const char *worker, const char *incarnation, int64_t slots, int32_t lanes)
{
    OP(join, JOIN);
    TEXT(op->in.worker, ID(worker));
    TEXT(op->in.incarnation, ID(incarnation));
    TEXT(op->in.host, "host");
    op->in.slots = slots;
    op->in.lanes = lanes;
    op->in.lease = LEASE;
    stk_bytes_set(&op->in.backends, STK_STR("[]"));
    op->in.now = (stk_wall){1700000000000000000};
    return CALL_OK(r, op);
}

stk_op_heartbeat *do_heartbeat(rig *r, const char *worker, const char *incarnation)
{
    OP(heartbeat, HEARTBEAT);
    TEXT(op->in.worker, ID(worker));
    TEXT(op->in.incarnation, ID(incarnation));
    op->in.lease = LEASE;
    op->in.slots = 4;
    return CALL_OK(r, op);
}

stk_op_leave *do_leave(rig *r, const char *worker, const char *incarnation)
{
    OP(leave, LEAVE);
    TEXT(op->in.worker, ID(worker));
    TEXT(op->in.incarnation, ID(incarnation));
    op->in.now = (stk_wall){1700000005000000000};
    return CALL_OK(r, op);
}

stk_op_lane_done *do_lane_done(rig *r, int32_t lane, const char *worker, const char *incarnation,
                               int64_t offset)
{
    OP(lane_done, LANE_DONE);
    op->in.lane = lane;
    TEXT(op->in.worker, ID(worker));
    TEXT(op->in.incarnation, ID(incarnation));
    op->in.offset = offset;
    return CALL_OK(r, op);
}

stk_op_reap *do_reap(rig *r)
{
    OP(reap, REAP);
    op->in.heartbeat = HEARTBEAT;
    op->in.submitted_for = stk_sec(60);
    op->in.now = (stk_wall){1700000009000000000};
    return CALL_OK(r, op);
}

stk_op_pool_put *do_put(rig *r, const char *sandbox, const char *template_key, const char *worker,
                        const char *incarnation)
{
    OP(pool_put, POOL_PUT);
    TEXT(op->in.sandbox, ID(sandbox));
    TEXT(op->in.template_key, template_key);
    TEXT(op->in.tenant, "acme");
    TEXT(op->in.pool, "warm");
    TEXT(op->in.worker, ID(worker));
    TEXT(op->in.incarnation, ID(incarnation));
    TEXT(op->in.backend, "oci");
    return CALL_OK(r, op);
}

stk_op_pool_take *do_take(rig *r, const char *sandbox, const char *template_key)
{
    OP(pool_take, POOL_TAKE);
    TEXT(op->in.sandbox, ID(sandbox));
    TEXT(op->in.template_key, template_key);
    return CALL_OK(r, op);
}

stk_op_outbox_take *do_outbox(rig *r, stk_span older, stk_span hold)
{
    OP(outbox_take, OUTBOX_TAKE);
    op->in.older = older;
    op->in.hold = hold;
    return CALL_OK(r, op);
}

void do_outbox_done(rig *r, int64_t id)
{
    OP(outbox_done, OUTBOX_DONE);
    op->in.id = id;
    CALL_OK(r, op);
}

stk_op_counts *do_counts(rig *r)
{
    OP(counts, COUNTS);
    return CALL_OK(r, op);
}

stk_worker_row *worker_of(rig *r, const char *worker)
{
    OP(workers, WORKERS);
    op = CALL_OK(r, op);
    for (size_t i = 0; i < op->n; i++)
        if (strcmp(op->rows[i].id, ID(worker)) == 0)
            return &op->rows[i];
    return NULL;
}
