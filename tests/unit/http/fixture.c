#include "fixture.h"
#include "proto/base/fd.h"

static void stream_more(fx *f, stk_http_x *x)
{
    static char block[65536];
    while (f->stream_left) {
        size_t n = stk_min(f->stream_left, sizeof block);
        f->stream_left -= n;
        if (!stk_http_write(x, stk_str_n(block, n)))
            return;
    }
    stk_http_end(x);
}

static bool at(stk_http_x *x, const char *path)
{
    return stk_str_eq(stk_http_path(x), stk_str_of(path));
}

static void start_stream(fx *f, stk_http_x *x)
{
    stk_buf n STK_AUTO(stk_buf_done) = STK_BUF(32);
    uint64_t left = 0;
    assert_true(stk_query_get(stk_http_query(x), "n", &n) && stk_str_u64(stk_buf_view(&n), 1u << 30, &left));
    f->stream_left = left;
    stk_http_start(x, 200, "application/octet-stream", "", UINT64_MAX);
    stream_more(f, x);
}

static void on_head(stk_http_x *x, void *arg)
{
    fx *f = arg;
    f->heads++;
    if (at(x, "/refuse"))
        stk_http_answer(x, 403, "text/plain", "X-Why: no\r\n", STK_STR("refused"));
    else if (at(x, "/inject"))
        stk_http_answer(x, 200, "text/plain", "X: a\r\n\r\nevil", STK_STR("x"));
    else if (at(x, "/collect") || at(x, "/echo"))
        stk_http_accept_body(x, f->most);
    else if (at(x, "/stream"))
        start_stream(f, x);
    else if (at(x, "/204"))
        stk_http_answer(x, 204, NULL, "", STK_STR("ignored"));
    else if (at(x, "/short")) {
        stk_http_start(x, 200, "text/plain", "", 10);
        stk_http_write(x, STK_STR("abc"));
        stk_http_end(x);
    } else if (at(x, "/file")) {
        stk_http_start(x, 200, "text/plain", "", 3 + 100000 + 3);
        stk_http_write(x, STK_STR("<<<"));
        stk_http_write_file(x, f->file, 5, 100000);
        stk_http_write(x, STK_STR(">>>"));
        stk_http_end(x);
    } else if (at(x, "/pieces")) {
        stk_http_start(x, 200, "text/plain", "", UINT64_MAX);
        for (int i = 0; i < 5; i++)
            stk_http_write(x, STK_STR("ab"));
        stk_http_end(x);
    } else if (at(x, "/hold"))
        f->held = x;
    else
        stk_http_answer(x, 200, "text/plain", "", STK_STR("ok\n"));
    if (at(x, "/echo"))
        stk_http_start(x, 200, "application/octet-stream", "", UINT64_MAX);
}

static void on_body(stk_http_x *x, stk_str data, void *arg)
{
    fx *f = arg;
    f->bodies++;
    f->body_bytes += data.n;
    if (at(x, "/collect"))
        stk_buf_str(&f->collected, data);
    if (at(x, "/echo") && !stk_http_write(x, data))
        stk_http_pause(x);
    if (f->stop_reading) {
        f->held = x;
        stk_http_pause(x);
    }
}

static void on_end(stk_http_x *x, void *arg)
{
    fx *f = arg;
    f->ends++;
    if (at(x, "/echo"))
        stk_http_end(x);
    else if (at(x, "/collect")) {
        stk_http_answer(x, 200, "text/plain", "", stk_buf_view(&f->collected));
        stk_buf_reset(&f->collected);
    }
}

static void on_done(stk_http_x *x, bool gone, void *arg)
{
    fx *f = arg;
    f->dones++;
    f->gones += gone;
    if (f->held == x)
        f->held = NULL;
}

static void on_writable(stk_http_x *x, void *arg)
{
    fx *f = arg;
    f->writables++;
    if (at(x, "/stream"))
        stream_more(f, x);
    if (at(x, "/echo"))
        stk_http_resume(x);
}

static const stk_http_ops ops = {
    .on_head = on_head, .on_body = on_body, .on_end = on_end, .on_done = on_done, .on_writable = on_writable};

void fx_init(fx *f, const stk_http_limits *limits)
{
    stk_err err;
    int fd;
    char text[128];
    *f = (fx){.base = event_base_new(), .collected = STK_BUF(1u << 20), .file = -1};
    assert_int_equal(stk_http_server_new(f->base, limits, &ops, f, &f->server, &err), 0);
    assert_int_equal(stk_listen("127.0.0.1:0", 64, &fd, &err), 0);
    stk_listen_text(fd, text);
    f->port = (int)strtol(strrchr(text, ':') + 1, NULL, 10);
    assert_int_equal(stk_http_server_listen(f->server, fd, &err), 0);
}

void fx_done(fx *f)
{
    if (f->server)
        stk_http_server_free(f->server);
    assert_int_equal(f->dones, f->heads);
    event_base_free(f->base);
    stk_buf_done(&f->collected);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
}

void fx_turn(fx *f)
{
    struct timeval tv = {0, 1000};
    event_base_once(f->base, -1, EV_TIMEOUT, on_tick, NULL, &tv);
    event_base_loop(f->base, EVLOOP_ONCE);
}

void fx_for(fx *f, stk_span span)
{
    stk_mono end = stk_mono_add(stk_mono_now(), span);
    while (stk_mono_before(stk_mono_now(), end))
        fx_turn(f);
}

int fx_dial(fx *f)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)f->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void on_close(void *arg)
{
    ((fx *)arg)->closes++;
}

int fx_pair(fx *f)
{
    int fds[2];
    stk_err err;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
    assert_int_equal(stk_http_server_adopt(f->server, fds[1], on_close, f, &err), 0);
    return fds[0];
}

void fx_send(fx *f, int fd, stk_str data)
{
    while (data.n) {
        ssize_t n = send(fd, data.p, data.n, MSG_NOSIGNAL);
        if (n > 0)
            data = stk_str_n(data.p + n, data.n - (size_t)n);
        else if (errno == EAGAIN)
            fx_turn(f);
        else
            return;
    }
}

bool fx_recv(int fd, stk_buf *in, bool *reset)
{
    char block[65536];
    ssize_t n;
    while ((n = recv(fd, block, sizeof block, 0)) > 0)
        stk_buf_add(in, block, (size_t)n);
    if (reset)
        *reset = n < 0 && errno == ECONNRESET;
    return n < 0 && errno == EAGAIN;
}

size_t fx_count(const stk_buf *in, const char *what)
{
    size_t n = 0;
    for (const char *p = in->p; p && (p = strstr(p, what)); p++)
        n++;
    return n;
}

void fx_expect(fx *f, int fd, stk_buf *in, const char *what)
{
    stk_mono end = stk_mono_add(stk_mono_now(), stk_sec(5));
    while (fx_count(in, what) == 0) {
        bool more = fx_recv(fd, in, NULL);
        if (fx_count(in, what))
            return;
        if (!more || !stk_mono_before(stk_mono_now(), end))
            fail_msg("no '%s' in '%s'", what, in->p ? in->p : "");
        fx_turn(f);
    }
}

void fx_expect_end(fx *f, int fd, stk_buf *in)
{
    bool reset;
    fx_until(f, !fx_recv(fd, in, &reset));
    assert_false(reset);
}

void fx_reset(int fd)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fd);
}
