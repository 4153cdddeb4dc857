#include "scheduler/impl.h"
#include <stdarg.h>
#include <stdio.h>

#define FIRST_PAUSE stk_ms(50)
#define LAST_PAUSE  stk_sec(2)
#define HEADERS     5

struct stk_letter {
    stk_scheduler *s;
    char topic[32];
    int32_t partition;
    char key[128];
    stk_bytes value;
    struct {
        const char *name;
        char text[256];
    } headers[HEADERS];
    size_t nheaders;
    stk_letter_done done, drop;
    void *arg;
    stk_timer *timer;
    stk_span pause;
};

stk_letter *stk__letter_new(stk_scheduler *s, const char *topic, int32_t partition, const char *key,
                            stk_bytes *value)
{
    stk_letter *letter = stk_xcalloc(1, sizeof(*letter));
    letter->s = s;
    stk_str_copy(stk_str_of(topic), letter->topic, sizeof(letter->topic));
    letter->partition = partition;
    letter->pause = FIRST_PAUSE;
    stk_str_copy(stk_str_n(key, strnlen(key, sizeof(letter->key) - 1)), letter->key, sizeof(letter->key));
    letter->value = *value;
    *value = (stk_bytes){.p = NULL};
    return letter;
}

void stk__letter_header(stk_letter *letter, const char *name, const char *fmt, ...)
{
    if (letter->nheaders == HEADERS)
        return;
    va_list args;
    va_start(args, fmt);
    letter->headers[letter->nheaders].name = name;
    vsnprintf(letter->headers[letter->nheaders++].text, sizeof(letter->headers[0].text), fmt, args);
    va_end(args);
}

static void letter_free(stk_letter *letter)
{
    stk_timer_free(letter->timer);
    stk_bytes_done(&letter->value);
    free(letter);
}

static void offer(void *arg);

static void on_published(stk_publish_outcome outcome, int32_t partition, int64_t offset, const stk_err *err,
                         void *arg)
{
    stk_letter *letter = arg;
    stk_scheduler *s = letter->s;
    bool dead = stk__leave(s);
    if (dead) {
        if (letter->drop)
            letter->drop(letter->arg);
        letter_free(letter);
        return;
    }
    if (outcome == STK_PUBLISHED) {
        stk_letter_done done = letter->done;
        void *what = letter->arg;
        letter_free(letter);
        if (done)
            done(what);
        return;
    }
    /* A repeat does no harm: every message is idempotent by its id. */
    if (!letter->timer) {
        letter->timer = stk_timer_new(s->spec.loop, offer, letter);
        stk_log_err(STK_LOG_WARN, NULL, err, "%s does not take a message now; it is offered again",
                    letter->topic);
    }
    stk__enter(s);
    stk_timer_set(letter->timer, letter->pause);
    letter->pause = stk_ns(letter->pause.ns * 2 < LAST_PAUSE.ns ? letter->pause.ns * 2 : LAST_PAUSE.ns);
}

static void publish(stk_letter *letter)
{
    stk_bus_out out = {.topic = letter->topic,
                       .partition = letter->partition,
                       .key = stk_str_of(letter->key),
                       .value = stk_bytes_view(&letter->value),
                       .nheaders = letter->nheaders};
    for (size_t i = 0; i < letter->nheaders; i++)
        out.headers[i] = (stk_bus_header){letter->headers[i].name, stk_str_of(letter->headers[i].text)};
    stk__enter(letter->s);
    stk_bus_publish(letter->s->spec.bus, &out, on_published, letter);
}

static void offer(void *arg)
{
    stk_letter *letter = arg;
    if (stk__leave(letter->s)) {
        if (letter->drop)
            letter->drop(letter->arg);
        letter_free(letter);
        return;
    }
    publish(letter);
}

void stk__letter_send(stk_letter *letter, stk_letter_done done, stk_letter_done drop, void *arg)
{
    letter->done = done;
    letter->drop = drop;
    letter->arg = arg;
    publish(letter);
}

stk_letter *stk__dead_letter(stk_scheduler *s, stk_str key, stk_str value, int32_t partition, int64_t offset,
                             const char *why)
{
    char name[128];
    stk_bytes raw = {.p = NULL};
    stk_bytes_set(&raw, value);
    if (!stk_str_copy(stk_str_n(key.p, stk_min(key.n, sizeof(name) - 1)), name, sizeof(name)))
        name[0] = '\0';
    stk_letter *letter = stk__letter_new(s, STK_TOPIC_DEAD, -1, name, &raw);
    stk__letter_header(letter, "topic", "%s", STK_TOPIC_REQUESTS);
    stk__letter_header(letter, "partition", "%d", partition);
    stk__letter_header(letter, "offset", "%lld", (long long)offset);
    stk__letter_header(letter, "reason", "%s", why);
    return letter;
}

stk_letter *stk__audit_letter(stk_scheduler *s, stk_audit_row *row, stk_str details)
{
    stk_err err = {.code = STK_OK};
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    row->v = STK_MESSAGE_VERSION;
    stk_bytes_set(&row->details, details);
    int rc = stk_audit_encode(row, &text, &err);
    stk_audit_row_done(row);
    if (rc < 0) {
        const stk_who who = {.run = row->run, .tenant = row->tenant};
        stk_log_err(STK_LOG_ERROR, &who, &err, "an audit row %s can't be written", row->action);
        return NULL;
    }
    stk_bytes value = {.p = NULL};
    stk_bytes_set(&value, stk_buf_view(&text));
    return stk__letter_new(s, STK_TOPIC_AUDIT, -1, row->run, &value);
}
