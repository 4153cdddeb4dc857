/* The bus port: ordered, durable topics with partitions, consumer groups, acknowledged publishing, fetch by
 * offset. Adapters: SQLite (bus_sqlite.h), Kafka. ONE conformance suite: tests/conformance/bus.
 *
 * No call blocks; every completion is a callback on the loop given at open. The bus is the truth about what
 * was asked and what happened. Everything is at-least-once: whoever reads must be idempotent. */
#ifndef STK_BUS_BUS_H
#define STK_BUS_BUS_H

#include "proto/base/field.h"
#include "proto/base/loop.h"

typedef struct stk_bus stk_bus;
typedef struct stk_consumer stk_consumer;

#define STK_BUS_HEADERS 8
typedef struct stk_bus_header {
    const char *name; /* static or outliving the call */
    stk_str value;
} stk_bus_header;

/* What a publisher hands over; copied before the call returns. */
typedef struct stk_bus_out {
    const char *topic;
    int32_t partition; /* -1 = by hash of the key */
    stk_str key;
    stk_str value;
    stk_bus_header headers[STK_BUS_HEADERS];
    size_t nheaders;
} stk_bus_out;

/* What a reader gets; borrowed for the callback. */
typedef struct stk_bus_msg {
    const char *topic;
    int32_t partition;
    int64_t offset;
    stk_wall time; /* of the publish */
    stk_str key;
    stk_str value;
    stk_bus_header headers[STK_BUS_HEADERS];
    size_t nheaders;
} stk_bus_msg;
/* Value of a header, or an empty slice with p NULL. */
stk_str stk_bus_header_get(const stk_bus_msg *msg, const char *name);

typedef enum stk_publish_outcome {
    STK_PUBLISHED,       /* durable                                                        */
    STK_PUBLISH_REFUSED, /* surely not persisted; err says why (BUSY, UNAVAILABLE, TOO_LARGE, NO_SPACE)  */
    STK_PUBLISH_UNKNOWN  /* it may or may not be there                                     */
} stk_publish_outcome;
typedef void (*stk_publish_done)(stk_publish_outcome outcome, int32_t partition, int64_t offset,
                                 const stk_err *err, void *arg);

typedef struct stk_consumer_ops {
    /* One message. Call stk_bus_finish(partition, offset) when its work is done: in any order, now or much
     * later. */
    void (*on_message)(stk_consumer *consumer, const stk_bus_msg *msg, void *arg);
    /* Partitions were taken away (rebalance): forget their unfinished messages; they will come to another
     * member. May be NULL. */
    void (*on_revoked)(stk_consumer *consumer, const int32_t *partitions, size_t n, void *arg);
    /* All messages that existed when the consumer started were delivered (compacted followers). May be NULL.
     */
    void (*on_caught_up)(stk_consumer *consumer, void *arg);
    /* The adapter can't go on with a partition (offset out of range, corruption): alarm, never skip. */
    void (*on_error)(stk_consumer *consumer, const stk_err *err, void *arg);
} stk_consumer_ops;

typedef struct stk_consumer_spec {
    const char *topic;
    const char *group;         /* NULL: no group, no commits: reads the partitions below from `start` */
    const int32_t *partitions; /* without a group: which (NULL = all) */
    size_t npartitions;
    const int64_t *starts; /* without a group: first offset per partition; NULL = from the beginning */
    size_t window;         /* unfinished messages at most, then delivery pauses; default 1000 */
} stk_consumer_spec;

typedef struct stk_bus_ops {
    void (*publish)(stk_bus *bus, const stk_bus_out *out, stk_publish_done done, void *arg);
    int (*subscribe)(stk_bus *bus, const stk_consumer_spec *spec, const stk_consumer_ops *ops, void *arg,
                     stk_consumer **ret, stk_err *err);
    void (*finish)(stk_consumer *consumer, int32_t partition, int64_t offset);
    void (*pause)(stk_consumer *consumer, bool on);
    void (*unsubscribe)(stk_consumer *consumer);
    void (*fetch)(stk_bus *bus, const char *topic, int32_t partition, int64_t offset,
                  void (*done)(const stk_bus_msg *msg, const stk_err *err, void *arg), void *arg);
    void (*trim)(stk_bus *bus, const char *topic, int32_t partition, int64_t before);
    bool (*ready)(const stk_bus *bus);
    void (*close)(stk_bus *bus);
} stk_bus_ops;

struct stk_bus {
    const stk_bus_ops *ops;
};
struct stk_consumer {
    stk_bus *bus;
};

/* Publishes; `done` is called once, on the bus's loop, never from inside this call. */
void stk_bus_publish(stk_bus *bus, const stk_bus_out *out, stk_publish_done done, void *arg);
/* In a group: resumes behind the longest finished prefix that was committed (nothing committed = earliest).
 * Callbacks end with stk_bus_unsubscribe. */
int stk_bus_subscribe(stk_bus *bus, const stk_consumer_spec *spec, const stk_consumer_ops *ops, void *arg,
                      stk_consumer **ret, stk_err *err) STK_MUST_USE;
/* The adapter commits the longest finished prefix of each partition (ack window). */
void stk_bus_finish(stk_consumer *consumer, int32_t partition, int64_t offset);
/* Paused: no messages, membership stays. */
void stk_bus_pause(stk_consumer *consumer, bool on);
/* Commits the finished prefix, leaves the group; frees the consumer; no callback after the call. */
void stk_bus_unsubscribe(stk_consumer *consumer);
/* Reads one message again. msg NULL with err NOT_FOUND when it is gone. */
void stk_bus_fetch(stk_bus *bus, const char *topic, int32_t partition, int64_t offset,
                   void (*done)(const stk_bus_msg *msg, const stk_err *err, void *arg), void *arg);
/* Drops messages below an offset (embedded adapter; never past an unfinished run: the caller knows). */
void stk_bus_trim(stk_bus *bus, const char *topic, int32_t partition, int64_t before);
bool stk_bus_ready(const stk_bus *bus);
/* Waits for the publishes in flight to complete or 5 s, then frees. Consumers must be unsubscribed. */
void stk_bus_close(stk_bus *bus);
STK_DEFINE_FREEP(stk_bus, stk_bus_closep, stk_bus_close)

/* Partitions of each topic (standalone defaults; Kafka's come from `topics ensure`). The key's hash is FNV-1a
 * 32 mod n. */
int32_t stk_bus_partition_of(stk_str key, int32_t npartitions);

#endif
