#include "egress-proxy/client_impl.h"
#include "egress-proxy/refusal.h"
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#define HEAD_TIME   stk_sec(10) /* while there is no policy to say */
#define LINGER_TIME stk_sec(1)
#define LINGER_MOST ((size_t)1 << 20)

static void on_readable(evutil_socket_t fd, short what, void *arg);
static void on_timer(evutil_socket_t fd, short what, void *arg);

void stk__client_timer(stk_client *client, stk_span span)
{
    struct timeval tv = stk_span_timeval(span);
    evtimer_add(&client->timer, &tv);
}

stk_client *stk_client_next(const stk_client *client)
{
    return TAILQ_NEXT(client, link);
}

void stk__client_record(const stk_client *client, const char *kind, stk_egress_record *rec)
{
    *rec = (stk_egress_record){.port = client->target.port, .policy_version = client->px->version};
    snprintf(rec->kind, sizeof(rec->kind), "%s", kind);
    memcpy(rec->host, client->target.host, strlen(client->target.host) + 1);
    snprintf(rec->rule, sizeof(rec->rule), "%.255s", client->rule);
    memcpy(rec->method, client->method, sizeof(rec->method));
    rec->duration = stk_mono_sub(stk_mono_now(), client->since);
    if (client->peer.any.sa_family != AF_UNSPEC)
        stk_addr_text(&client->peer.any, rec->address);
}

void stk__client_close_request(stk_client *client, stk_reason reason)
{
    if (client->lookup)
        stk_lookup_free(STK_TAKE(client->lookup));
    if (client->dialer)
        stk_dialer_free(STK_TAKE(client->dialer));
    stk_records_forget(client->px->records, &client->ack);
    if (client->open) {
        stk_egress_record rec;
        stk_err err;
        stk__client_record(client, "close", &rec);
        rec.open_seq = client->open_seq;
        if (client->tunnel) {
            rec.bytes_in = stk_tunnel_bytes_in(client->tunnel);
            rec.bytes_out = stk_tunnel_bytes_out(client->tunnel);
        } else if (client->forward) {
            rec.bytes_in = stk_forward_bytes_in(client->forward);
            rec.bytes_out = stk_forward_bytes_out(client->forward);
        }
        stk_records_add(client->px->records, reason, &rec, &err);
    }
    client->open = false;
    client->open_seq = 0;
    if (client->tunnel)
        stk_tunnel_free(STK_TAKE(client->tunnel));
    if (client->forward)
        stk_forward_free(STK_TAKE(client->forward));
    stk_buf_done(&client->request);
    if (client->origin >= 0)
        close(client->origin);
    client->origin = -1;
    client->peer.any.sa_family = AF_UNSPEC;
    if (client->counted)
        client->px->tunnels--;
    client->counted = false;
}

void stk_client_end(stk_client *client, stk_reason reason)
{
    stk_proxy *px = client->px;
    stk__client_close_request(client, reason);
    event_del(&client->readable);
    evtimer_del(&client->timer);
    close(client->fd);
    stk_buf_done(&client->in);
    TAILQ_REMOVE(&px->clients, client, link);
    px->nclients--;
    stk__proxy_resume(px, STK_PAUSE_CLIENTS);
    free(client);
}

/* Closing with unread bytes would reset the connection and could take the answer with it (RFC 9112,
 * section 9.6). */
void stk__client_linger(stk_client *client)
{
    if (shutdown(client->fd, SHUT_WR) < 0) {
        stk_client_end(client, STK_R_RESET);
        return;
    }
    client->state = STK_CL_LINGER;
    client->drained = 0;
    stk_buf_done(&client->in);
    stk__client_timer(client, LINGER_TIME);
    event_add(&client->readable, NULL);
}

