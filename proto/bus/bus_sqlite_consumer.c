/* Consumers: delivery from the inbox, finished offsets, asking the reader for what was missed. */
#include "proto/bus/bus_sqlite_impl.h"

#define WINDOW_DEFAULT 1000
#define READ_LOW_BYTES ((size_t)4 << 20)
#define TURN           256 /* deliveries per wake-up, so that a busy topic does not own the loop */

static stk_bus_reader *reader_of(stk_consumer *consumer)
{
    return STK_CONTAINER(consumer, stk_bus_reader, base);
}

static stk_bus_sub *sub_of(stk_bus_reader *c, int32_t partition)
{
    if (c->nsubs == c->topic->nparts)
        return partition >= 0 && partition < c->nsubs ? &c->subs[partition] : NULL;
    for (int32_t i = 0; i < c->nsubs; i++)
        if (c->subs[i].partition == partition)
            return &c->subs[i];
    return NULL;
}

/* --- one turn
 * ----------------------------------------------------------------------------------------------------- */

/* Tells of partitions that go to another member, then lets them go. False when the callback ended the
 * consumer. */
static bool run_revoked(stk_bus_reader *c)
{
    stk_bus_file *file = c->bus->file;
    int32_t *gone = NULL;
    size_t n = 0;
    pthread_mutex_lock(&file->lock);
    for (int32_t i = 0; c->group && i < c->nsubs; i++) {
        stk_bus_sub *sub = &c->subs[i];
        if (sub->state != STK_SUB_LIVE || !sub->revoke)
            continue;
        sub->state = STK_SUB_REVOKING;
        stk__bus_sub_drop(sub);
        gone = gone ? gone : stk_xcalloc((size_t)c->nsubs, sizeof(*gone));
        gone[n++] = sub->partition;
    }
    pthread_mutex_unlock(&file->lock);
    if (n && c->ops->on_revoked)
        c->ops->on_revoked(&c->base, gone, n, c->arg);
    if (n && !c->dead) {
        pthread_mutex_lock(&file->lock);
        for (size_t i = 0; i < n; i++) {
            stk_bus_sub *sub = sub_of(c, gone[i]);
            c->unfinished -= sub->out;
            sub->out = 0;
            stk__bus_group_release(file, c, gone[i]);
        }
        stk__bus_wake(file);
        pthread_mutex_unlock(&file->lock);
    }
    free(gone);
    return !c->dead;
}

/* A partition that was just assigned: where does it start, and is that a place that exists? */
static void look_at_fresh(stk_bus_reader *c, stk_bus_sub *sub)
{
    sub->fresh = false;
    stk_ack_start(&sub->ack, sub->start);
    sub->out = 0;
    bool beyond = sub->start > sub->part->end;
    bool gone = !c->topic->compacted && sub->start != 0 && sub->start < sub->part->first;
    if (!beyond && !gone)
        return;
    sub->broken = true;
    c->failure = c->failure ? c->failure : stk_xcalloc(1, sizeof(*c->failure));
    stk_err_set(c->failure, STK_E_CORRUPT, "%s/%d: offset %lld is out of range, the bus has %lld to %lld",
                c->topic->name, sub->partition, (long long)sub->start, (long long)sub->part->first,
                (long long)sub->part->end);
}

static stk_err *take_inbox(stk_bus_reader *c)
{
    pthread_mutex_lock(&c->bus->file->lock);
    c->flagged = false;
    for (int32_t i = 0; i < c->nsubs; i++)
        if (c->subs[i].state == STK_SUB_LIVE && c->subs[i].fresh)
            look_at_fresh(c, &c->subs[i]);
    stk__bus_inbox_move(&c->inbox, &c->ready);
    stk_err *failure = STK_TAKE(c->failure);
    pthread_mutex_unlock(&c->bus->file->lock);
    return failure;
}

static bool may_deliver(const stk_bus_reader *c)
{
    return !c->dead && !c->paused && c->ready.head && c->unfinished < c->window &&
           stk_ack_room(&c->ready.head->sub->ack);
}

static void fail(stk_bus_reader *c, const stk_err *err)
{
    if (c->ops->on_error)
        c->ops->on_error(&c->base, err, c->arg);
}

