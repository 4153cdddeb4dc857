/* Connections over time: half-closes, hang-ups, slow and stalled clients, running out, streams, the end. */
#include "fixture.h"

static void lingering_ends_after_a_second_of_talk(void **state)
{
    WITH(f, NULL);
    TEXT(in);
    int fd = fx_dial(&f);
    fx_send(&f, fd, STK_STR("POST /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n"));
    fx_expect_end(&f, fd, &in);
    stk_mono start = stk_mono_now();
    while (stk_http_server_connections(f.server) > 0) {
        fx_send(&f, fd, STK_STR("x"));
        fx_turn(&f);
        assert_true(stk_span_ms(stk_mono_sub(stk_mono_now(), start)) < 3000);
    }
    assert_true(stk_span_ms(stk_mono_sub(stk_mono_now(), start)) > 700);
    close(fd);
}

static void a_half_closed_client_gets_its_answer(void **state)
{
    for (int unix_socket = 0; unix_socket < 2; unix_socket++) {
        WITH(f, NULL);
        TEXT(in);
        int fd = unix_socket ? fx_pair(&f) : fx_dial(&f);
        fx_send(&f, fd, STK_STR("GET /hold HTTP/1.1\r\nHost: h\r\n\r\n"));
        shutdown(fd, SHUT_WR);
        fx_until(&f, f.held);
        fx_for(&f, stk_ms(250));
        assert_non_null(f.held);
        stk_http_answer(f.held, 200, "text/plain", "", STK_STR("late"));
        fx_expect(&f, fd, &in, "late");
        fx_expect_end(&f, fd, &in);
        assert_int_equal(f.gones, 0);
        close(fd);
    }
}

static void a_reset_client_is_gone_before_and_after_its_half_close(void **state)
{
    for (int half = 0; half < 2; half++) {
        WITH(f, NULL);
        int fd = fx_dial(&f);
        fx_send(&f, fd, STK_STR("GET /hold HTTP/1.1\r\nHost: h\r\n\r\n"));
        fx_until(&f, f.held);
        if (half) {
            shutdown(fd, SHUT_WR);
            fx_for(&f, stk_ms(20));
            assert_int_equal(f.dones, 0);
        }
        fx_reset(fd);
        fx_until(&f, f.dones == 1);
        assert_int_equal(f.gones, 1);
        assert_int_equal(stk_http_server_connections(f.server), 0);
    }
}

static void a_reset_client_is_noticed_while_its_body_waits(void **state)
{
    WITH(f, NULL);
    TEXT(out);
    f.stop_reading = true;
    int fd = fx_dial(&f);
    stk_buf_text(&out, "POST /collect HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n");
    memset(stk_buf_room(&out, 400000), 'x', 400000);
    out.n += 400000;
    fx_send(&f, fd, stk_buf_view(&out));
    fx_until(&f, f.held);
    fx_reset(fd);
    fx_until(&f, f.gones == 1);
}

static void a_closed_unix_client_is_gone(void **state)
{
    WITH(f, NULL);
    int fd = fx_pair(&f);
    fx_send(&f, fd, STK_STR("GET /hold HTTP/1.1\r\nHost: h\r\n\r\n"));
    fx_until(&f, f.held);
    close(fd);
    fx_until(&f, f.gones == 1);
    assert_int_equal(f.closes, 1);
}

static void a_client_that_vanishes_while_it_is_answered_is_gone(void **state)
{
    WITH(f, NULL);
    int fd = fx_dial(&f);
    fx_send(&f, fd, STK_STR("GET /stream?n=100000000 HTTP/1.1\r\nHost: h\r\n\r\n"));
    fx_until(&f, f.heads == 1);
    fx_for(&f, stk_ms(10));
    assert_true(f.stream_left > 0);
    fx_reset(fd);
    fx_until(&f, f.gones == 1);
}

static void a_slow_head_is_408_and_a_silent_client_is_dropped(void **state)
{
    stk_http_limits limits = {.head_time = stk_ms(60)};
    WITH(f, &limits);
    TEXT(in);
    TEXT(none);
    int slow = fx_dial(&f), silent = fx_dial(&f);
    stk_mono start = stk_mono_now();
    while (fx_recv(slow, &in, NULL)) {
        fx_send(&f, slow, STK_STR("G"));
        fx_for(&f, stk_ms(5));
        assert_true(stk_span_ms(stk_mono_sub(stk_mono_now(), start)) < 1500);
    }
    assert_int_equal(strncmp(in.p, "HTTP/1.1 408", 12), 0);
    assert_int_equal(fx_count(&in, "head_timeout"), 1);
    fx_expect_end(&f, silent, &none);
    assert_int_equal(none.n, 0);
    close(slow);
    close(silent);
}

