#include "deploy/standalone/trim.h"
#include "proto/message/limits.h"

#define TRIM_EVERY stk_sec(60)

struct stk_trimmer {
    stk_bus *bus;
    const stk_bus_topic *topics;
    size_t ntopics;
    stk_timer *timer;
};

static bool trimmed_here(const char *topic)
{
    return strcmp(topic, STK_TOPIC_ASSIGNMENTS) != 0 && strcmp(topic, STK_TOPIC_DEAD) != 0;
}

static void on_timer(void *arg)
{
    stk_trimmer *trimmer = arg;
    for (size_t i = 0; i < trimmer->ntopics; i++)
        for (int32_t p = 0; trimmed_here(trimmer->topics[i].name) && p < trimmer->topics[i].partitions; p++)
            stk_bus_trim(trimmer->bus, trimmer->topics[i].name, p, INT64_MAX);
    stk_timer_set(trimmer->timer, TRIM_EVERY);
}

stk_trimmer *stk_trimmer_new(stk_loop *loop, stk_bus *bus, const stk_bus_topic *topics, size_t ntopics)
{
    stk_trimmer *trimmer = stk_xcalloc(1, sizeof(*trimmer));
    *trimmer = (stk_trimmer){.bus = bus, .topics = topics, .ntopics = ntopics};
    trimmer->timer = stk_timer_new(loop, on_timer, trimmer);
    stk_timer_set(trimmer->timer, TRIM_EVERY);
    return trimmer;
}

void stk_trimmer_free(stk_trimmer *trimmer)
{
    stk_timer_free(trimmer->timer);
    free(trimmer);
}
