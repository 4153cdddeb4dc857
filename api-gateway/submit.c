#include "api-gateway/submit.h"
#include "proto/base/log.h"
#include "proto/state/describe.h"
#include <stdio.h>

#define KEY_MAX 255

typedef struct submission {
    stk_gw_exchange *ex;
    stk_request req;
    stk_buf text; /* as it goes on stk.requests */
    bool has_key;
    char run[STK_ID_SIZE];
    stk_run_state state;
    uint8_t key_hash[STK_SHA256], body_hash[STK_SHA256];
    stk_gw_submitted done;
    void *arg;
} submission;

static void submission_free(submission *s)
{
    stk_gw_exchange *ex = s->ex;
    stk_request_done(&s->req);
    stk_buf_done(&s->text);
    free(s);
    stk_gw_unref_exchange(ex);
}
STK_DEFINE_FREEP(submission, submission_freep, submission_free)

static void finish(submission *s)
{
    s->done(s->ex, s->run, s->state, s->arg);
}

/* --- the message --- */

/* A keyed hash: a body holds secrets, and a plain hash of it in state could be guessed at. */
static int take_key(submission *s, stk_err *err)
{
    stk_gw_exchange *ex = s->ex;
    stk_str key = stk_gw_header(ex, "Idempotency-Key");
    if (!key.p)
        return 0;
    for (size_t i = 0; i < key.n; i++)
        if (key.p[i] <= 0x20 || key.p[i] > 0x7e)
            return stk_err_set(err, STK_E_FIELD, "Idempotency-Key: visible ASCII characters only");
    if (key.n == 0 || key.n > KEY_MAX)
        return stk_err_set(err, STK_E_FIELD, "Idempotency-Key: 1 to %d characters", KEY_MAX);
    const stk_str parts[] = {stk_str_of(ex->caller.tenant), key};
    stk_sha256_parts(parts, STK_COUNT(parts), s->key_hash);
    stk_keyed_hash(ex->gw->spec.ring, "run.body", stk_buf_view(&ex->body), s->body_hash);
    s->has_key = true;
    return 0;
}

static int make_text(submission *s, const stk_run_secret *secret, stk_err *err)
{
    stk_request *req = &s->req;
    stk_gw_exchange *ex = s->ex;
    if (s->has_key)
        stk_id_from("run", s->key_hash, req->id);
    else
        stk_id_new("run", req->submitted, req->id);
    memcpy(req->tenant, ex->caller.tenant, sizeof(req->tenant));
    memcpy(req->actor, ex->caller.actor, sizeof(req->actor));
    memcpy(req->traceparent, ex->trace, sizeof(req->traceparent));
    memcpy(s->run, req->id, sizeof(s->run));
    stk_buf_init(&s->text, STK_RECORD_MAX);
    int rc = stk_request_seal(req, secret, ex->gw->spec.ring, err);
    if (rc == 0)
        rc = stk_request_encode(req, &s->text, err);
    return rc == -STK_E_LIMIT
               ? stk_err_set(err, STK_E_TOO_LARGE, "the request is over %d bytes once sealed", STK_RECORD_MAX)
               : rc;
}

/* --- publish --- */

static void tell_place(submission *s, int32_t partition, int64_t offset)
{
    stk_op_published *op = stk_op_new(STK_OP_PUBLISHED, NULL, NULL);
    memcpy(op->in.run, s->run, sizeof(op->in.run));
    op->in.partition = partition;
    op->in.offset = offset;
    stk_gw_tell(s->ex->gw, op);
}

static void on_published(stk_publish_outcome outcome, int32_t partition, int64_t offset, const stk_err *why,
                         void *arg)
{
    submission *s STK_AUTO(submission_freep) = arg;
    stk_gateway *gw = s->ex->gw;
    stk_err err = {0};
    if (stk_gw_over(s->ex))
        return;
    if (outcome == STK_PUBLISHED) {
        tell_place(s, partition, offset);
        finish(s);
    } else if (outcome == STK_PUBLISH_REFUSED) {
        gw->counts.refused_publish++;
        bool large = why && why->code == STK_E_TOO_LARGE;
        stk_err_set(&err, large ? STK_E_TOO_LARGE : STK_E_UNAVAILABLE, "nothing was enqueued: %s",
                    why ? why->detail : "the bus refused");
        stk_gw_answer_err(s->ex, &err);
    } else {
        gw->counts.unknown_publish++;
        stk_err_set(&err, STK_E_OUTCOME_UNKNOWN,
                    "the bus did not say whether it holds this run: ask for %s, do not send it again "
                    "without its Idempotency-Key",
                    s->run);
        stk_gw_answer_problem(s->ex, &err, "", &(stk_gw_more){.run_id = s->run});
    }
}

