#include "tests/unit/workers/fake.h"
#include "proto/base/id.h"
#include "tests/unit/workers/unit.h"
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <fcntl.h>
#include <sys/socket.h>

#define EXIT_0                                                                                               \
    "{\"exit\":{\"exit_code\":0,\"signal\":0,\"timed_out\":false,\"oom_killed\":false,\"truncated\":false,"  \
    "\"duration_ms\":3,\"stdout_bytes\":0,\"stderr_bytes\":0}}\n"

static void note(fake *f, const char *what)
{
    f->log(f->log_arg, what);
}

/* --- the runtime inside */

static void hang_up(struct bufferevent **peer)
{
    if (*peer)
        bufferevent_free(*peer);
    *peer = NULL;
}

static void say(struct bufferevent *peer, const char *text)
{
    if (peer)
        bufferevent_write(peer, text, strlen(text));
}

static void answer_with(struct bufferevent *peer, int status, const char *body)
{
    char head[160];
    snprintf(head, sizeof(head), "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n\r\n", status, strlen(body));
    say(peer, head);
    say(peer, body);
}

static void act(struct bufferevent **peer, fake_act what, const char *good, const char *bad)
{
    if (what == FAKE_OK)
        answer_with(*peer, 200, good);
    else if (what == FAKE_BAD)
        answer_with(*peer, 422, bad);
    else if (what == FAKE_JUNK)
        say(*peer, "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nnot a frame\n");
    else if (what == FAKE_DIE)
        hang_up(peer);
}

/* True when a whole request was there; it is taken off. */
static bool take_request(struct evbuffer *in, char *body, size_t size)
{
    struct evbuffer_ptr end = evbuffer_search(in, "\r\n\r\n", 4, NULL);
    if (end.pos < 0)
        return false;
    size_t head = (size_t)end.pos + 4, length = 0;
    char text[2048] = "";
    evbuffer_copyout(in, text, head < sizeof(text) - 1 ? head : sizeof(text) - 1);
    const char *field = strstr(text, "Content-Length: ");
    if (field)
        length = strtoul(field + 16, NULL, 10);
    if (evbuffer_get_length(in) < head + length)
        return false;
    evbuffer_drain(in, head);
    size_t kept = length < size - 1 ? length : size - 1;
    evbuffer_remove(in, body, kept);
    body[kept] = '\0';
    evbuffer_drain(in, length - kept);
    return true;
}

static void on_health(struct bufferevent *peer, void *arg)
{
    fake_sandbox *sbx = arg;
    char ignored[64];
    while (sbx->health && take_request(bufferevent_get_input(peer), ignored, sizeof(ignored))) {
        note(sbx->be, "health");
        act(&sbx->health, sbx->be->health, "{\"status\":\"ok\"}", "{}");
    }
}

static void on_command(struct bufferevent *peer, void *arg)
{
    fake_sandbox *sbx = arg;
    fake *f = sbx->be;
    while (sbx->command && take_request(bufferevent_get_input(peer), f->body, sizeof(f->body))) {
        note(f, "execute");
        act(&sbx->command, f->execute, f->answer ? f->answer : EXIT_0, "{\"detail\":\"no such thing\"}");
    }
}

/* --- the proxy beside it */

static void on_policy(fake_sandbox *sbx, const char *line)
{
    fake *f = sbx->be;
    char text[96];
    const char *at = strstr(line, "\"version\":");
    long version = at ? strtol(at + 10, NULL, 10) : 0;
    note(f, "policy");
    snprintf(f->policy_text, sizeof(f->policy_text), "%s", line);
    snprintf(text, sizeof(text), "{\"kind\":\"policy_%s\",\"version\":%ld%s}\n",
             f->policy == FAKE_BAD ? "bad" : "ok", version,
             f->policy == FAKE_BAD ? ",\"detail\":\"no\"" : "");
    if (f->policy == FAKE_OK || f->policy == FAKE_BAD)
        say(sbx->proxy, text);
    else if (f->policy == FAKE_JUNK)
        say(sbx->proxy, "{\"kind\":\"dance\"}\n");
    else if (f->policy == FAKE_DIE)
        hang_up(&sbx->proxy);
}

static void on_proxy(struct bufferevent *peer, void *arg)
{
    fake_sandbox *sbx = arg;
    while (sbx->proxy) {
        char *line = evbuffer_readln(bufferevent_get_input(peer), NULL, EVBUFFER_EOL_LF);
        if (!line)
            return;
        if (strstr(line, "\"kind\":\"policy\"")) {
            on_policy(sbx, line);
        } else if (strstr(line, "\"kind\":\"drain\"")) {
            note(sbx->be, "drain");
            if (sbx->be->drain == FAKE_OK)
                say(sbx->proxy, "{\"kind\":\"drained\"}\n");
            else if (sbx->be->drain == FAKE_DIE)
                hang_up(&sbx->proxy);
        } else if (strstr(line, "\"kind\":\"ack\"")) {
            note(sbx->be, "ack");
        }
        free(line);
    }
}

/* --- the port */

