#include "egress-proxy/proxy.h"
#include "egress-proxy/client.h"
#include "proto/base/fd.h"
#include <errno.h>
#include <sys/socket.h>

#define REFUSALS_A_SECOND 1000
#define REFUSALS_AT_ONCE  2000
#define HEADS_AT_ONCE     1024 /* clients beyond the tunnels that may be there at a time */
#define ACCEPTS_A_TURN    64

static void on_acceptable(evutil_socket_t fd, short what, void *arg);

void stk__proxy_pause(stk_proxy *px, unsigned why)
{
    px->paused |= why;
    event_del(&px->acceptable);
}

void stk__proxy_resume(stk_proxy *px, unsigned why)
{
    if (!(px->paused & why))
        return;
    px->paused &= ~why;
    if (!px->paused)
        event_add(&px->acceptable, NULL);
}

static void resume_after(stk_proxy *px, stk_span span)
{
    struct timeval tv = stk_span_timeval(span);
    if (!evtimer_pending(&px->resume, NULL))
        evtimer_add(&px->resume, &tv);
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
    stk__proxy_resume(arg, STK_PAUSE_FLOOD);
    stk__proxy_resume(arg, STK_PAUSE_FDS);
}

bool stk__proxy_refused(stk_proxy *px)
{
    stk_mono now = stk_mono_now();
    if (stk_bucket_take(&px->refusals, 1, now) == 1)
        return true;
    stk__proxy_pause(px, STK_PAUSE_FLOOD);
    resume_after(px, stk_bucket_wait(&px->refusals, REFUSALS_A_SECOND / 20, now));
    return false;
}

bool stk__proxy_behind(const stk_proxy *px)
{
    return px->ctl && stk_ctl_full(px->ctl);
}

stk_usage stk__proxy_usage(const stk_proxy *px)
{
    return (stk_usage){
        .tunnels = px->tunnels, .bytes = px->flow.moved, .dns_queries = *stk_resolver_spent(px->resolver)};
}

/* With the last descriptor gone: one is kept to tell the next client, then the rest waits in the backlog for
 * a while. */
static void on_no_descriptors(stk_proxy *px)
{
    close(px->spare);
    int fd = accept4(px->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        stk_client_overloaded(px, fd);
        close(fd);
    }
    px->spare = dup(px->listener);
    stk__proxy_pause(px, STK_PAUSE_FDS);
    resume_after(px, stk_ms(100));
}

static void check_crowd(stk_proxy *px)
{
    size_t tunnels = px->policy ? (size_t)stk_policy_limits_of(px->policy)->tunnels : 0;
    if (px->nclients >= tunnels + HEADS_AT_ONCE)
        stk__proxy_pause(px, STK_PAUSE_CLIENTS);
    if (stk__proxy_behind(px))
        stk__proxy_pause(px, STK_PAUSE_CONTROL);
}