static void deliver_one(stk_bus_reader *c, stk_bus_node *node)
{
    stk_bus_sub *sub = node->sub;
    stk_bus_msg msg;
    if (!stk__bus_rec_msg(node->rec, &msg)) {
        stk_err err;
        stk_err_set(&err, STK_E_CORRUPT, "%s/%d: the headers at offset %lld are damaged", c->topic->name,
                    sub->partition, (long long)node->rec->offset);
        pthread_mutex_lock(&c->bus->file->lock);
        sub->broken = true;
        stk__bus_sub_drop(sub);
        pthread_mutex_unlock(&c->bus->file->lock);
        fail(c, &err);
        return;
    }
    stk_ack_deliver(&sub->ack, node->rec->offset);
    sub->out++;
    c->unfinished++;
    c->ops->on_message(&c->base, &msg, c->arg);
}

static void deliver(stk_bus_reader *c)
{
    size_t n = 0, bytes = 0;
    for (; n < TURN && may_deliver(c); n++) {
        stk_bus_node *node = c->ready.head;
        c->ready.head = node->next;
        if (!c->ready.head)
            c->ready.tail = &c->ready.head;
        bytes += stk__bus_rec_size(node->rec);
        deliver_one(c, node);
        stk__bus_node_free(node);
    }
    pthread_mutex_lock(&c->bus->file->lock);
    c->held -= n;
    c->held_bytes -= bytes;
    pthread_mutex_unlock(&c->bus->file->lock);
}

static void ask_reader(stk_bus_reader *c)
{
    if (c->read || c->held >= STK__BUS_HOLD_LOW || c->held_bytes >= READ_LOW_BYTES)
        return;
    for (int32_t i = 0; i < c->nsubs; i++) {
        stk_bus_sub *sub = &c->subs[(c->turn + i) % c->nsubs];
        if (sub->state != STK_SUB_LIVE || sub->broken || sub->want >= sub->part->end)
            continue;
        stk_bus_read *read = stk_xcalloc(1, sizeof(*read));
        *read = (stk_bus_read){.topic = c->topic,
                               .partition = sub->partition,
                               .from = sub->want,
                               .end = sub->part->end,
                               .consumer = c};
        c->read = read;
        c->turn = (c->turn + i + 1) % c->nsubs;
        stk__bus_read_queue(c->bus->file, read);
        return;
    }
}

static bool all_delivered(const stk_bus_reader *c)
{
    bool all = !c->held;
    for (int32_t i = 0; all && i < c->nsubs; i++)
        all = c->subs[i].state != STK_SUB_LIVE || c->subs[i].want >= c->subs[i].mark;
    return all;
}

void stk__bus_consumer_run(stk_bus_reader *c)
{
    c->running = true;
    if (run_revoked(c)) {
        stk_err *failure = take_inbox(c);
        if (failure)
            fail(c, failure);
        free(failure);
        if (!c->dead)
            deliver(c);
    }
    if (!c->dead) {
        pthread_mutex_lock(&c->bus->file->lock);
        ask_reader(c);
        bool caught_up = !c->caught_up && all_delivered(c);
        c->running = false;
        if (may_deliver(c))
            stk__bus_flag(c);
        stk__bus_wake(c->bus->file);
        pthread_mutex_unlock(&c->bus->file->lock);
        if (caught_up) {
            c->caught_up = true;
            if (c->ops->on_caught_up)
                c->ops->on_caught_up(&c->base, c->arg);
        }
    }
}

/* --- the port's calls
 * ----------------------------------------------------------------------------------------------- */

static void look_again(stk_bus_reader *c)
{
    pthread_mutex_lock(&c->bus->file->lock);
    stk__bus_flag(c);
    stk__bus_wake(c->bus->file);
    pthread_mutex_unlock(&c->bus->file->lock);
}