static int pair_up(fake_sandbox *sbx, struct bufferevent **ret, bufferevent_data_cb on_data)
{
    int fds[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    *ret = bufferevent_socket_new(stk_loop_base(sbx->be->loop), fds[1],
                                  BEV_OPT_CLOSE_ON_FREE | BEV_OPT_DEFER_CALLBACKS);
    bufferevent_setcb(*ret, on_data, NULL, NULL, sbx);
    bufferevent_enable(*ret, EV_READ | EV_WRITE);
    return fds[0];
}

static void tell_created(void *arg)
{
    fake_sandbox *sbx = arg;
    fake *f = sbx->be;
    stk_sandbox *base = &sbx->base;
    base->link_health = pair_up(sbx, &sbx->health, on_health);
    base->link_commands[0] = pair_up(sbx, &sbx->command, on_command);
    base->nlinks = 1;
    base->link_control = -1;
    base->proxy_control = pair_up(sbx, &sbx->proxy, on_proxy);
    snprintf(base->journal_path, sizeof(base->journal_path), "%s/%s.jsonl", f->spool, base->id);
    base->journal = open(base->journal_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    assert_true(base->journal >= 0);
    sbx->next = f->first;
    f->first = sbx;
    f->made++;
    stk_create_done created = STK_TAKE(sbx->created);
    created(NULL, base, sbx->arg);
}

static void tell_failed(void *arg)
{
    fake_sandbox *sbx = arg;
    stk_err err;
    sbx->be->failed++;
    stk_err_set(&err, STK_E_SANDBOX, "no room");
    sbx->created(&err, NULL, sbx->arg);
    free(sbx);
}

static fake_sandbox *held; /* by FAKE_HOLD */

static void create(stk_backend *be, const stk_sandbox_spec *spec, stk_span limit, stk_create_done done,
                   stk_lost_fn lost, void *arg)
{
    fake *f = STK_CONTAINER(be, fake, be);
    fake_sandbox *sbx = stk_xcalloc(1, sizeof(*sbx));
    *sbx = (fake_sandbox){.be = f, .spec = *spec, .created = done, .lost = lost, .arg = arg};
    sbx->base = (stk_sandbox){.backend = be, .strength = STK_STRENGTH_CONTAINER, .runtime = "fake 1"};
    memcpy(sbx->base.id, spec->id, sizeof(sbx->base.id));
    f->last = *spec;
    note(f, "create");
    if (f->create == FAKE_HOLD)
        held = sbx;
    else
        stk_loop_post(f->loop, f->create == FAKE_BAD ? tell_failed : tell_created, sbx);
}

void fake_create_now(fake *f)
{
    fake_sandbox *sbx = STK_TAKE(held);
    assert_non_null(sbx);
    stk_loop_post(f->loop, f->create == FAKE_BAD ? tell_failed : tell_created, sbx);
}

static void tell_destroyed(void *arg)
{
    fake_sandbox *sbx = arg;
    fake *f = sbx->be;
    for (fake_sandbox **at = &f->first; *at; at = &(*at)->next)
        if (*at == sbx) {
            *at = sbx->next;
            break;
        }
    stk_err err;
    stk_err_set(&err, STK_E_SANDBOX, "it clings");
    f->destroyed++;
    hang_up(&sbx->health);
    hang_up(&sbx->command);
    hang_up(&sbx->proxy);
    int *fds[] = {&sbx->base.link_health, &sbx->base.link_commands[0], &sbx->base.proxy_control,
                  &sbx->base.journal};
    for (size_t i = 0; i < STK_COUNT(fds); i++)
        if (*fds[i] >= 0)
            close(*fds[i]);
    stk_destroy_done done = sbx->destroyed;
    void *arg_ = sbx->destroy_arg;
    free(sbx);
    done(f->destroy_fails ? &err : NULL, arg_);
}

static void destroy(stk_sandbox *base, stk_destroy_done done, void *arg)
{
    fake_sandbox *sbx = STK_CONTAINER(base, fake_sandbox, base);
    assert_null(sbx->destroyed); /* once */
    sbx->destroyed = done;
    sbx->destroy_arg = arg;
    sbx->lost = NULL;
    note(sbx->be, "destroy");
    stk_loop_post(sbx->be->loop, tell_destroyed, sbx);
}

static int64_t oom_kills(stk_sandbox *base)
{
    return STK_CONTAINER(base, fake_sandbox, base)->be->oom;
}

static const stk_backend_ops ops = {
    .name = "oci", .create = create, .destroy = destroy, .oom_kills = oom_kills};

void fake_init(fake *f, stk_loop *loop, const char *spool)
{
    *f = (fake){.be = {&ops}, .loop = loop};
    snprintf(f->spool, sizeof(f->spool), "%s", spool);
}

void fake_lose(fake_sandbox *sbx, bool oom)
{
    if (sbx->lost)
        sbx->lost(&sbx->base, oom, "it ended by itself", sbx->arg);
}

void fake_proxy_says(fake_sandbox *sbx, const char *line)
{
    say(sbx->proxy, line);
}

void fake_command_says(fake_sandbox *sbx, const char *text)
{
    say(sbx->command, text);
}

size_t fake_alive(const fake *f)
{
    size_t n = 0;
    for (const fake_sandbox *sbx = f->first; sbx; sbx = sbx->next)
        n++;
    return n;
}
