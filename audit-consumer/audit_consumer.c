#include "audit-consumer/audit_consumer.h"
#include "audit-consumer/lane.h"
#include "proto/base/log.h"
#include <stdio.h>

#define BATCH_DEFAULT 1000
#define WINDOW        20000
#define RETRY_FIRST   stk_ms(100)
#define RETRY_MOST    stk_sec(5)

typedef struct topic_reader {
    stk_auditor *auditor;
    stk_lane_kind kind;
    const char *topic;
    stk_consumer *consumer;
} topic_reader;

struct stk_auditor {
    stk_auditor_spec spec;
    topic_reader readers[2];
    stk_audit_lane **lanes;
    size_t nlanes;
    stk_timer *retry;
    stk_span backoff;
    size_t publishing; /* records on their way to stk.dead */
    stk_auditor_stats stats;
    bool stopping;
};

/* One call to the store or bus and the lane it is for. */
typedef struct pending {
    stk_auditor *auditor;
    stk_audit_lane *lane;
    int64_t offset; /* of the record that goes to stk.dead */
} pending;

static void lane_go(stk_auditor *a, stk_audit_lane *lane);

static topic_reader *reader_of(stk_auditor *a, const stk_audit_lane *lane)
{
    return &a->readers[lane->kind];
}

static stk_audit_lane *lane_of(topic_reader *reader, int32_t partition)
{
    stk_auditor *a = reader->auditor;
    for (size_t i = 0; i < a->nlanes; i++)
        if (a->lanes[i]->kind == reader->kind && a->lanes[i]->partition == partition)
            return a->lanes[i];
    stk_audit_lane *lane = stk_xcalloc(1, sizeof(*lane));
    *lane =
        (stk_audit_lane){.kind = reader->kind, .topic = reader->topic, .partition = partition, .next = -1};
    a->lanes = stk_xrealloc(a->lanes, (a->nlanes + 1) * sizeof(stk_audit_lane *));
    a->lanes[a->nlanes++] = lane;
    return lane;
}

static pending *pending_new(stk_auditor *a, stk_audit_lane *lane)
{
    pending *p = stk_xcalloc(1, sizeof(*p));
    p->auditor = a;
    p->lane = lane;
    return p;
}

static void finish_front(stk_auditor *a, stk_audit_lane *lane, size_t n)
{
    for (size_t i = 0; i < n; i++)
        stk_bus_finish(reader_of(a, lane)->consumer, lane->partition, lane->items[i].offset);
    stk_lane_drop(lane, n);
    a->stats.waiting -= n;
}

static void retry_later(stk_auditor *a)
{
    a->stats.store_down = true;
    stk_timer_set(a->retry, a->backoff);
    a->backoff.ns = a->backoff.ns * 2 > RETRY_MOST.ns ? RETRY_MOST.ns : a->backoff.ns * 2;
}

static void on_retry(void *arg)
{
    stk_auditor *a = arg;
    for (size_t i = 0; i < a->nlanes; i++)
        lane_go(a, a->lanes[i]);
}

static void store_answers(stk_auditor *a)
{
    a->stats.store_down = false;
    a->backoff = RETRY_FIRST;
}

static void on_offset(const stk_err *err, int64_t offset, size_t stored, size_t bad, void *arg)
{
    pending *p = arg;
    stk_auditor *a = p->auditor;
    stk_audit_lane *lane = p->lane;
    free(p);
    lane->asking = false;
    if (err) {
        retry_later(a);
        return;
    }
    store_answers(a);
    lane->next = offset;
    lane_go(a, lane);
}

/* The store can never take this row: to stk.dead with it, then the rest of the batch again. */
static void condemn_row(stk_audit_lane *lane, size_t row, const stk_err *why)
{
    stk_lane_item *item = stk_lane_row(lane, row);
    if (!item)
        return;
    stk_buf raw STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    stk_err ignored;
    if (lane->kind == STK_LANE_AUDIT)
        (void)!stk_audit_encode(&item->row, &raw, &ignored);
    else
        (void)!stk_event_encode(&item->event, &raw, &ignored);
    stk_lane_condemn(lane, item, stk_buf_view(&raw), why->detail);
}

