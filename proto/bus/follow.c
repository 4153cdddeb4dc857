#include "proto/bus/follow.h"

typedef struct entry {
    struct entry *next;
    uint32_t hash;
    size_t nkey, nvalue;
    char *value; /* NULL: removed */
    char key[];
} entry;

struct stk_follow {
    stk_consumer *consumer;
    stk_follow_change change;
    void *arg;
    void (*caught_up_fn)(void *arg);
    void *caught_up_arg;
    bool caught_up;
    stk_err err;
    entry **buckets;
    size_t nbuckets, count; /* power of two */
};

static uint32_t hash_of(stk_str key)
{
    return (uint32_t)stk_bus_partition_of(key, INT32_MAX);
}

static entry *find(const stk_follow *follow, stk_str key)
{
    uint32_t hash = hash_of(key);
    entry *at = follow->nbuckets ? follow->buckets[hash & (follow->nbuckets - 1)] : NULL;
    while (at && (at->hash != hash || !stk_str_eq(key, stk_str_n(at->key, at->nkey))))
        at = at->next;
    return at;
}

static void grow(stk_follow *follow)
{
    size_t n = follow->nbuckets ? follow->nbuckets * 2 : 64;
    entry **buckets = stk_xcalloc(n, sizeof(entry *));
    for (size_t i = 0; i < follow->nbuckets; i++)
        for (entry *at = follow->buckets[i], *next; at; at = next) {
            next = at->next;
            at->next = buckets[at->hash & (n - 1)];
            buckets[at->hash & (n - 1)] = at;
        }
    free(follow->buckets);
    follow->buckets = buckets;
    follow->nbuckets = n;
}

static entry *find_or_add(stk_follow *follow, stk_str key)
{
    entry *at = find(follow, key);
    if (at)
        return at;
    if (follow->count >= follow->nbuckets)
        grow(follow);
    at = stk_xcalloc(1, sizeof(*at) + key.n);
    at->hash = hash_of(key);
    at->nkey = key.n;
    if (key.n)
        memcpy(at->key, key.p, key.n);
    entry **bucket = &follow->buckets[at->hash & (follow->nbuckets - 1)];
    at->next = *bucket;
    *bucket = at;
    follow->count++;
    return at;
}

static stk_str value_of(const entry *at)
{
    return at && at->value ? stk_str_n(at->value, at->nvalue) : (stk_str){NULL, 0};
}

static void on_message(stk_consumer *consumer, const stk_bus_msg *msg, void *arg)
{
    stk_follow *follow = arg;
    entry *at = find_or_add(follow, msg->key);
    free(at->value);
    at->value = msg->value.n ? stk_xmemdup(msg->value.p, msg->value.n) : NULL;
    at->nvalue = msg->value.n;
    stk_bus_finish(consumer, msg->partition, msg->offset);
    if (follow->change)
        follow->change(stk_str_n(at->key, at->nkey), value_of(at), follow->caught_up, follow->arg);
}

static void on_caught_up(stk_consumer *consumer, void *arg)
{
    stk_follow *follow = arg;
    follow->caught_up = true;
    if (follow->caught_up_fn)
        follow->caught_up_fn(follow->caught_up_arg);
}

static void on_error(stk_consumer *consumer, const stk_err *err, void *arg)
{
    stk_follow *follow = arg;
    follow->err = *err;
}

static const stk_consumer_ops ops = {
    .on_message = on_message, .on_caught_up = on_caught_up, .on_error = on_error};

int stk_follow_new(stk_bus *bus, const char *topic, stk_follow_change change, void *arg, stk_follow **ret,
                   stk_err *err)
{
    stk_follow *follow = stk_xcalloc(1, sizeof(*follow));
    follow->change = change;
    follow->arg = arg;
    const stk_consumer_spec spec = {.topic = topic};
    int rc = stk_bus_subscribe(bus, &spec, &ops, follow, &follow->consumer, err);
    if (rc < 0) {
        free(follow);
        return stk_err_wrap(err, "follow %s", topic), rc;
    }
    *ret = follow;
    return 0;
}

bool stk_follow_caught_up(const stk_follow *follow)
{
    return follow->caught_up;
}

void stk_follow_on_caught_up(stk_follow *follow, void (*fn)(void *arg), void *arg)
{
    follow->caught_up_fn = fn;
    follow->caught_up_arg = arg;
    if (follow->caught_up)
        fn(arg);
}

const stk_err *stk_follow_error(const stk_follow *follow)
{
    return follow->err.code ? &follow->err : NULL;
}

stk_str stk_follow_get(const stk_follow *follow, stk_str key)
{
    return value_of(find(follow, key));
}

void stk_follow_each(const stk_follow *follow, void (*fn)(stk_str key, stk_str value, void *arg), void *arg)
{
    for (size_t i = 0; i < follow->nbuckets; i++)
        for (const entry *at = follow->buckets[i]; at; at = at->next)
            if (at->value)
                fn(stk_str_n(at->key, at->nkey), value_of(at), arg);
}

void stk_follow_free(stk_follow *follow)
{
    stk_bus_unsubscribe(follow->consumer);
    for (size_t i = 0; i < follow->nbuckets; i++)
        for (entry *at = follow->buckets[i], *next; at; at = next) {
            next = at->next;
            free(at->value);
            free(at);
        }
    free(follow->buckets);
    free(follow);
}