static void on_acceptable(evutil_socket_t fd, short what, void *arg)
{
    stk_proxy *px = arg;
    for (int i = 0; i < ACCEPTS_A_TURN && !px->paused && !px->ended; i++) {
        int client = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (client >= 0) {
            stk_client_new(px, client);
            check_crowd(px);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            on_no_descriptors(px);
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

/* --- policy
 * ----------------------------------------------------------------------------------------------------- */

void stk_proxy_policy(stk_proxy *px, stk_policy *policy, int64_t version)
{
    stk_policy *old = px->policy;
    const stk_policy_limits *limits = stk_policy_limits_of(policy);
    stk_records_flush(px->records); /* a summary stands for one policy's decisions */
    px->policy = policy;
    px->version = version;
    px->generation++;
    stk_flow_limits(&px->flow, limits->bytes, limits->bytes_per_second);
    stk_client *client = TAILQ_FIRST(&px->clients);
    while (client) {
        stk_client *next = stk_client_next(client);
        stk_client_recheck(client);
        client = next;
    }
    if (old)
        stk_policy_free(old);
}

/* A line without a run changes the policy alone. */
static void set_run(stk_proxy *px, const char *run)
{
    if (!run[0] || strcmp(px->run, run) == 0)
        return;
    memcpy(px->run, run, strlen(run) + 1);
    stk_records_run(px->records, run);
    stk_resolver_forget(px->resolver);
    *stk_resolver_spent(px->resolver) = 0;
    px->flow.moved = 0;
}

static void on_policy(int64_t version, const char *run, stk_str body, void *arg)
{
    stk_proxy *px = arg;
    stk_policy *policy = NULL;
    stk_err err = {0};
    stk_control reply = {.kind = "policy_ok", .version = version};
    if (stk_policy_parse_text(body, &policy, &err) < 0) {
        memcpy(reply.kind, "policy_bad", sizeof("policy_bad"));
        stk_buf detail STK_AUTO(stk_buf_done) = STK_BUF(sizeof(reply.detail) - 1);
        stk_buf_fmt(&detail, "%.150s%s%.300s", err.pointer, err.pointer[0] ? ": " : "", err.detail);
        stk_str_copy(stk_buf_view(&detail), reply.detail, sizeof(reply.detail));
    } else {
        set_run(px, run);
        stk_proxy_policy(px, policy, version);
    }
    stk_ctl_reply(px->ctl, &reply);
}

/* --- the end
 * ---------------------------------------------------------------------------------------------------- */

static void close_all(stk_proxy *px)
{
    stk__proxy_pause(px, STK_PAUSE_DRAIN);
    stk_closep(&px->listener);
    stk_closep(&px->spare);
    px->listener = px->spare = -1;
    stk_client *client;
    while ((client = TAILQ_FIRST(&px->clients)))
        stk_client_end(client, STK_R_DRAINED);
    stk_records_flush(px->records);
}

void stk_proxy_end(stk_proxy *px, int status)
{
    if (px->ended)
        return;
    px->ended = true;
    px->status = status;
    event_base_loopbreak(px->base);
}

static void on_ack(int64_t seq, void *arg)
{
    stk_records_acked(((stk_proxy *)arg)->records, seq);
}

static void on_drain(void *arg)
{
    stk_proxy *px = arg;
    close_all(px);
    stk_ctl_drained(px->ctl);
}

static void on_room(void *arg)
{
    stk__proxy_resume(arg, STK_PAUSE_CONTROL);
}

static void on_control_end(void *arg)
{
    stk_proxy_end(arg, 0);
}

static const stk_ctl_ops ctl_ops = {.on_policy = on_policy,
                                    .on_ack = on_ack,
                                    .on_drain = on_drain,
                                    .on_room = on_room,
                                    .on_end = on_control_end};

/* --- life
 * ------------------------------------------------------------------------------------------------------- */

static struct event_base *new_base(void)
{
    struct event_config *config = event_config_new();
    if (!config)
        return NULL;
    event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
    event_config_set_flag(config, EVENT_BASE_FLAG_EPOLL_USE_CHANGELIST);
    event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV);
    struct event_base *base = event_base_new_with_config(config);
    event_config_free(config);
    return base;
}

int stk_proxy_new(const stk_proxy_spec *spec, stk_proxy **ret, stk_err *err)
{
    stk_proxy *px = stk_xcalloc(1, sizeof(*px));
    TAILQ_INIT(&px->clients);
    px->listener = spec->listener;
    px->spare = -1;
    px->base = new_base();
    if (!px->base) {
        free(px);
        return stk_err_set(err, STK_E_NOMEM, "no event loop");
    }
    stk_flow_init(&px->flow, px->base);
    stk_bucket_init(&px->refusals, REFUSALS_A_SECOND, REFUSALS_AT_ONCE, stk_mono_now());
    evtimer_assign(&px->resume, px->base, on_resume, px);
    event_assign(&px->acceptable, px->base, px->listener, EV_READ | EV_PERSIST, on_acceptable, px);
    px->resolver = stk_resolver_new(px->base, &spec->servers);
    int rc = stk_own_new(px->base, &px->own, err);
    if (rc == 0)
        rc = stk_fd_nonblock(px->listener, err);
    if (rc == 0 && (px->spare = dup(px->listener)) < 0)
        rc = stk_err_errno(err, errno, "keep a spare descriptor");
    if (rc == 0 && spec->control >= 0)
        rc = stk_ctl_new(px->base, spec->control, &ctl_ops, px, &px->ctl, err);
    px->records = stk_records_new(px->base, spec->journal, px->ctl);
    if (rc < 0) {
        stk_proxy_free(px);
        return rc;
    }
    *ret = px;
    return 0;
}

int stk_proxy_run(stk_proxy *px)
{
    event_add(&px->acceptable, NULL);
    if (px->ctl) {
        stk_control ready = {.kind = "ready"};
        stk_listen_text(px->listener, ready.detail);
        stk_ctl_reply(px->ctl, &ready);
    }
    event_base_dispatch(px->base);
    close_all(px);
    if (px->ctl)
        stk_ctl_flush(px->ctl);
    return px->status;
}

void stk_proxy_free(stk_proxy *px)
{
    close_all(px);
    evtimer_del(&px->resume);
    stk_records_free(px->records);
    if (px->ctl)
        stk_ctl_free(px->ctl);
    if (px->own)
        stk_own_free(px->own);
    stk_resolver_free(px->resolver);
    stk_flow_done(&px->flow);
    if (px->policy)
        stk_policy_free(px->policy);
    event_base_free(px->base);
    free(px);
}