static void on_stored(const stk_err *err, int64_t offset, size_t stored, size_t bad, void *arg)
{
    pending *p = arg;
    stk_auditor *a = p->auditor;
    stk_audit_lane *lane = p->lane;
    free(p);
    lane->storing = false;
    size_t taken = lane->taken;
    lane->taken = 0;
    if (!err) {
        store_answers(a);
        a->stats.stored += stored;
        a->stats.repeated += taken - stored;
        lane->next = offset;
        finish_front(a, lane, taken);
        lane_go(a, lane);
    } else if (err->code == STK_E_STALE) {
        lane->next = offset; /* another consumer was here: what it stored is finished */
        lane_go(a, lane);
    } else if (err->code == STK_E_FIELD) {
        condemn_row(lane, bad, err);
        lane_go(a, lane);
    } else {
        stk_log_err(STK_LOG_WARN, NULL, err, "the store is not available; %s partition %d waits", lane->topic,
                    lane->partition);
        retry_later(a);
    }
}

static void on_dead(stk_publish_outcome outcome, int32_t partition, int64_t offset, const stk_err *err,
                    void *arg)
{
    pending *p = arg;
    stk_auditor *a = p->auditor;
    stk_audit_lane *lane = p->lane;
    stk_lane_item *item = stk_lane_find(lane, p->offset);
    free(p);
    a->publishing--;
    if (item)
        item->state = outcome == STK_PUBLISHED ? STK_ITEM_BURIED : STK_ITEM_TO_BURY;
    if (outcome == STK_PUBLISHED) {
        a->stats.dead++;
        lane_go(a, lane);
    } else {
        retry_later(a);
    }
}

static void bury(stk_auditor *a, stk_audit_lane *lane, stk_lane_item *item)
{
    char at[96];
    snprintf(at, sizeof(at), "%s/%d/%lld", lane->topic, lane->partition, (long long)item->offset);
    stk_bus_out out = {.topic = STK_TOPIC_DEAD,
                       .partition = -1,
                       .key = stk_str_of(at),
                       .value = stk_bytes_view(&item->raw),
                       .nheaders = 2};
    out.headers[0] = (stk_bus_header){"from", stk_str_of(at)};
    out.headers[1] = (stk_bus_header){"reason", stk_str_of(item->why)};
    item->state = STK_ITEM_BURYING;
    a->publishing++;
    pending *p = pending_new(a, lane);
    p->offset = item->offset;
    stk_bus_publish(a->spec.bus, &out, on_dead, p);
}

static void lane_go(stk_auditor *a, stk_audit_lane *lane)
{
    if (lane->asking || lane->storing || lane->n == 0)
        return;
    if (lane->next < 0) {
        lane->asking = true;
        stk_store_offset(a->spec.store, lane->topic, lane->partition, on_offset, pending_new(a, lane));
        return;
    }
    size_t repeated = stk_lane_repeated(lane);
    a->stats.repeated += repeated;
    finish_front(a, lane, repeated);
    for (size_t i = 0; i < lane->n; i++)
        if (lane->items[i].state == STK_ITEM_TO_BURY)
            bury(a, lane, &lane->items[i]);
    lane->taken = stk_lane_storable(lane, a->spec.batch);
    if (lane->taken == 0)
        return;
    stk_store_batch batch;
    void *array STK_AUTO(stk_freep) = NULL;
    stk_lane_batch(lane, lane->taken, &batch, &array);
    lane->storing = true;
    stk_store_append(a->spec.store, &batch, on_stored, pending_new(a, lane));
}

