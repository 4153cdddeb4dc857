#include "api-gateway/result.h"
#include "proto/base/log.h"
#include <stdio.h>

#define ASK_AGAIN stk_ms(50)

typedef struct fetching {
    stk_gw_exchange *ex;
    char run[STK_ID_SIZE];
    stk_event ev; /* what state had */
    bool have;
    stk_mono until;
    stk_timer *timer;
    stk_gw_result_got done;
    void *arg;
} fetching;

static void finish(fetching *f, const stk_event *ev, const stk_err *err)
{
    stk_gw_exchange *ex STK_AUTO(stk_gw_leave) = f->ex;
    f->done(ex, ev, err, f->arg);
    stk_event_done(&f->ev);
    if (f->timer)
        stk_timer_free(f->timer);
    free(f);
}

static void ask(void *arg);

static void on_result(const stk_err *err, const stk_event *ev, void *arg)
{
    fetching *f = arg;
    if (stk_gw_over(f->ex) || (!err && ev)) {
        finish(f, ev, NULL);
    } else if (f->ex->x && stk_mono_before(stk_mono_now(), f->until)) {
        if (!f->timer)
            f->timer = stk_timer_new(f->ex->gw->spec.loop, ask, f);
        stk_timer_set(f->timer, ASK_AGAIN);
    } else {
        finish(f, f->have ? &f->ev : NULL, f->have ? NULL : err);
    }
}

static void ask(void *arg)
{
    fetching *f = arg;
    if (stk_gw_over(f->ex))
        finish(f, NULL, NULL);
    else
        stk_store_result(f->ex->gw->spec.store, f->ex->caller.tenant, f->run, on_result, f);
}

/* State keeps the output where it is small. */
static bool is_whole(const stk_event *ev)
{
    return ev->secret.set || (ev->stdout_bytes == 0 && ev->stderr_bytes == 0 && ev->files == 0);
}

static void on_whole(void *arg)
{
    fetching *f = arg;
    finish(f, &f->ev, NULL);
}

void stk_gw_result(stk_gw_exchange *ex, const char *run, const stk_run_row *row, stk_span patience,
                   stk_gw_result_got done, void *arg)
{
    fetching *f = stk_xcalloc(1, sizeof(*f));
    *f = (fetching){
        .ex = stk_gw_ref(ex), .done = done, .arg = arg, .until = stk_mono_add(stk_mono_now(), patience)};
    snprintf(f->run, sizeof(f->run), "%s", run);
    if (row && row->result.set) {
        stk_err err;
        f->have = stk_event_decode(stk_bytes_view(&row->result), &f->ev, &err) == 0;
        if (!f->have)
            stk_log_err(STK_LOG_ERROR, NULL, &err, "the result of %s in state can't be read", run);
    }
    if (f->have && is_whole(&f->ev))
        on_whole(f);
    else
        ask(f);
}

void stk_gw_result_write(stk_gw_exchange *ex, const stk_event *ev, stk_jw *w)
{
    stk_result_secret secret = {0};
    stk_err err;
    bool opened = !ev->secret.set && is_whole(ev); /* nothing was written: empty tails are the truth */
    if (ev->secret.set) {
        opened = stk_event_open(ev, ex->gw->spec.ring, &secret, &err) == 0;
        if (!opened)
            stk_log_err(STK_LOG_ERROR, &(stk_who){.run = ev->run, .tenant = ev->tenant}, &err,
                        "the output can't be opened");
    }
    stk_event_write_api(w, ev, opened ? &secret : NULL);
    stk_result_secret_done(&secret);
}
