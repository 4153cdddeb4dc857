/* Starting and ending. */
#include "tests/unit/gateway/suite.h"
#include <sys/stat.h>

static int fresh(void **state)
{
    *state = fx_new(false);
    return 0;
}

static int refused(fx *f, const char *word)
{
    stk_err err = {0};
    int rc = stk_gateway_new(&f->spec, &f->gw, &err);
    if (rc == 0 || !strstr(err.detail, word))
        fail_msg("%d: %s", rc, err.detail);
    f->gw = NULL;
    return rc;
}

static void no_token_means_no_start(void **state)
{
    fx *f = *state;
    f->spec.auth_none = false;
    assert_int_equal(refused(f, "no token is configured"), -STK_E_CONFIG);
    f->spec.auth_none = true;
    f->spec.listen = "0.0.0.0:0";
    assert_int_equal(refused(f, "only allowed on loopback"), -STK_E_CONFIG);
    f->spec.listen = "nowhere";
    refused(f, "nowhere");
}

static void a_refused_start_leaves_nothing_behind(void **state)
{
    fx *f = *state;
    fx_start(f);
    fx_enable(f);
    fx_expect(f, 200, "PUT", ORG, "", "{}");
    fx_stop(f);
    f->spec.auth_none = false;
    assert_int_equal(refused(f, "no token is configured"), -STK_E_CONFIG);
}

static void an_address_in_use_is_named(void **state)
{
    fx *f = *state;
    stk_gateway *first;
    fx_start(f);
    first = f->gw;
    f->spec.listen = f->address;
    assert_int_equal(refused(f, f->address), -STK_E_CONFLICT);
    f->gw = first;
}

static void a_unix_socket_serves_as_well(void **state)
{
    fx *f = *state;
    char path[128];
    snprintf(path, sizeof(path), "unix:%s/api.sock", f->dir);
    f->spec.listen = path;
    fx_start(f);
    assert_string_equal(f->address, path);
    fx_expect(f, 200, "GET", "/v1/runs", "Host: anything\r\n", NULL);
    fx_expect(f, 403, "GET", "/v1/runs", "Origin: http://x\r\n", NULL);
}

static void who_waits_is_answered_before_the_end(void **state)
{
    fx *f = *state;
    char text[512];
    stk_buf run STK_AUTO(stk_buf_done) = STK_BUF(65536);
    stk_buf events STK_AUTO(stk_buf_done) = STK_BUF(65536);
    fx_start(f);
    fleet_start(f);
    fx_enable(f);
    f->fleet.stay_running = true;
    int a STK_AUTO(stk_closep) = fx_dial(f), b STK_AUTO(stk_closep) = fx_dial(f);
    snprintf(text, sizeof(text),
             "POST " RUN " HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n" BODY, strlen(BODY));
    fx_send(f, a, stk_str_of(text));
    fx_until(f, f->fleet.requests == 1 && !f->fleet.flying);
    snprintf(text, sizeof(text), "GET /v1/runs/%s/events HTTP/1.1\r\nHost: localhost\r\n\r\n",
             f->fleet.last_run);
    fx_send(f, b, stk_str_of(text));
    fx_until(f, (fx_recv(b, &events), events.n && strstr(events.p, "running")));
    fx_stop(f);
    fx_until(f, !fx_recv(a, &run));
    fx_until(f, !fx_recv(b, &events));
    assert_non_null(strstr(run.p, "HTTP/1.1 202 "));
    assert_non_null(strstr(run.p, "\"state\":\"running\""));
    assert_non_null(strstr(events.p, "\r\n0\r\n\r\n"));
    fleet_end(f);
}

static void another_gateway_answers_for_the_same_run(void **state)
{
    fx *f = *state;
    char path[96];
    fx_start(f);
    fleet_start(f);
    fx_enable(f);
    f->fleet.stay_running = true;
    f->fleet.out = "kept";
    fx_expect(f, 202, "POST", RUN "?wait=1ms", "Idempotency-Key: k\r\n", BODY);
    fx_until(f, f->fleet.requests == 1 && !f->fleet.flying);
    fx_stop(f);
    fx_start(f);
    fleet_end(f);
    reply *r = fx_expect(f, 200, "POST", RUN, "Idempotency-Key: k\r\n", BODY);
    assert_string_equal(reply_text(r, "stdout_tail"), "kept");
    snprintf(path, sizeof(path), "/v1/runs/%s", f->fleet.last_run);
    fx_expect(f, 200, "GET", path, "", NULL);
    assert_int_equal(f->fleet.requests, 1);
}

static void being_cut_off_with_clients_inside_leaks_nothing(void **state)
{
    fx *f = *state;
    char text[512];
    fx_start(f);
    fleet_start(f);
    fx_enable(f);
    f->fleet.stay_running = true;
    int fds[3];
    for (int i = 0; i < 3; i++) {
        fds[i] = fx_dial(f);
        snprintf(text, sizeof(text),
                 "POST " RUN " HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n" BODY,
                 strlen(BODY));
        fx_send(f, fds[i], stk_str_of(text));
    }
    fx_until(f, f->fleet.requests == 3 && !f->fleet.flying);
    stk_gateway_free(f->gw);
    f->gw = NULL;
    for (int i = 0; i < 20; i++)
        fx_turn(f); /* what is still under way comes back to nobody */
    for (int i = 0; i < 3; i++)
        close(fds[i]);
}

int main(void)
{
#define L(name) cmocka_unit_test_setup_teardown(name, fresh, teardown)
    const struct CMUnitTest tests[] = {
        L(no_token_means_no_start),
        L(a_refused_start_leaves_nothing_behind),
        L(an_address_in_use_is_named),
        L(a_unix_socket_serves_as_well),
        L(who_waits_is_answered_before_the_end),
        L(another_gateway_answers_for_the_same_run),
        L(being_cut_off_with_clients_inside_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
