#include "proto/bus/bus.h"

stk_str stk_bus_header_get(const stk_bus_msg *msg, const char *name)
{
    for (size_t i = 0; i < msg->nheaders; i++)
        if (strcmp(msg->headers[i].name, name) == 0)
            return msg->headers[i].value;
    return (stk_str){NULL, 0};
}

int32_t stk_bus_partition_of(stk_str key, int32_t npartitions)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < key.n; i++)
        hash = (hash ^ (uint8_t)key.p[i]) * 16777619u;
    return npartitions > 0 ? (int32_t)(hash % (uint32_t)npartitions) : 0;
}

void stk_bus_publish(stk_bus *bus, const stk_bus_out *out, stk_publish_done done, void *arg)
{
    bus->ops->publish(bus, out, done, arg);
}

int stk_bus_subscribe(stk_bus *bus, const stk_consumer_spec *spec, const stk_consumer_ops *ops, void *arg,
                      stk_consumer **ret, stk_err *err)
{
    return bus->ops->subscribe(bus, spec, ops, arg, ret, err);
}

void stk_bus_finish(stk_consumer *consumer, int32_t partition, int64_t offset)
{
    consumer->bus->ops->finish(consumer, partition, offset);
}

void stk_bus_pause(stk_consumer *consumer, bool on)
{
    consumer->bus->ops->pause(consumer, on);
}

void stk_bus_unsubscribe(stk_consumer *consumer)
{
    consumer->bus->ops->unsubscribe(consumer);
}

void stk_bus_fetch(stk_bus *bus, const char *topic, int32_t partition, int64_t offset,
                   void (*done)(const stk_bus_msg *msg, const stk_err *err, void *arg), void *arg)
{
    bus->ops->fetch(bus, topic, partition, offset, done, arg);
}

void stk_bus_trim(stk_bus *bus, const char *topic, int32_t partition, int64_t before)
{
    bus->ops->trim(bus, topic, partition, before);
}

bool stk_bus_ready(const stk_bus *bus)
{
    return bus->ops->ready(bus);
}

void stk_bus_close(stk_bus *bus)
{
    bus->ops->close(bus);
}