static void on_message(stk_consumer *consumer, const stk_bus_msg *msg, void *arg)
{
    topic_reader *reader = arg;
    stk_auditor *a = reader->auditor;
    stk_audit_lane *lane = lane_of(reader, msg->partition);
    stk_lane_item *item = stk_lane_push(lane, msg->offset);
    stk_err err;
    int rc = reader->kind == STK_LANE_AUDIT ? stk_audit_decode(msg->value, &item->row, &err)
                                            : stk_event_decode(msg->value, &item->event, &err);
    if (rc == -STK_E_NEWER) {
        stk_lane_pop_last(lane);
        a->stats.newer = true;
        stk_log_err(STK_LOG_ERROR, NULL, &err, "%s is paused until this program is upgraded", msg->topic);
        stk_bus_pause(consumer, true);
        return;
    }
    a->stats.waiting++;
    if (rc < 0)
        stk_lane_condemn(lane, item, msg->value, err.detail);
    lane_go(a, lane);
}

static void on_revoked(stk_consumer *consumer, const int32_t *partitions, size_t n, void *arg)
{
    topic_reader *reader = arg;
    for (size_t i = 0; i < n; i++) {
        stk_audit_lane *lane = lane_of(reader, partitions[i]);
        size_t keep = lane->storing ? lane->taken : 0;
        while (lane->n > keep) {
            stk_lane_pop_last(lane);
            reader->auditor->stats.waiting--;
        }
        lane->next = -1;
    }
}

static void on_error(stk_consumer *consumer, const stk_err *err, void *arg)
{
    topic_reader *reader = arg;
    stk_log_err(STK_LOG_ERROR, NULL, err, "reading %s has stopped", reader->topic);
}

static int reader_start(stk_auditor *a, stk_lane_kind kind, const char *topic, stk_err *err)
{
    static const stk_consumer_ops ops = {
        .on_message = on_message, .on_revoked = on_revoked, .on_error = on_error};
    topic_reader *reader = &a->readers[kind];
    *reader = (topic_reader){.auditor = a, .kind = kind, .topic = topic};
    stk_consumer_spec spec = {.topic = topic, .group = "audit", .window = WINDOW};
    return stk_bus_subscribe(a->spec.bus, &spec, &ops, reader, &reader->consumer, err);
}

int stk_auditor_new(const stk_auditor_spec *spec, stk_auditor **ret, stk_err *err)
{
    stk_auditor *a = stk_xcalloc(1, sizeof(*a));
    a->spec = *spec;
    if (!a->spec.batch)
        a->spec.batch = BATCH_DEFAULT;
    a->backoff = RETRY_FIRST;
    a->retry = stk_timer_new(spec->loop, on_retry, a);
    int rc = reader_start(a, STK_LANE_AUDIT, STK_TOPIC_AUDIT, err);
    if (rc == 0)
        rc = reader_start(a, STK_LANE_EVENTS, STK_TOPIC_EVENTS, err);
    if (rc < 0) {
        stk_auditor_free(a);
        return rc;
    }
    *ret = a;
    return 0;
}

stk_auditor_stats stk_auditor_stats_get(const stk_auditor *auditor)
{
    return auditor->stats;
}

bool stk_auditor_quiet(stk_auditor *a)
{
    a->stopping = true;
    for (size_t i = 0; i < STK_COUNT(a->readers); i++)
        stk_bus_pause(a->readers[i].consumer, true);
    if (a->publishing)
        return false;
    for (size_t i = 0; i < a->nlanes; i++)
        if (a->lanes[i]->storing || a->lanes[i]->asking || (a->lanes[i]->n && !a->stats.store_down))
            return false;
    return true;
}

void stk_auditor_free(stk_auditor *a)
{
    for (size_t i = 0; i < STK_COUNT(a->readers); i++)
        if (a->readers[i].consumer)
            stk_bus_unsubscribe(a->readers[i].consumer);
    for (size_t i = 0; i < a->nlanes; i++) {
        stk_lane_done(a->lanes[i]);
        free(a->lanes[i]);
    }
    free(a->lanes);
    if (a->retry)
        stk_timer_free(a->retry);
    free(a);
}
