#include "deploy/standalone/part.h"
#include "proto/base/log.h"

#define TICK       stk_ms(500)
#define QUIET_TICK stk_ms(10)

static size_t index_of(const stk_part *part)
{
    return (size_t)(part - part->up->parts);
}

static void publish(stk_part *part)
{
    stk_up *up = part->up;
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(65536);
    part->ops->metrics(part, &text);
    bool ready = part->ops->ready(part);
    pthread_mutex_lock(&up->mutex);
    size_t i = index_of(part);
    stk_buf_reset(&up->metrics[i]);
    stk_buf_str(&up->metrics[i], stk_buf_view(&text));
    bool was = up->ready[i];
    up->ready[i] = ready;
    pthread_mutex_unlock(&up->mutex);
    if (ready && !was)
        stk_loop_post(up->main_loop, stk_up_part_ready, part);
}

static void on_tick(void *arg)
{
    stk_part *part = arg;
    if (!part->stopping) {
        publish(part);
        stk_timer_set(part->tick, part->ops->ready(part) ? TICK : QUIET_TICK);
    } else if (part->ops->quiet(part, part->hurry)) {
        part->quiet = true;
        stk_loop_post(part->up->main_loop, stk_up_part_quiet, part);
    } else {
        stk_timer_set(part->tick, QUIET_TICK);
    }
}

static int open_part(stk_part *part, stk_err *err)
{
    stk_up *up = part->up;
    int rc = stk_bus_sqlite_new(up->bus_file, part->loop, &part->bus, err);
    if (rc == 0)
        rc = stk_state_sqlite_new(up->state_file, part->loop, &part->state, err);
    if (rc == 0)
        rc = stk_store_sqlite_new(up->store_file, part->loop, &part->store, err);
    if (rc == 0)
        rc = part->ops->open(part, err);
    return rc < 0 ? stk_err_wrap(err, "%s", part->ops->name) : rc;
}

static void close_part(stk_part *part)
{
    if (part->program)
        part->ops->close(part);
    if (part->store)
        stk_store_close(part->store);
    if (part->state)
        stk_state_close(part->state);
    if (part->bus)
        stk_bus_close(part->bus);
    stk_timer_free(part->tick);
}

static void *part_thread(void *arg)
{
    stk_part *part = arg;
    stk_up *up = part->up;
    stk_err err;
    pthread_setname_np(pthread_self(), part->ops->name);
    part->tick = stk_timer_new(part->loop, on_tick, part);
    bool opened = open_part(part, &err) == 0;
    pthread_mutex_lock(&up->mutex);
    part->opened = opened;
    if (!opened)
        up->failure = err;
    pthread_mutex_unlock(&up->mutex);
    stk_loop_post(up->main_loop, stk_up_part_opened, part);
    if (opened)
        stk_timer_set(part->tick, QUIET_TICK);
    stk_loop_run(part->loop);
    close_part(part);
    return NULL;
}

int stk_part_start(stk_part *part, stk_err *err)
{
    int rc = stk_loop_new(&part->loop, err);
    if (rc < 0)
        return rc;
    rc = pthread_create(&part->thread, NULL, part_thread, part);
    if (rc != 0) {
        stk_loop_free(STK_TAKE(part->loop));
        return stk_err_errno(err, rc, "start the %s thread", part->ops->name);
    }
    return 0;
}

static void begin_stop(void *arg)
{
    stk_part *part = arg;
    part->stopping = true;
    stk_timer_set(part->tick, stk_us(1));
}

static void begin_hurry(void *arg)
{
    stk_part *part = arg;
    part->hurry = true;
    begin_stop(part);
}

void stk_part_stop(stk_part *part, bool hurry)
{
    stk_loop_post(part->loop, hurry ? begin_hurry : begin_stop, part);
}

void stk_part_join(stk_part *part)
{
    if (!part->loop)
        return;
    stk_loop_stop(part->loop);
    pthread_join(part->thread, NULL);
    stk_loop_free(STK_TAKE(part->loop));
}
