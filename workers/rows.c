#include "workers/rows.h"
#include "proto/base/log.h"
#include <stdio.h>

#define BACKOFF_FIRST stk_ms(50)
#define BACKOFF_MOST  stk_sec(2)

void stk_row_make(const stk_row_subject *subject, const char *action, uint64_t n, stk_str details,
                  stk_audit_row *ret)
{
    *ret = (stk_audit_row){.v = STK_MESSAGE_VERSION, .time = stk_wall_now()};
    stk_audit_id(stk_id_time(stk_str_of(subject->assignment)), subject->run, subject->assignment, action, n,
                 ret->id);
    snprintf(ret->action, sizeof(ret->action), "%s", action);
    memcpy(ret->actor, subject->actor, sizeof(ret->actor));
    memcpy(ret->tenant, subject->tenant, sizeof(ret->tenant));
    memcpy(ret->agent, subject->agent, sizeof(ret->agent));
    memcpy(ret->run, subject->run, sizeof(ret->run));
    memcpy(ret->assignment, subject->assignment, sizeof(ret->assignment));
    memcpy(ret->worker, subject->worker, sizeof(ret->worker));
    memcpy(ret->sandbox, subject->sandbox, sizeof(ret->sandbox));
    memcpy(ret->backend, subject->backend, sizeof(ret->backend));
    memcpy(ret->isolation, subject->isolation, sizeof(ret->isolation));
    if (details.n)
        stk_bytes_set(&ret->details, details);
}

bool stk_row_from_record(const stk_row_subject *subject, const stk_egress_record *rec, stk_str json,
                         stk_audit_row *ret)
{
    const char *action = NULL;
    if (strcmp(rec->kind, "close") != 0 && strcmp(rec->verdict, "deny") == 0)
        action = STK_AUDIT_EGRESS_DENY;
    else if (strcmp(rec->kind, "decision") == 0 && rec->first)
        action = STK_AUDIT_EGRESS_ALLOW;
    if (action)
        stk_row_make(subject, action, (uint64_t)rec->seq, json, ret);
    return action != NULL;
}

typedef struct sending {
    stk_ctx *ctx;
    char topic[32], key[128];
    char *value;
    size_t n;
    stk_row_offered once; /* or NULL: until it is durable */
    stk_span backoff;
    stk_timer *timer;
    stk_row_done done;
    void *arg;
} sending;

static void finish(sending *s, stk_publish_outcome outcome)
{
    stk_row_done done = s->done;
    stk_row_offered once = s->once;
    void *arg = s->arg;
    if (s->timer)
        stk_timer_free(s->timer);
    free(s->value);
    free(s);
    if (once)
        once(outcome, arg);
    else if (done)
        done(true, arg);
}

static void attempt(void *arg);

static void on_published(stk_publish_outcome outcome, int32_t partition, int64_t offset, const stk_err *err,
                         void *arg)
{
    sending *s = arg;
    if (outcome == STK_PUBLISHED || s->once) {
        finish(s, outcome);
        return;
    }
    if (!s->timer) {
        s->timer = stk_timer_new(s->ctx->loop, attempt, s);
        stk_log_err(STK_LOG_WARN, NULL, err, "%s does not take a message of %s; trying again", s->topic,
                    s->key);
    }
    stk_timer_set(s->timer, s->backoff);
    s->backoff.ns = s->backoff.ns * 2 > BACKOFF_MOST.ns ? BACKOFF_MOST.ns : s->backoff.ns * 2;
}

static void attempt(void *arg)
{
    sending *s = arg;
    stk_bus_out out = {
        .topic = s->topic, .partition = -1, .key = stk_str_of(s->key), .value = stk_str_n(s->value, s->n)};
    stk_bus_publish(s->ctx->bus, &out, on_published, s);
}

static void send_message(stk_ctx *ctx, const char *topic, const char *key, stk_str value,
                         stk_row_offered once, stk_row_done done, void *arg)
{
    sending *s = stk_xcalloc(1, sizeof(*s));
    *s =
        (sending){.ctx = ctx, .n = value.n, .once = once, .backoff = BACKOFF_FIRST, .done = done, .arg = arg};
    snprintf(s->topic, sizeof(s->topic), "%s", topic);
    snprintf(s->key, sizeof(s->key), "%s", key);
    s->value = stk_xmemdup(value.p, value.n);
    attempt(s);
}

/* Encoding a row of our own making can't fail but for its size; what does not fit is cut to its frame. */
static void encode(const stk_audit_row *row, stk_buf *out)
{
    stk_err err;
    if (stk_audit_encode(row, out, &err) == 0)
        return;
    stk_log_err(STK_LOG_ERROR, NULL, &err, "audit row %s loses its details", row->id);
    stk_audit_row frame = *row;
    frame.details = (stk_bytes){0};
    stk_buf_reset(out);
    (void)!stk_audit_encode(&frame, out, &err);
}

static void send_row(stk_ctx *ctx, const stk_audit_row *row, stk_row_offered once, stk_row_done done,
                     void *arg)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    encode(row, &text);
    send_message(ctx, STK_TOPIC_AUDIT, row->run, stk_buf_view(&text), once, done, arg);
}

void stk_row_offer(stk_ctx *ctx, const stk_audit_row *row, stk_row_offered done, void *arg)
{
    send_row(ctx, row, done, NULL, arg);
}

void stk_row_publish(stk_ctx *ctx, const stk_audit_row *row, stk_row_done done, void *arg)
{
    send_row(ctx, row, NULL, done, arg);
}

void stk_publish_surely(stk_ctx *ctx, const char *topic, const char *key, stk_str value, stk_row_done done,
                        void *arg)
{
    send_message(ctx, topic, key, value, NULL, done, arg);
}