void stk__bus_finish(stk_consumer *consumer, int32_t partition, int64_t offset)
{
    stk_bus_reader *c = reader_of(consumer);
    stk_bus_sub *sub = sub_of(c, partition);
    if (!sub || sub->out == 0)
        return;
    bool was_full = c->unfinished >= c->window || !stk_ack_room(&sub->ack);
    int64_t before = sub->ack.prefix;
    if (!stk_ack_finish(&sub->ack, offset))
        return;
    sub->out--;
    c->unfinished--;
    if (c->group && sub->ack.prefix > before) {
        pthread_mutex_lock(&c->bus->file->lock);
        stk__bus_group_finished(c->bus->file, c->group, partition, sub->ack.prefix);
        pthread_mutex_unlock(&c->bus->file->lock);
    }
    if (was_full && !c->running)
        look_again(c);
}

void stk__bus_pause(stk_consumer *consumer, bool on)
{
    stk_bus_reader *c = reader_of(consumer);
    c->paused = on;
    if (!on)
        look_again(c);
}

void stk__bus_unsubscribe(stk_consumer *consumer)
{
    stk_bus_reader *c = reader_of(consumer);
    stk_bus_file *file = c->bus->file;
    pthread_mutex_lock(&file->lock);
    if (c->group)
        stk__bus_group_leave(file, c);
    for (int32_t i = 0; i < c->nsubs; i++)
        stk__bus_sub_detach(&c->subs[i]);
    if (c->read)
        c->read->consumer = NULL;
    c->read = NULL;
    c->dead = true;
    stk__bus_wake(file);
    pthread_mutex_unlock(&file->lock);
    if (c->bus->running)
        return;
    stk_bus_reader **at = &c->bus->consumers;
    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    stk__bus_consumer_free(c);
}

void stk__bus_consumer_free(stk_bus_reader *c)
{
    for (int32_t i = 0; i < c->nsubs; i++)
        stk_ack_done(&c->subs[i].ack);
    free(c->failure);
    free(c->subs);
    free(c);
}

static int check_spec(const stk_consumer_spec *spec, const stk_bus_topic_state *topic, stk_err *err)
{
    if (!topic)
        return stk_err_set(err, STK_E_NOT_FOUND, "no topic %s", spec->topic);
    if (spec->group && (spec->partitions || spec->starts))
        return stk_err_set(err, STK_E_USAGE, "a group chooses its partitions and offsets itself");
    for (size_t i = 0; spec->partitions && i < spec->npartitions; i++)
        if (spec->partitions[i] < 0 || spec->partitions[i] >= topic->nparts)
            return stk_err_set(err, STK_E_NOT_FOUND, "%s has no partition %d", spec->topic,
                               spec->partitions[i]);
    return 0;
}

int stk__bus_subscribe(stk_bus *bus, const stk_consumer_spec *spec, const stk_consumer_ops *ops, void *arg,
                       stk_consumer **ret, stk_err *err)
{
    stk_bus_handle *h = STK_CONTAINER(bus, stk_bus_handle, base);
    stk_bus_topic_state *topic = stk__bus_topic(h->file, spec->topic);
    int rc = check_spec(spec, topic, err);
    if (rc < 0)
        return rc;
    stk_bus_reader *c = stk_xcalloc(1, sizeof(*c));
    *c = (stk_bus_reader){
        .base = {bus}, .bus = h, .topic = topic, .ops = ops, .arg = arg, .next = h->consumers};
    c->window = spec->window ? spec->window : WINDOW_DEFAULT;
    c->nsubs = spec->partitions ? (int32_t)spec->npartitions : topic->nparts;
    c->subs = stk_xcalloc((size_t)c->nsubs, sizeof(*c->subs));
    stk__bus_inbox_init(&c->inbox);
    stk__bus_inbox_init(&c->ready);
    pthread_mutex_lock(&h->file->lock);
    for (int32_t i = 0; i < c->nsubs; i++) {
        int32_t partition = spec->partitions ? spec->partitions[i] : i;
        c->subs[i].consumer = c;
        c->subs[i].partition = partition;
        c->subs[i].part = &topic->parts[partition];
        if (!spec->group)
            stk__bus_sub_attach(&c->subs[i], spec->starts ? spec->starts[i] : 0);
    }
    if (spec->group) {
        c->group = stk__bus_group_get(h->file, topic, spec->group);
        stk__bus_group_join(h->file, c);
    }
    h->consumers = c;
    stk__bus_flag(c);
    stk__bus_wake(h->file);
    pthread_mutex_unlock(&h->file->lock);
    *ret = &c->base;
    return 0;
}
