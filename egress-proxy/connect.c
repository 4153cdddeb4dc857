#include "egress-proxy/client_impl.h"
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#define ACK_TIME stk_sec(2)

static void on_tunnel_end(stk_reason reason, void *arg)
{
    stk_client *client = arg;
    if (stk_reason_kind_of(reason) == STK_REASON_DENY)
        stk__client_refuse(client, reason, "");
    else
        stk_client_end(client, reason);
}

static void open_tunnel(stk_client *client)
{
    static const char ok[] = "HTTP/1.1 200 Connection established\r\n\r\n";
    const stk_policy_limits *limits = stk_policy_limits_of(client->px->policy);
    client->state = STK_CL_OPEN;
    if (send(client->fd, ok, sizeof(ok) - 1, MSG_NOSIGNAL) != (ssize_t)sizeof(ok) - 1) {
        stk_client_end(client, STK_R_CLIENT_GONE);
        return;
    }
    stk_tunnel_spec spec = {.client = client->fd,
                            .origin = client->origin,
                            .early = stk_buf_view(&client->in),
                            .tls = stk_policy_tls(client->px->policy),
                            .host = client->target.host,
                            .idle = limits->idle,
                            .hello = limits->head,
                            .on_end = on_tunnel_end,
                            .arg = client};
    client->tunnel = stk_tunnel_new(&client->px->flow, &spec);
    stk_buf_done(&client->in);
}

static void on_forward_end(stk_reason reason, void *arg)
{
    stk_client *client = arg;
    if (reason != STK_R_CLOSED) {
        if (stk_reason_kind_of(reason) == STK_REASON_END)
            stk_client_end(client, reason);
        else
            stk__client_refuse(client, reason, "");
        return;
    }
    bool reusable = stk_forward_reusable(client->forward, &client->in);
    stk__client_close_request(client, STK_R_CLOSED);
    if (reusable && !stk__proxy_behind(client->px))
        stk__client_next_request(client);
    else
        stk__client_linger(client);
}

static void open_forward(stk_client *client)
{
    stk_forward_spec spec = {.client = client->fd,
                             .origin = client->origin,
                             .head = client->request,
                             .framing = client->framing,
                             .length = client->length,
                             .early = stk_buf_view(&client->in),
                             .expect_continue = client->expect_continue,
                             .how = {.to_head = client->head_request,
                                     .to_1_0 = client->http_1_0,
                                     .keep_alive = client->keep_alive},
                             .idle = stk_policy_limits_of(client->px->policy)->idle,
                             .on_end = on_forward_end,
                             .arg = client};
    client->state = STK_CL_OPEN;
    client->request = (stk_buf){0};
    client->forward = stk_forward_new(&client->px->flow, &spec);
    stk_buf_reset(&client->in);
}

/* Does what was judged under an older policy pass under the present one? */
static stk_reason judge_again(stk_client *client, const char **ret_class)
{
    stk_proxy *px = client->px;
    const stk_usage nothing = {0};
    *ret_class = "";
    if (client->generation == px->generation)
        return STK_R_ALLOWED;
    client->generation = px->generation;
    stk_decision decision = stk_decide_name(px->policy, client->target.host, client->target.literal,
                                            client->target.port, &nothing);
    memcpy(client->rule, decision.rule, sizeof(client->rule));
    if (decision.reason != STK_R_ALLOWED)
        return decision.reason;
    return stk_decide_addresses(px->policy, client->target.host, client->target.port, stk_own_view(px->own),
                                &client->peer, 1, ret_class);
}

static void establish(stk_client *client)
{
    const char *class;
    stk_reason reason = judge_again(client, &class);
    evtimer_del(&client->timer);
    if (reason != STK_R_ALLOWED)
        stk__client_refuse(client, reason, class);
    else if (client->target.connect)
        open_tunnel(client);
    else
        open_forward(client);
}

static void on_ack(void *arg)
{
    establish(arg);
}

/* The allow goes into the evidence before its answer goes out. */
static void allow(stk_client *client)
{
    stk_proxy *px = client->px;
    stk_egress_record rec;
    int64_t wait = 0;
    stk_err err;
    stk__client_record(client, "decision", &rec);
    if (stk_records_allow(px->records, &rec, &wait, &err) < 0) {
        stk__client_refuse(client, STK_R_AUDIT_UNAVAILABLE, "");
        return;
    }
    client->open = true;
    client->open_seq = rec.seq;
    if (!wait) {
        establish(client);
        return;
    }
    client->state = STK_CL_ACK;
    client->ack.on_ack = on_ack;
    client->ack.arg = client;
    stk_records_wait(px->records, &client->ack, wait);
    stk__client_timer(client, ACK_TIME);
}

static void on_dialed(stk_reason reason, int fd, const stk_sock *peer, void *arg)
{
    stk_client *client = arg;
    const char *class;
    client->dialer = NULL;
    client->origin = fd;
    if (reason == STK_R_ALLOWED) {
        client->peer = *peer;
        reason = judge_again(client, &class);
    }
    if (reason != STK_R_ALLOWED)
        stk__client_refuse(client, reason, "");
    else
        allow(client);
}

static void dial(stk_client *client, stk_sock *addrs, size_t n)
{
    stk_proxy *px = client->px;
    const char *class;
    stk_reason reason = stk_decide_addresses(px->policy, client->target.host, client->target.port,
                                             stk_own_view(px->own), addrs, n, &class);
    if (reason != STK_R_ALLOWED) {
        char detail[64];
        snprintf(detail, sizeof(detail), "the class of one of its addresses is %s", class);
        stk__client_refuse(client, reason, detail);
        return;
    }
    stk_decide_order(addrs, n);
    client->state = STK_CL_DIAL;
    client->dialer =
        stk_dialer_new(px->base, addrs, n, stk_policy_limits_of(px->policy)->connect, on_dialed, client);
}

static void on_resolved(stk_reason reason, stk_sock *addrs, size_t n, void *arg)
{
    stk_client *client = arg;
    client->lookup = NULL;
    if (reason != STK_R_ALLOWED)
        stk__client_refuse(client, reason, "");
    else
        dial(client, addrs, n);
}

void stk__client_connect(stk_client *client)
{
    stk_proxy *px = client->px;
    stk_sock addrs[STK_LOOKUP_ADDRS];
    size_t n = stk_resolver_known(px->resolver, client->target.host, stk_mono_now(), addrs);
    if (n) {
        dial(client, addrs, n);
        return;
    }
    client->state = STK_CL_RESOLVE;
    client->lookup = stk_lookup_new(px->resolver, client->target.host, on_resolved, client);
}

void stk_client_recheck(stk_client *client)
{
    const char *class;
    if (client->state != STK_CL_OPEN)
        return; /* judged again before it opens */
    if (judge_again(client, &class) == STK_R_ALLOWED)
        return;
    stk__client_refuse(client, STK_R_POLICY_CHANGED, "");
}