static void linger_on(stk_client *client)
{
    for (;;) {
        ssize_t n = recv(client->fd, client->px->flow.scratch, STK_SCRATCH, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (n > 0)
            client->drained += (size_t)n;
        if (n <= 0 || client->drained > LINGER_MOST) {
            stk_client_end(client, STK_R_CLOSED);
            return;
        }
    }
}

static void answer(stk_client *client, stk_reason reason, const char *detail, bool keep_alive)
{
    stk_refusal refusal = {.reason = reason,
                           .detail = detail,
                           .host = client->target.host,
                           .port = client->target.port,
                           .rule = client->rule,
                           .run = client->px->run,
                           .head = client->head_request,
                           .keep_alive = keep_alive};
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(8192);
    stk_refusal_write(&refusal, &out);
    /* It fits any empty socket buffer; a client whose buffer is full of earlier answers reads none of them.
     */
    if (send(client->fd, out.p, out.n, MSG_NOSIGNAL) != (ssize_t)out.n)
        shutdown(client->fd, SHUT_RDWR);
}

/* A tunnel's client is past heads, a response that has begun can't be another one. */
static bool is_answered(const stk_client *client)
{
    return client->tunnel || (client->forward && stk_forward_answered(client->forward));
}

static void record_refusal(stk_client *client, stk_reason reason)
{
    stk_egress_record rec;
    stk_err err;
    if (client->open && stk_reason_kind_of(reason) == STK_REASON_FAIL)
        return; /* its decision was an allow, its close record says the rest */
    stk__client_record(client, "decision", &rec);
    stk_records_add(client->px->records, reason, &rec, &err);
}

void stk__client_refuse(stk_client *client, stk_reason reason, const char *detail)
{
    bool answered = is_answered(client), fresh = !client->forward, calm = true;
    record_refusal(client, reason);
    stk__client_close_request(client, reason);
    if (stk_reason_kind_of(reason) == STK_REASON_DENY)
        calm = stk__proxy_refused(client->px);
    if (answered) {
        stk_client_end(client, reason);
        return;
    }
    bool keep_alive = fresh && calm && client->keep_alive && client->framing == STK_FRAMING_NONE &&
                      !stk__proxy_behind(client->px);
    answer(client, reason, detail, keep_alive);
    if (keep_alive)
        stk__client_next_request(client);
    else
        stk__client_linger(client);
}

void stk_client_overloaded(stk_proxy *px, int fd)
{
    stk_client client = {.px = px, .fd = fd, .origin = -1, .since = stk_mono_now()};
    stk_egress_record rec;
    stk_err err;
    stk__client_record(&client, "decision", &rec);
    stk_records_add(px->records, STK_R_OVERLOADED, &rec, &err);
    answer(&client, STK_R_OVERLOADED, "", false);
}

/* --- heads
 * ------------------------------------------------------------------------------------------------------ */

static void forget_request(stk_client *client)
{
    client->state = STK_CL_HEAD;
    client->scan = 0;
    client->target.host[0] = '\0';
    client->target.port = 0;
    client->rule[0] = client->method[0] = '\0';
    client->head_request = client->keep_alive = false;
    client->framing = STK_FRAMING_NONE;
    client->generation = client->px->generation;
    client->since = stk_mono_now();
}

static stk_span head_limit(const stk_client *client)
{
    const stk_policy *policy = client->px->policy;
    return policy ? stk_policy_limits_of(policy)->head : HEAD_TIME;
}

void stk__client_next_request(stk_client *client)
{
    forget_request(client);
    client->again = true;
    client->pending = client->in.n > 0;
    const stk_policy *policy = client->px->policy;
    stk__client_timer(client,
                      client->pending || !policy ? head_limit(client) : stk_policy_limits_of(policy)->idle);
    event_add(&client->readable, NULL);
    if (client->pending)
        event_active(&client->readable, EV_READ, 1); /* from the loop, however many are pipelined */
}

/* What of the head is needed once its bytes are gone. */
static stk_reason note_head(stk_client *client, const stk_head *head, stk_err *why)
{
    size_t n = stk_min(head->method.n, sizeof(client->method) - 1);
    memcpy(client->method, head->method.p, n);
    client->method[n] = '\0';
    client->head_request = stk_str_eq(head->method, STK_STR("HEAD"));
    client->framing = head->framing;
    client->length = head->length;
    client->http_1_0 = head->minor == 0;
    client->expect_continue = head->expect_continue;
    stk_reason reason = stk_target_read(head, &client->target, why);
    if (reason != STK_R_ALLOWED || client->target.connect)
        return reason;
    if (head->expect_other)
        return STK_R_BAD_EXPECT;
    if (head->framing != STK_FRAMING_NONE && stk_method_bodyless(head->method))
        return STK_R_BODYLESS_METHOD_BODY;
    client->keep_alive = head->keep_alive && !client->http_1_0;
    stk_buf_init(&client->request, 2 * STK_SCRATCH);
    stk_request_rewrite(head, &client->target, &client->request);
    return STK_R_ALLOWED;
}

static void judge(stk_client *client, const stk_head *head)
{
    stk_proxy *px = client->px;
    stk_err why = {0};
    stk_reason reason = note_head(client, head, &why);
    if (reason != STK_R_ALLOWED) {
        stk__client_refuse(client, reason, why.detail);
        return;
    }
    stk_usage usage = stk__proxy_usage(px);
    stk_decision decision =
        stk_decide_name(px->policy, client->target.host, client->target.literal, client->target.port, &usage);
    memcpy(client->rule, decision.rule, sizeof(client->rule));
    if (decision.reason != STK_R_ALLOWED) {
        stk__client_refuse(client, decision.reason, "");
        return;
    }
    client->counted = true;
    px->tunnels++;
    stk__client_connect(client);
}

static void read_head(stk_client *client, stk_str in)
{
    static const stk_head_limits limits = {.bytes = 16384, .fields = STK_HEAD_MAX_FIELDS - STK_REWRITE_ADDS};
    stk_head *head = &client->px->head;
    stk_head_fault fault;
    const char *why = "";
    ptrdiff_t used = stk_head_request(in, &limits, &client->scan, head, &fault, &why);
    if (used == 0) {
        if (in.p != client->in.p)
            stk_buf_str(&client->in, in);
        event_add(&client->readable, NULL);
        return;
    }
    event_del(&client->readable);
    evtimer_del(&client->timer);
    client->scan = 0;
    if (used < 0) {
        stk__client_refuse(client, stk_target_fault(fault), why);
        return;
    }
    /* The head's slices point into `in`, so that the rest is moved only once they were used. */
    stk_buf rest = STK_BUF(2 * STK_SCRATCH);
    if ((size_t)used < in.n)
        stk_buf_add(&rest, in.p + used, in.n - (size_t)used);
    stk_buf before = client->in;
    client->in = rest;
    judge(client, head);
    stk_buf_done(&before);
}

static void read_more(stk_client *client)
{
    char *scratch = client->px->flow.scratch;
    if (client->pending) {
        client->pending = false;
        read_head(client, stk_buf_view(&client->in));
        return;
    }
    ssize_t n = recv(client->fd, scratch, STK_SCRATCH, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        event_add(&client->readable, NULL);
        return;
    }
    if (n <= 0) {
        stk_client_end(client, STK_R_CLIENT_GONE);
        return;
    }
    if (client->in.n == 0) {
        if (client->again)
            stk__client_timer(client, head_limit(client));
        read_head(client, stk_str_n(scratch, (size_t)n));
        return;
    }
    stk_buf_add(&client->in, scratch, (size_t)n);
    read_head(client, stk_buf_view(&client->in));
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
    stk_client *client = arg;
    if (client->state == STK_CL_LINGER)
        linger_on(client);
    else
        read_more(client);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    stk_client *client = arg;
    bool idle = client->again && client->in.n == 0; /* between two requests: nothing to complain of */
    if (client->state == STK_CL_HEAD && !idle)
        stk__client_refuse(client, STK_R_HEAD_TIMEOUT, "");
    else if (client->state == STK_CL_ACK)
        stk__client_refuse(client, STK_R_AUDIT_UNAVAILABLE, "");
    else
        stk_client_end(client, STK_R_CLOSED);
}

void stk_client_new(stk_proxy *px, int fd)
{
    stk_client *client = stk_xcalloc(1, sizeof(*client));
    client->px = px;
    client->fd = fd;
    client->origin = -1;
    client->peer.any.sa_family = AF_UNSPEC;
    stk_buf_init(&client->in, 2 * STK_SCRATCH);
    event_assign(&client->readable, px->base, fd, EV_READ | EV_PERSIST, on_readable, client);
    evtimer_assign(&client->timer, px->base, on_timer, client);
    TAILQ_INSERT_TAIL(&px->clients, client, link);
    px->nclients++;
    forget_request(client);
    stk__client_timer(client, head_limit(client));
    read_more(client);
}