static void an_idle_kept_connection_is_closed_and_a_link_may_wait_for_its_first_request(void **state)
{
    stk_http_limits limits = {.head_time = stk_ms(20), .idle_time = stk_ms(100)};
    WITH(f, &limits);
    TEXT(in);
    int link = fx_pair(&f);
    fx_for(&f, stk_ms(50));
    fx_send(&f, link, GET);
    fx_expect(&f, link, &in, "ok\n");
    stk_mono start = stk_mono_now();
    fx_expect_end(&f, link, &in);
    assert_in_range(stk_span_ms(stk_mono_sub(stk_mono_now(), start)), 70, 2000);
    assert_int_equal(f.gones, 0);
    close(link);
}

static void a_stalled_body_is_408(void **state)
{
    stk_http_limits limits = {.stall_time = stk_ms(50)};
    WITH(f, &limits);
    TEXT(in);
    int fd = fx_dial(&f);
    fx_send(&f, fd, STK_STR("POST /collect HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc"));
    fx_expect_end(&f, fd, &in);
    assert_int_equal(strncmp(in.p, "HTTP/1.1 408", 12), 0);
    close(fd);
}

static void a_reader_that_stalls_is_cut(void **state)
{
    stk_http_limits limits = {.stall_time = stk_ms(50)};
    WITH(f, &limits);
    int fd = fx_dial(&f);
    fx_send(&f, fd, STK_STR("GET /stream?n=100000000 HTTP/1.1\r\nHost: h\r\n\r\n"));
    fx_until(&f, f.gones == 1);
    assert_true(f.stream_left > 0);
    close(fd);
}

static void a_request_that_ends_early_is_400(void **state)
{
    static const stk_str parts[] = {
        STK_STR("GET / HT"), STK_STR("POST /collect HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc"),
        STK_STR("POST /collect HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello")};
    for (size_t i = 0; i < STK_COUNT(parts); i++) {
        WITH(f, NULL);
        TEXT(in);
        int fd = fx_dial(&f);
        fx_send(&f, fd, parts[i]);
        shutdown(fd, SHUT_WR);
        fx_expect_end(&f, fd, &in);
        assert_int_equal(strncmp(in.p, "HTTP/1.1 400", 12), 0);
        assert_int_equal(f.ends, 0);
        close(fd);
    }
}

static void without_descriptors_accepting_waits_instead_of_spinning(void **state)
{
    WITH(f, NULL);
    TEXT(in);
    int fd = fx_dial(&f);
    struct rlimit before, none;
    getrlimit(RLIMIT_NOFILE, &before);
    int lowest = dup(0);
    none = before;
    none.rlim_cur = (rlim_t)lowest;
    close(lowest);
    setrlimit(RLIMIT_NOFILE, &none);
    struct rusage a, b;
    getrusage(RUSAGE_SELF, &a);
    int turns = 0;
    for (stk_mono end = stk_mono_add(stk_mono_now(), stk_ms(250)); stk_mono_before(stk_mono_now(), end);
         turns++)
        fx_turn(&f);
    getrusage(RUSAGE_SELF, &b);
    assert_int_equal(stk_http_server_connections(f.server), 0);
    assert_true(turns < 400); /* each waits its millisecond: nothing was ready all the time */
    setrlimit(RLIMIT_NOFILE, &before);
    fx_send(&f, fd, GET);
    fx_expect(&f, fd, &in, "ok\n");
    close(fd);
}

static void beyond_the_most_connections_accepting_waits(void **state)
{
    stk_http_limits limits = {.connections = 2};
    WITH(f, &limits);
    TEXT(in);
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = fx_dial(&f);
        fx_send(&f, fds[i], GET);
    }
    fx_until(&f, f.heads == 2);
    fx_for(&f, stk_ms(20));
    assert_int_equal(f.heads, 2);
    close(fds[0]);
    fx_expect(&f, fds[2], &in, "ok\n");
    close(fds[1]);
    close(fds[2]);
}

static long resident(void)
{
    FILE *statm = fopen("/proc/self/statm", "r");
    long size, pages;
    assert_int_equal(fscanf(statm, "%ld %ld", &size, &pages), 2);
    fclose(statm);
    return pages * 4096;
}