static void publish(submission *s)
{
    char priority[8], deadline[STK_WALL_TEXT] = "";
    const stk_request *req = &s->req;
    snprintf(priority, sizeof(priority), "%d", (int)req->priority);
    if (req->deadline.ns)
        stk_wall_format(req->deadline, deadline);
    stk_bus_out out = {.topic = STK_TOPIC_REQUESTS,
                       .partition = -1,
                       .key = stk_str_of(s->run),
                       .value = stk_buf_view(&s->text),
                       .headers = {{"tenant", stk_str_of(req->tenant)},
                                   {"priority", stk_str_of(priority)},
                                   {"deadline", stk_str_of(deadline)},
                                   {"kind", stk_str_of(req->kind)}},
                       .nheaders = 4};
    stk_bus_publish(s->ex->gw->spec.bus, &out, on_published, s);
}

/* --- reserve --- */

/* The key was used so long ago that only the store remembers. */
static void on_stored(const stk_err *err, const stk_event *ev, void *arg)
{
    submission *s = arg;
    if (!stk_gw_over(s->ex) && !err && !ev) {
        publish(s);
        return;
    }
    submission *done STK_AUTO(submission_freep) = s;
    if (stk_gw_over(s->ex))
        return;
    if (ev) {
        done->state = STK_RUN_NONE;
        finish(done);
        return;
    }
    stk_err why;
    stk_err_set(&why, STK_E_UNAVAILABLE, "whether this Idempotency-Key was used before is not known now: %s",
                err->detail);
    stk_gw_answer_err(done->ex, &why);
}

static void refuse(submission *s, const stk_op_submit *op)
{
    stk_err err = {0};
    if (op->op.rc < 0) {
        err = op->op.err;
    } else if (op->outcome == STK_SUBMIT_MISMATCH) {
        stk_err_set(&err, STK_E_IDEMPOTENCY,
                    "this Idempotency-Key belongs to %s, which was sent with another body", op->run);
    } else {
        s->ex->gw->counts.over_cap++;
        stk_err_set(&err, STK_E_BUSY, "this tenant has %lld unfinished runs, as many as it may have",
                    (long long)op->in.queued_cap);
    }
    stk_gw_answer_err(s->ex, &err);
    submission_free(s);
}

static void on_reserved(stk_op *op_, void *arg)
{
    stk_op_submit *op = (stk_op_submit *)op_;
    submission *s = arg;
    stk_gateway *gw = s->ex->gw;
    if (stk_gw_over(s->ex)) {
        submission_free(s);
        return;
    }
    if (op_->rc < 0 || op->outcome == STK_SUBMIT_MISMATCH || op->outcome == STK_SUBMIT_OVER_CAP) {
        refuse(s, op);
        return;
    }
    bool fresh = op->outcome == STK_SUBMIT_NEW;
    gw->counts.submitted += fresh;
    gw->counts.repeated += !fresh;
    s->state = op->state;
    if (fresh && s->has_key) {
        stk_store_result(gw->spec.store, s->req.tenant, s->run, on_stored, s);
    } else if (op->state == STK_RUN_SUBMITTED) {
        publish(s); /* also again: the first publish may have been lost */
    } else {
        finish(s);
        submission_free(s);
    }
}

static void reserve(submission *s)
{
    const stk_request *req = &s->req;
    stk_op_submit *op = stk_op_new(STK_OP_SUBMIT, on_reserved, s);
    STK_STATE_DESCRIBE(&op->in, req);
    op->in.has_key = s->has_key;
    memcpy(op->in.key_hash, s->key_hash, sizeof(op->in.key_hash));
    memcpy(op->in.body_hash, s->body_hash, sizeof(op->in.body_hash));
    op->in.queued_cap = s->ex->gw->spec.queued_cap;
    stk_state_call(s->ex->gw->spec.state, op);
}

void stk_gw_submit(stk_gw_exchange *ex, stk_request *req, stk_run_secret *secret, stk_gw_submitted done,
                   void *arg)
{
    stk_err err = {0};
    submission *s = stk_xcalloc(1, sizeof(*s));
    *s = (submission){.ex = stk_gw_ref(ex), .req = *req, .done = done, .arg = arg};
    *req = (stk_request){0};
    int rc = take_key(s, &err);
    if (rc == 0 && !stk_bus_ready(ex->gw->spec.bus))
        rc = stk_err_set(&err, STK_E_UNAVAILABLE, "the bus is not there now: nothing was enqueued");
    if (rc == 0)
        rc = make_text(s, secret, &err);
    stk_run_secret_done(secret);
    if (rc < 0) {
        stk_gw_answer_err(ex, &err);
        submission_free(s);
        return;
    }
    reserve(s);
}
