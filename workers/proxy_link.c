#include "workers/proxy_link.h"
#include <event2/buffer.h>
#include <event2/bufferevent.h>

#define WRITE_MAX ((size_t)4 << 20) /* a proxy that reads nothing for this long is broken */

struct stk_proxy_link {
    struct bufferevent *stream;
    stk_syncer *syncer;
    int journal;
    const stk_proxy_link_ops *ops;
    void *arg;
    int64_t asked, syncing; /* first allows: highest seq seen, and the one being made durable */
    bool sync_running, sync_failed, reading;
    bool freed; /* while a sync is under way, or by a callback */
    bool ended;
};

static void release(stk_proxy_link *link)
{
    if (!link->sync_running && !link->reading)
        free(link);
}

static void end(stk_proxy_link *link)
{
    if (link->ended || link->freed)
        return;
    link->ended = true;
    bufferevent_disable(link->stream, EV_READ | EV_WRITE);
    link->ops->on_end(link->arg);
}

static int send_line(stk_proxy_link *link, const stk_control *ctl, stk_err *err)
{
    stk_buf line STK_AUTO(stk_buf_done) = STK_BUF(STK_CONTROL_LINE_MAX);
    int rc = stk_control_encode(ctl, &line, err);
    if (rc < 0)
        return rc;
    struct evbuffer *out = bufferevent_get_output(link->stream);
    if (link->ended || evbuffer_get_length(out) + line.n > WRITE_MAX)
        return stk_err_set(err, STK_E_CLOSED, "the egress proxy does not read its control stream");
    bufferevent_write(link->stream, line.p, line.n);
    return 0;
}

static void sync_next(stk_proxy_link *link);

static void on_synced(int errnum, void *arg)
{
    stk_proxy_link *link = arg;
    link->sync_running = false;
    if (link->freed) {
        release(link);
        return;
    }
    stk_err err;
    stk_control ack = {.kind = "ack", .seq = link->syncing};
    /* What a failed sync lost, a later one does not bring back: nothing is acknowledged any more, and the
     * proxy refuses. */
    link->sync_failed = link->sync_failed || errnum != 0;
    if (!link->sync_failed && send_line(link, &ack, &err) < 0)
        end(link);
    else
        sync_next(link);
}

static void sync_next(stk_proxy_link *link)
{
    if (link->sync_running || link->sync_failed || link->ended || link->asked <= link->syncing)
        return;
    link->syncing = link->asked;
    link->sync_running = true;
    stk_syncer_sync(link->syncer, link->journal, on_synced, link);
}

static int take_record(stk_proxy_link *link, const stk_control *ctl, stk_err *err)
{
    stk_egress_record rec = {0};
    int rc = stk_egress_decode(stk_bytes_view(&ctl->body), &rec, err);
    if (rc < 0)
        return rc;
    if (rec.first && rec.seq > link->asked) {
        link->asked = rec.seq;
        sync_next(link);
    }
    link->ops->on_record(&rec, stk_bytes_view(&ctl->body), link->arg);
    return 0;
}

static int take_line(stk_proxy_link *link, stk_str line, stk_err *err)
{
    stk_control ctl = {0};
    int rc = stk_control_decode(line, &ctl, err);
    if (rc == 0) {
        int kind = stk_control_kind_of(&ctl);
        if (kind == STK_CTL_RECORD)
            rc = take_record(link, &ctl, err);
        else if (kind == STK_CTL_POLICY_OK || kind == STK_CTL_POLICY_BAD)
            link->ops->on_policy(kind == STK_CTL_POLICY_OK, ctl.version, ctl.detail, link->arg);
        else if (kind == STK_CTL_DRAINED)
            link->ops->on_drained(link->arg);
        else if (kind != STK_CTL_READY)
            rc = -STK_E_PROTOCOL;
    }
    stk_control_done(&ctl);
    return rc;
}

static void on_readable(struct bufferevent *stream, void *arg)
{
    stk_proxy_link *link = arg;
    struct evbuffer *in = bufferevent_get_input(stream);
    link->reading = true;
    while (!link->ended && !link->freed) {
        size_t n;
        stk_err err;
        char *line STK_AUTO(stk_freep) = evbuffer_readln(in, &n, EVBUFFER_EOL_LF);
        if (!line && evbuffer_get_length(in) <= STK_CONTROL_LINE_MAX)
            break;
        if (!line || take_line(link, stk_str_n(line, n), &err) < 0)
            end(link);
    }
    link->reading = false;
    if (link->freed)
        release(link);
}

static void on_event(struct bufferevent *stream, short what, void *arg)
{
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        end(arg);
}

int stk_proxy_link_new(stk_loop *loop, stk_syncer *syncer, int control, int journal,
                       const stk_proxy_link_ops *ops, void *arg, stk_proxy_link **ret, stk_err *err)
{
    stk_proxy_link *link = stk_xcalloc(1, sizeof(*link));
    *link = (stk_proxy_link){.syncer = syncer, .journal = journal, .ops = ops, .arg = arg};
    link->stream =
        bufferevent_socket_new(stk_loop_base(loop), control, BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    if (!link->stream) {
        free(link);
        return stk_err_set(err, STK_E_NOMEM, "no memory for a control stream");
    }
    bufferevent_setcb(link->stream, on_readable, NULL, on_event, link);
    bufferevent_enable(link->stream, EV_READ | EV_WRITE);
    *ret = link;
    return 0;
}

int stk_proxy_link_policy(stk_proxy_link *link, int64_t version, const char *run, stk_str policy,
                          stk_err *err)
{
    stk_control ctl = {
        .kind = "policy", .version = version, .body = {(char *)(uintptr_t)policy.p, policy.n, true}};
    memcpy(ctl.run, run, strlen(run) + 1);
    return send_line(link, &ctl, err);
}

bool stk_proxy_link_drain(stk_proxy_link *link)
{
    stk_err err;
    stk_control ctl = {.kind = "drain"};
    if (send_line(link, &ctl, &err) == 0)
        return true;
    end(link);
    return false;
}

void stk_proxy_link_free(stk_proxy_link *link)
{
    bufferevent_free(link->stream);
    link->freed = true;
    release(link);
}