static void megabytes_stream_both_ways_in_little_memory(void **state)
{
    enum { TOTAL = 64 << 20, CHUNK = 1 << 16 };
    WITH(f, NULL);
    f.most = UINT64_MAX;
    int fd = fx_dial(&f);
    static char block[CHUNK + 9], drain[1 << 18];
    size_t head = (size_t)snprintf(block, sizeof block, "%x\r\n", CHUNK), size = head + CHUNK + 2;
    block[size - 2] = '\r';
    block[size - 1] = '\n';
    fx_send(&f, fd, STK_STR("POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"));
    size_t sent = 0, got = 0, most = (size_t)(TOTAL / CHUNK) * size;
    long before = resident(), worst = before;
    bool ended = false;
    for (stk_mono end = stk_mono_add(stk_mono_now(), stk_sec(60));
         got < TOTAL && stk_mono_before(stk_mono_now(), end);) {
        ssize_t n = sent < most ? send(fd, block + sent % size, size - sent % size, MSG_NOSIGNAL) : 0;
        sent += n > 0 ? (size_t)n : 0;
        if (sent == most && !ended) {
            ended = true;
            fx_send(&f, fd, STK_STR("0\r\n\r\n"));
        }
        event_base_loop(f.base, EVLOOP_NONBLOCK);
        bool lazy = sent < most / 2 && (sent / size) % 3; /* a reader that lags */
        if (!lazy && (n = recv(fd, drain, sizeof drain, 0)) > 0)
            got += (size_t)n;
        long now = resident();
        worst = now > worst ? now : worst;
    }
    assert_true(got >= TOTAL);
    assert_int_equal(f.body_bytes, TOTAL);
    if (worst - before > 8 << 20)
        fail_msg("grew by %ld KiB", (worst - before) >> 10);
    close(fd);
}

static void draining_lets_a_running_exchange_end(void **state)
{
    WITH(f, NULL);
    TEXT(in);
    int busy = fx_dial(&f), idle = fx_dial(&f);
    fx_send(&f, idle, GET);
    fx_send(&f, busy, STK_STR("GET /hold HTTP/1.1\r\nHost: h\r\n\r\n"));
    fx_until(&f, f.held && f.dones == 1);
    stk_http_server_drain(f.server);
    fx_expect_end(&f, idle, &in);
    assert_int_equal(stk_http_server_connections(f.server), 1);
    stk_http_answer(f.held, 200, "text/plain", "", STK_STR("last"));
    fx_expect(&f, busy, &in, "last");
    fx_expect_end(&f, busy, &in);
    assert_int_equal(fx_count(&in, "Connection: close"), 1);
    close(busy);
    close(idle);
    fx_until(&f, stk_http_server_connections(f.server) == 0);
}

static void freeing_the_server_tells_every_running_exchange(void **state)
{
    WITH(f, NULL);
    int fd = fx_pair(&f);
    fx_send(&f, fd, STK_STR("GET /hold HTTP/1.1\r\nHost: h\r\n\r\n"));
    fx_until(&f, f.held);
    stk_http_server_free(STK_TAKE(f.server));
    assert_int_equal(f.gones, 1);
    assert_int_equal(f.closes, 1);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lingering_ends_after_a_second_of_talk),
        cmocka_unit_test(a_half_closed_client_gets_its_answer),
        cmocka_unit_test(a_reset_client_is_gone_before_and_after_its_half_close),
        cmocka_unit_test(a_reset_client_is_noticed_while_its_body_waits),
        cmocka_unit_test(a_closed_unix_client_is_gone),
        cmocka_unit_test(a_client_that_vanishes_while_it_is_answered_is_gone),
        cmocka_unit_test(a_slow_head_is_408_and_a_silent_client_is_dropped),
        cmocka_unit_test(an_idle_kept_connection_is_closed_and_a_link_may_wait_for_its_first_request),
        cmocka_unit_test(a_stalled_body_is_408),
        cmocka_unit_test(a_reader_that_stalls_is_cut),
        cmocka_unit_test(a_request_that_ends_early_is_400),
        cmocka_unit_test(without_descriptors_accepting_waits_instead_of_spinning),
        cmocka_unit_test(beyond_the_most_connections_accepting_waits),
        cmocka_unit_test(megabytes_stream_both_ways_in_little_memory),
        cmocka_unit_test(draining_lets_a_running_exchange_end),
        cmocka_unit_test(freeing_the_server_tells_every_running_exchange),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
