/* Server-sent events. */
#include "tests/unit/gateway/suite.h"

typedef struct sse {
    int fd;
    stk_buf in;
    bool open;
} sse;

static void listen_to(fx *f, sse *s, const char *run, const char *headers)
{
    char text[512];
    snprintf(text, sizeof(text), "GET /v1/runs/%s/events HTTP/1.1\r\nHost: localhost\r\n%s\r\n", run,
             headers);
    *s = (sse){.fd = fx_dial(f), .in = STK_BUF((size_t)8 << 20), .open = true};
    fx_send(f, s->fd, stk_str_of(text));
}

static bool has(sse *s, const char *what)
{
    if (s->open)
        s->open = fx_recv(s->fd, &s->in);
    return s->in.n && memmem(s->in.p, s->in.n, what, strlen(what));
}

static bool ended(sse *s)
{
    return has(s, "\r\n0\r\n\r\n");
}

static void done(sse *s)
{
    close(s->fd);
    stk_buf_done(&s->in);
}

static const char *start(fx *f)
{
    fx_enable(f);
    f->fleet.stay_running = true;
    fx_expect(f, 202, "POST", RUN "?wait=1ms", "", BODY);
    fx_until(f, f->fleet.requests == 1 && !f->fleet.flying);
    return f->fleet.last_run;
}

static void output_comes_as_it_is_produced(void **state)
{
    fx *f = *state;
    sse s;
    listen_to(f, &s, start(f), "");
    fx_until(f, has(&s, "\"state\":\"running\""));
    assert_non_null(strstr(s.in.p, "text/event-stream"));
    fleet_output(f, 0, false, "first\n");
    fx_until(f, has(&s, "id: 6\nevent: output\ndata: {\"stream\":\"stdout\",\"data\":\"first\\n\"}\n\n"));
    fleet_output(f, 6, true, "oh");
    fx_until(f, has(&s, "id: 8\nevent: output\ndata: {\"stream\":\"stderr\",\"data\":\"oh\"}\n\n"));
    fleet_output(f, 8, false, "\xff\xfe");
    fx_until(f, has(&s, "id: 10\nevent: output\ndata: {\"stream\":\"stdout\",\"data_base64\":\"//4=\"}\n\n"));
    fleet_end(f);
    fx_until(f, has(&s, "\"host\":\"evil.example\""));
    fx_until(f, has(&s, "\"state\":\"finished\",\"reason\":\"exited\""));
    fx_until(f, ended(&s));
    done(&s);
}

static void a_client_goes_on_where_it_stopped(void **state)
{
    fx *f = *state;
    sse s;
    const char *run = start(f);
    fleet_output(f, 0, false, "abcdef");
    fleet_output(f, 6, false, "ghi");
    fx_until(f, !f->fleet.flying);
    listen_to(f, &s, run, "Last-Event-ID: 6\r\n");
    fx_until(f, has(&s, "id: 9\nevent: output\ndata: {\"stream\":\"stdout\",\"data\":\"ghi\"}"));
    assert_null(strstr(s.in.p, "abc"));
    done(&s);
    listen_to(f, &s, run, "Last-Event-ID: 4\r\n");
    fx_until(f, has(&s, "id: 9\n"));
    assert_non_null(strstr(s.in.p, "id: 6\nevent: output\ndata: {\"stream\":\"stdout\",\"data\":\"ef\"}"));
    done(&s);
    listen_to(f, &s, run, "Last-Event-ID: x\r\n");
    fx_until(f, has(&s, "HTTP/1.1 422 "));
    done(&s);
    fleet_end(f);
}

static void a_finished_run_still_tells_its_story(void **state)
{
    fx *f = *state;
    sse s;
    fx_enable(f);
    f->fleet.out = "was here\n";
    f->fleet.exit_code = 4;
    reply *r = fx_expect(f, 200, "POST", RUN, "", BODY);
    listen_to(f, &s, reply_text(r, "run_id"), "");
    fx_until(f, ended(&s));
    assert_non_null(strstr(s.in.p, "\"data\":\"was here\\n\""));
    assert_non_null(strstr(s.in.p, "\"exit_code\":4"));
    assert_non_null(strstr(s.in.p, "event: egress\n"));
    done(&s);
}

static void a_slow_reader_gets_everything_in_order(void **state)
{
    enum { PIECES = 7, SIZE = 30000 };
    fx *f = *state;
    sse s;
    char *text STK_AUTO(stk_freep) = stk_xcalloc(1, SIZE + 1);
    const char *run = start(f);
    listen_to(f, &s, run, "");
    for (int i = 0; i < PIECES; i++) {
        memset(text, 'a' + i, SIZE);
        fleet_output(f, (int64_t)i * SIZE, false, text);
    }
    fx_until(f, !f->fleet.flying);
    fleet_end(f);
    for (int i = 0; i < 50; i++)
        fx_turn(f);
    fx_until(f, ended(&s));
    const char *at = s.in.p;
    for (int i = 0; i < PIECES; i++) {
        char id[32];
        snprintf(id, sizeof(id), "id: %d\n", (i + 1) * SIZE);
        at = strstr(at, id);
        assert_non_null(at);
    }
    done(&s);
}

static void a_reader_that_hangs_up_frees_its_stream(void **state)
{
    fx *f = *state;
    sse s;
    listen_to(f, &s, start(f), "");
    fx_until(f, has(&s, "\"state\":\"running\""));
    struct linger now = {1, 0};
    setsockopt(s.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    done(&s);
    fx_until(f, strstr(fx_call(f, "GET", "/metrics", "", NULL)->all.p, "stockade_gateway_open_requests 1\n"));
    fleet_end(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(output_comes_as_it_is_produced),          T(a_client_goes_on_where_it_stopped),
        T(a_finished_run_still_tells_its_story),    T(a_slow_reader_gets_everything_in_order),
        T(a_reader_that_hangs_up_frees_its_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
