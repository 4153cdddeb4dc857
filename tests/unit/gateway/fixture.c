#include "tests/unit/gateway/fixture.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

static const stk_bus_topic topics[] = {{STK_TOPIC_REQUESTS, 4, false}, {STK_TOPIC_ASSIGNMENTS, 4, false},
                                       {STK_TOPIC_EVENTS, 4, false},   {STK_TOPIC_AUDIT, 4, false},
                                       {STK_TOPIC_CONFIG, 1, true},    {STK_TOPIC_DEAD, 1, false}};

#define REPLIES 200
static reply replies[REPLIES];
static size_t nreplies;

static void must(int rc, const stk_err *err)
{
    if (rc < 0)
        fail_msg("%s", err->detail);
}

static const char *file_of(fx *f, const char *name)
{
    snprintf(f->path, sizeof(f->path), "%s/%s", f->dir, name);
    return f->path;
}

fx *fx_new(bool tokens)
{
    fx *f = stk_xcalloc(1, sizeof(*f));
    stk_err err;
    snprintf(f->dir, sizeof(f->dir), "/tmp/stk-gateway-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    must(stk_loop_new(&f->loop, &err), &err);
    must(stk_keyring_create(file_of(f, "keys"), &err), &err);
    must(stk_keyring_load(file_of(f, "keys"), &f->ring, &err), &err);
    stk_bus_file_spec bus = {.path = file_of(f, "bus.db"), .topics = topics, .ntopics = STK_COUNT(topics)};
    must(stk_bus_file_open(&bus, &f->bus_file, &err), &err);
    must(stk_bus_sqlite_new(f->bus_file, f->loop, &f->bus, &err), &err);
    must(stk_state_file_open(file_of(f, "state.db"), &f->state_file, &err), &err);
    must(stk_state_sqlite_new(f->state_file, f->loop, &f->state, &err), &err);
    must(stk_store_file_open(file_of(f, "store.db"), NULL, &f->store_file, &err), &err);
    must(stk_store_sqlite_new(f->store_file, f->loop, &f->store, &err), &err);
    f->spec = (stk_gateway_spec){.loop = f->loop,
                                 .bus = f->bus,
                                 .state = f->state,
                                 .store = f->store,
                                 .ring = f->ring,
                                 .listen = "127.0.0.1:0",
                                 .auth_none = !tokens};
    if (tokens) {
        stk_token token;
        stk_token_make("default", STK_SCOPE_ALL, stk_wall_now(), (stk_wall){0}, "root", &token, f->token);
        must(stk_tokens_append(file_of(f, "tokens.json"), &token, &err), &err);
        f->spec.tokens_file = strdup(f->path);
    }
    return f;
}

void fx_start(fx *f)
{
    stk_err err = {0};
    must(stk_gateway_new(&f->spec, &f->gw, &err), &err);
    snprintf(f->address, sizeof(f->address), "%s", stk_gateway_address(f->gw));
    const char *colon = strrchr(f->address, ':');
    f->port = strncmp(f->address, "unix:", 5) == 0 ? 0 : (int)strtol(colon + 1, NULL, 10);
    fx_until(f, fx_call(f, "GET", "/readyz", "", NULL)->status == 200);
}

void fx_stop(fx *f)
{
    if (!f->gw)
        return;
    fx_until(f, stk_gateway_quiet(f->gw));
    stk_gateway_free(f->gw);
    f->gw = NULL;
}

static void reply_done(reply *r)
{
    stk_json_free(r->doc);
    stk_buf_done(&r->all);
    *r = (reply){0};
}

void fx_free(fx *f)
{
    fx_stop(f);
    fleet_stop(f);
    stk_store_close(f->store);
    stk_state_close(f->state);
    stk_bus_close(f->bus);
    event_base_loop(stk_loop_base(f->loop), EVLOOP_NONBLOCK);
    stk_store_file_close(f->store_file);
    stk_state_file_close(f->state_file);
    stk_bus_file_close(f->bus_file);
    stk_loop_free(f->loop);
    stk_keyring_free(f->ring);
    free((char *)(uintptr_t)f->spec.tokens_file);
    stk_err err;
    must(stk_rmtree(AT_FDCWD, f->dir, &err), &err);
    for (size_t i = 0; i < REPLIES; i++)
        reply_done(&replies[i]);
    free(f);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
}

void fx_turn(fx *f)
{
    struct timeval tv = {0, 2000};
    event_base_once(stk_loop_base(f->loop), -1, EV_TIMEOUT, on_tick, NULL, &tv);
    event_base_loop(stk_loop_base(f->loop), EVLOOP_ONCE);
}

int fx_dial(fx *f)
{
    int fd = -1;
    stk_err err;
    must(stk_dial(f->address, &fd, &err), &err);
    return fd;
}

void fx_send(fx *f, int fd, stk_str data)
{
    stk_mono end = stk_mono_add(stk_mono_now(), stk_sec(20));
    while (data.n) {
        ssize_t n = send(fd, data.p, data.n, MSG_NOSIGNAL);
        if (n > 0)
            data = stk_str_n(data.p + n, data.n - (size_t)n);
        else if (n < 0 && errno != EAGAIN && errno != ENOTCONN)
            return; /* the server said enough */
        fx_turn(f);
        assert_true(stk_mono_before(stk_mono_now(), end));
    }
}

bool fx_recv(int fd, stk_buf *in)
{
    char bytes[16384];
    for (;;) {
        ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
        if (n > 0)
            stk_buf_add(in, bytes, (size_t)n);
        else
            return n < 0 && (errno == EAGAIN || errno == ENOTCONN);
    }
}

/* Chunks are joined. */
static void unchunk(reply *r)
{
    size_t at = 0, to = 0;
    char *p = (char *)(uintptr_t)r->body.p;
    while (at < r->body.n) {
        size_t n = strtoul(p + at, NULL, 16);
        char *line = memchr(p + at, '\n', r->body.n - at);
        if (!line || !n)
            break;
        at = (size_t)(line + 1 - p);
        memmove(p + to, p + at, n);
        to += n;
        at += n + 2;
    }
    r->body.n = to;
}

static void take_apart(reply *r)
{
    const char *end = r->all.n ? memmem(r->all.p, r->all.n, "\r\n\r\n", 4) : NULL;
    if (!end)
        return;
    r->status = (int)strtol(r->all.p + 9, NULL, 10);
    r->head = stk_str_n(r->all.p, (size_t)(end - r->all.p) + 2);
    r->body = stk_str_n(end + 4, r->all.n - r->head.n - 2);
    if (reply_has_header(r, "Transfer-Encoding: chunked"))
        unchunk(r);
    if (r->body.n)
        (void)!stk_json_parse(r->body, NULL, &r->doc, NULL);
}

reply *fx_call(fx *f, const char *method, const char *target, const char *headers, const char *body)
{
    reply *r = &replies[nreplies++ % REPLIES];
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF((size_t)8 << 20);
    int fd STK_AUTO(stk_closep) = fx_dial(f);
    reply_done(r);
    stk_buf_init(&r->all, (size_t)64 << 20);
    stk_buf_fmt(&text, "%s %s HTTP/1.1\r\n%sConnection: close\r\n", method, target, headers);
    if (!strstr(headers, "Host:"))
        stk_buf_text(&text, "Host: localhost\r\n");
    if (f->token[0] && !strstr(headers, "Authorization:"))
        stk_buf_fmt(&text, "Authorization: Bearer %s\r\n", f->token);
    if (body)
        stk_buf_fmt(&text, "Content-Length: %zu\r\nContent-Type: application/x-www-form-urlencoded\r\n",
                    strlen(body));
    stk_buf_text(&text, "\r\n");
    if (body)
        stk_buf_text(&text, body);
    fx_send(f, fd, stk_buf_view(&text));
    fx_until(f, !fx_recv(fd, &r->all));
    take_apart(r);
    return r;
}

reply *fx_expect(fx *f, int status, const char *method, const char *target, const char *headers,
                 const char *body)
{
    reply *r = fx_call(f, method, target, headers, body);
    if (r->status != status)
        fail_msg("%s %s %s: %d instead of %d: %.*s", method, target, body ? body : "", r->status, status,
                 (int)r->body.n, r->body.p);
    if (status >= 400 && strcmp(method, "HEAD") != 0) {
        assert_true(reply_has_header(r, "Content-Type: application/problem+json"));
        assert_int_equal(reply_int(r, "status"), status);
    }
    return r;
}

stk_jv reply_at(const reply *r, const char *path)
{
    stk_jv v = r->doc ? stk_json_root(r->doc) : (stk_jv){0};
    while (*path) {
        char key[128];
        size_t n = strcspn(path, "/");
        snprintf(key, sizeof(key), "%.*s", (int)n, path);
        if (stk_jv_is(v, STK_J_ARRAY)) {
            long k = strtol(key, NULL, 10);
            for (v = stk_jv_first(v); k > 0 && !stk_jv_is(v, STK_J_NONE); k--)
                v = stk_jv_next(v);
        } else {
            v = stk_jv_get(v, key);
        }
        path += n + (path[n] == '/');
    }
    return v;
}

const char *reply_text(const reply *r, const char *path)
{
    static char texts[8][4096];
    static unsigned at;
    char *out = texts[at++ % 8];
    stk_str s = stk_jv_str(reply_at(r, path));
    snprintf(out, 4096, "%.*s", (int)s.n, s.n ? s.p : "");
    return out;
}

int64_t reply_int(const reply *r, const char *path)
{
    int64_t n = -1;
    return stk_jv_int(reply_at(r, path), &n) ? n : -1;
}

bool reply_has_header(const reply *r, const char *line)
{
    return r->head.n && memmem(r->head.p, r->head.n, line, strlen(line)) != NULL;
}

void fx_enable(fx *f)
{
    fx_expect(f, 200, "PUT", "/api/admin/platform/agent-sandbox", "",
              "{\"enabled\":true,\"agents\":{\"helper\":{\"allow\":[]}}}");
}

typedef struct counting {
    const char *action;
    int count;
    bool caught_up;
} counting;

static void on_audit(stk_consumer *consumer, const stk_bus_msg *msg, void *arg)
{
    counting *c = arg;
    stk_audit_row row;
    stk_err err;
    must(stk_audit_decode(msg->value, &row, &err), &err);
    c->count += strcmp(row.action, c->action) == 0;
    stk_audit_row_done(&row);
    stk_bus_finish(consumer, msg->partition, msg->offset);
}

static void on_audit_end(stk_consumer *consumer, void *arg)
{
    ((counting *)arg)->caught_up = true;
}

int fx_audit_count(fx *f, const char *action)
{
    static const stk_consumer_ops ops = {.on_message = on_audit, .on_caught_up = on_audit_end};
    const stk_consumer_spec spec = {.topic = STK_TOPIC_AUDIT};
    counting c = {.action = action};
    stk_consumer *consumer;
    stk_err err;
    must(stk_bus_subscribe(f->bus, &spec, &ops, &c, &consumer, &err), &err);
    fx_until(f, c.caught_up);
    stk_bus_unsubscribe(consumer);
    return c.count;
}
