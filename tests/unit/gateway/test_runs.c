/* Runs through the API, from the request to the answer. */
#include "tests/unit/gateway/suite.h"

static void nothing_runs_while_the_feature_is_off(void **state)
{
    fx *f = *state;
    reply *r = fx_expect(f, 409, "POST", RUN, "", BODY);
    assert_string_equal(reply_text(r, "code"), "not_sandboxed");
    assert_non_null(strstr(reply_text(r, "detail"), "nothing changed"));
    assert_non_null(strstr(reply_text(r, "detail"), "PUT " CFG));
    fx_enable(f);
    r = fx_expect(f, 409, "POST", RUN, "", "{\"agent\":\"other\",\"command\":[\"true\"]}");
    assert_string_equal(reply_text(r, "code"), "not_sandboxed");
    fx_expect(f, 202, "POST", "/v1/runs", "", BODY);
    fx_until(f, f->fleet.requests);
    assert_int_equal(f->fleet.requests, 1);
}

static void a_run_is_waited_for_and_answered_with_its_output(void **state)
{
    fx *f = *state;
    f->fleet.out = "hello\n";
    f->fleet.err = "warn\n";
    f->fleet.exit_code = 3;
    fx_enable(f);
    reply *r = fx_expect(f, 200, "POST", RUN, "",
                         "{\"agent\":\"helper\",\"command\":\"echo 'a b'\",\"env\":{\"KEY\":\"v\"}}");
    assert_string_equal(reply_text(r, "reason"), "exited");
    assert_int_equal(reply_int(r, "exit_code"), 3);
    assert_string_equal(reply_text(r, "stdout_tail"), "hello\n");
    assert_string_equal(reply_text(r, "stderr_tail"), "warn\n");
    assert_string_equal(reply_text(r, "egress/0/host"), "evil.example");
    assert_string_equal(reply_text(r, "run_id"), f->fleet.last_run);
    assert_int_equal(f->fleet.secret.command.n, 2);
    assert_string_equal(f->fleet.secret.command.v[1].p, "a b");
    assert_string_equal(f->fleet.last.actor, "local");
    assert_string_equal(f->fleet.last.backend, "auto");
    assert_int_equal(f->fleet.last.config_version, 1);
}

static void a_run_that_takes_longer_is_accepted_and_found_later(void **state)
{
    fx *f = *state;
    f->fleet.stay_running = true;
    f->fleet.out = "late";
    fx_enable(f);
    reply *r = fx_expect(f, 202, "POST", RUN "?wait=100ms", "", BODY);
    char path[96], header[128];
    snprintf(path, sizeof(path), "/v1/runs/%s", reply_text(r, "id"));
    snprintf(header, sizeof(header), "Location: %s\r\n", path);
    assert_true(reply_has_header(r, header));
    fx_until(f, strcmp(reply_text(fx_expect(f, 200, "GET", path, "", NULL), "state"), "running") == 0);
    assert_true(stk_jv_is(reply_at(fx_expect(f, 200, "GET", path, "", NULL), "result"), STK_J_NONE));
    fleet_end(f);
    fx_until(f, strcmp(reply_text(fx_expect(f, 200, "GET", path, "", NULL), "state"), "finished") == 0);
    r = fx_expect(f, 200, "GET", path, "", NULL);
    assert_string_equal(reply_text(r, "reason"), "exited");
    assert_string_equal(reply_text(r, "result/stdout_tail"), "late");
}

static void submitting_does_not_wait_unless_asked(void **state)
{
    fx *f = *state;
    fx_enable(f);
    f->fleet.hold = true;
    reply *r = fx_expect(f, 202, "POST", "/v1/runs", "", BODY);
    assert_true(stk_id_valid("run", stk_jv_str(reply_at(r, "id"))));
    assert_string_equal(reply_text(r, "state"), "submitted");
    assert_int_equal(stk_jv_count(reply_at(r, "")), 2);
    f->fleet.hold = false;
    r = fx_expect(f, 200, "POST", "/v1/runs?wait=30s", "", BODY);
    assert_string_equal(reply_text(r, "reason"), "exited");
}

static void a_get_right_after_the_202_knows_the_run(void **state)
{
    fx *f = *state;
    fx_enable(f);
    f->fleet.hold = true;
    for (int i = 0; i < 20; i++) {
        char path[96];
        snprintf(path, sizeof(path), "/v1/runs/%s",
                 reply_text(fx_expect(f, 202, "POST", "/v1/runs", "", BODY), "id"));
        assert_string_equal(reply_text(fx_expect(f, 200, "GET", path, "", NULL), "state"), "submitted");
    }
}

static void output_too_large_for_state_comes_from_the_store(void **state)
{
    fx *f = *state;
    f->fleet.out = "from the store";
    f->fleet.cut_result = true;
    fx_enable(f);
    reply *r = fx_expect(f, 200, "POST", RUN, "", BODY);
    assert_string_equal(reply_text(r, "stdout_tail"), "from the store");
    char path[96];
    snprintf(path, sizeof(path), "/v1/runs/%s", reply_text(r, "run_id"));
    assert_string_equal(reply_text(fx_expect(f, 200, "GET", path, "", NULL), "result/stdout_tail"),
                        "from the store");
}

static void a_lacking_backend_is_told_and_nothing_weaker_runs(void **state)
{
    fx *f = *state;
    f->fleet.refuse = "backend_unavailable: firecracker: /dev/kvm is missing";
    fx_enable(f);
    reply *r = fx_expect(f, 422, "POST", RUN, "",
                         "{\"agent\":\"helper\",\"command\":[\"true\"],\"backend\":\"firecracker\"}");
    assert_string_equal(reply_text(r, "code"), "backend_unavailable");
    assert_string_equal(reply_text(r, "detail"), "firecracker: /dev/kvm is missing");
    assert_string_equal(reply_text(r, "run_id"), f->fleet.last_run);
    assert_string_equal(f->fleet.last.backend, "firecracker");
    f->fleet.refuse = "command_invalid: no such directory";
    r = fx_expect(f, 200, "POST", RUN, "", BODY);
    assert_string_equal(reply_text(r, "reason"), "refused");
    assert_string_equal(reply_text(r, "detail"), "command_invalid: no such directory");
}

static void a_request_does_not_get_round_the_configured_backend(void **state)
{
    fx *f = *state;
    fx_expect(f, 200, "PUT", CFG, "",
              "{\"enabled\":true,\"backend\":\"firecracker\",\"agents\":{\"helper\":{},\"two\":{\"backend\":"
              "\"docker\"}}}");
    reply *r = fx_expect(f, 422, "POST", RUN, "",
                         "{\"agent\":\"helper\",\"command\":[\"true\"],\"backend\":\"oci\"}");
    assert_string_equal(reply_text(r, "pointer"), "/backend");
    fx_expect(f, 422, "POST", RUN, "", "{\"agent\":\"two\",\"command\":[\"true\"],\"backend\":\"oci\"}");
    fx_expect(f, 200, "POST", RUN, "", "{\"agent\":\"two\",\"command\":[\"true\"],\"backend\":\"auto\"}");
    assert_string_equal(f->fleet.last.backend, "docker");
    fx_expect(f, 200, "POST", RUN, "", BODY);
    assert_string_equal(f->fleet.last.backend, "firecracker");
}

static void the_time_limit_is_the_agents(void **state)
{
    fx *f = *state;
    fx_expect(f, 200, "PUT", CFG, "",
              "{\"enabled\":true,\"agents\":{\"helper\":{\"limits\":{\"timeout_seconds\":5}}}}");
    reply *r = fx_expect(f, 422, "POST", RUN, "",
                         "{\"agent\":\"helper\",\"command\":[\"true\"],\"timeout_seconds\":6}");
    assert_string_equal(reply_text(r, "pointer"), "/timeout_seconds");
    fx_expect(f, 200, "POST", RUN, "",
              "{\"agent\":\"helper\",\"command\":[\"true\"],\"timeout_seconds\":0.25}");
    assert_int_equal(f->fleet.last.timeout.ns, 250000000);
    fx_expect(f, 200, "POST", RUN, "", BODY);
    assert_int_equal(f->fleet.last.timeout.ns, 5000000000);
}

static void one_key_and_one_body_meet_one_run(void **state)
{
    fx *f = *state;
    fx_enable(f);
    f->fleet.hold = true;
    reply *a = fx_expect(f, 202, "POST", "/v1/runs", "Idempotency-Key: k1\r\n", BODY);
    reply *b = fx_expect(f, 202, "POST", "/v1/runs", "Idempotency-Key: k1\r\n", BODY);
    reply *c = fx_expect(f, 202, "POST", "/v1/runs", "Idempotency-Key: k2\r\n", BODY);
    assert_string_equal(reply_text(a, "id"), reply_text(b, "id"));
    assert_string_not_equal(reply_text(a, "id"), reply_text(c, "id"));
    reply *r = fx_expect(f, 422, "POST", "/v1/runs", "Idempotency-Key: k1\r\n",
                         "{\"agent\":\"helper\",\"command\":[\"false\"]}");
    assert_string_equal(reply_text(r, "code"), "idempotency_mismatch");
    fx_expect(f, 422, "POST", "/v1/runs", "Idempotency-Key: a b\r\n", BODY);
    fx_expect(f, 422, "POST", "/v1/runs", "Idempotency-Key:\r\n", BODY);
}

static void a_repeat_after_the_end_is_answered_with_the_same_result(void **state)
{
    fx *f = *state;
    f->fleet.out = "once";
    fx_enable(f);
    reply *a = fx_expect(f, 200, "POST", RUN, "Idempotency-Key: k\r\n", BODY);
    reply *b = fx_expect(f, 200, "POST", RUN, "Idempotency-Key: k\r\n", BODY);
    assert_string_equal(reply_text(a, "run_id"), reply_text(b, "run_id"));
    assert_string_equal(reply_text(b, "stdout_tail"), "once");
    assert_int_equal(f->fleet.requests, 1);
}

static void a_refused_publish_starts_nothing_and_can_be_repeated(void **state)
{
    fx *f = *state;
    fx_enable(f);
    stk_bus_file_refuse(f->bus_file, true);
    reply *r = fx_expect(f, 503, "POST", RUN, "Idempotency-Key: k\r\n", BODY);
    assert_string_equal(reply_text(r, "code"), "unavailable");
    assert_true(reply_has_header(r, "Retry-After: "));
    assert_int_equal(f->fleet.requests, 0);
    stk_bus_file_refuse(f->bus_file, false);
    fx_expect(f, 200, "POST", RUN, "Idempotency-Key: k\r\n", BODY);
    assert_int_equal(f->fleet.requests, 1);
}

static void too_many_unfinished_runs_are_told_to_come_back(void **state)
{
    fx *f = *state;
    fx_stop(f);
    f->spec.queued_cap = 2;
    fx_start(f);
    fx_enable(f);
    f->fleet.hold = true;
    fx_expect(f, 202, "POST", "/v1/runs", "", BODY);
    fx_expect(f, 202, "POST", "/v1/runs", "", BODY);
    reply *r = fx_expect(f, 429, "POST", "/v1/runs", "", BODY);
    assert_string_equal(reply_text(r, "code"), "too_many");
    assert_true(reply_has_header(r, "Retry-After: 1\r\n"));
}

static void a_cancel_before_the_start_ends_the_run_at_once(void **state)
{
    fx *f = *state;
    char path[96], cancel[112];
    fx_enable(f);
    f->fleet.hold = true;
    snprintf(path, sizeof(path), "/v1/runs/%s",
             reply_text(fx_expect(f, 202, "POST", "/v1/runs", "", BODY), "id"));
    snprintf(cancel, sizeof(cancel), "%s/cancel", path);
    reply *r = fx_expect(f, 200, "POST", cancel, "", NULL);
    assert_string_equal(reply_text(r, "state"), "finished");
    assert_string_equal(reply_text(r, "reason"), "cancelled");
    fx_expect(f, 200, "POST", cancel, "", "{}");
    r = fx_expect(f, 200, "GET", path, "", NULL);
    assert_string_equal(reply_text(r, "reason"), "cancelled");
    assert_string_equal(reply_text(r, "result/reason"), "cancelled");
}

static void a_cancel_of_a_running_run_is_asked_for(void **state)
{
    fx *f = *state;
    char path[112];
    fx_enable(f);
    f->fleet.stay_running = true;
    reply *r = fx_expect(f, 202, "POST", RUN "?wait=200ms", "", BODY);
    snprintf(path, sizeof(path), "/v1/runs/%s/cancel", reply_text(r, "id"));
    r = fx_expect(f, 202, "POST", path, "", NULL);
    assert_true(stk_jv_bool(reply_at(r, "cancel_asked")));
    fleet_end(f);
    path[strlen(path) - 7] = '\0';
    fx_until(f, strcmp(reply_text(fx_expect(f, 200, "GET", path, "", NULL), "state"), "finished") == 0);
    path[strlen(path)] = '/';
    assert_string_equal(reply_text(fx_expect(f, 409, "POST", path, "", NULL), "code"), "conflict");
}

static void a_client_that_hangs_up_frees_its_waiter_and_the_run_goes_on(void **state)
{
    fx *f = *state;
    char text[512];
    fx_enable(f);
    f->fleet.stay_running = true;
    int fd = fx_dial(f);
    snprintf(text, sizeof(text),
             "POST " RUN " HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n" BODY, strlen(BODY));
    fx_send(f, fd, stk_str_of(text));
    fx_until(f, f->fleet.requests == 1);
    struct linger now = {1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(fd);
    fx_until(f, strstr(fx_call(f, "GET", "/metrics", "", NULL)->all.p, "stockade_gateway_open_requests 1\n"));
    fleet_end(f);
    char path[96];
    snprintf(path, sizeof(path), "/v1/runs/%s", f->fleet.last_run);
    fx_until(f, strcmp(reply_text(fx_expect(f, 200, "GET", path, "", NULL), "reason"), "exited") == 0);
}

static void a_plan_travels_the_bus_and_works_while_the_feature_is_off(void **state)
{
    fx *f = *state;
    f->fleet.plan = "{\"backend\":\"oci\",\"objects\":{\"config\":{}}}";
    reply *r =
        fx_expect(f, 200, "POST", PLAN, "", "{\"agent\": \"helper\", \"command\": [\"python\", \"job.py\"]}");
    assert_string_equal(reply_text(r, "backend"), "oci");
    assert_int_equal(f->fleet.plans, 1);
    assert_int_equal(f->fleet.requests, 0);
    f->fleet.plan = "{\"error\":\"image: no such file\"}";
    r = fx_expect(f, 502, "POST", PLAN, "", BODY);
    assert_non_null(strstr(reply_text(r, "detail"), "image: no such file"));
    assert_string_equal(reply_text(fx_expect(f, 422, "POST", PLAN, "",
                                             "{\"agent\":\"helper\",\"command\":[\"x\"],\"cwd\":\"/\"}"),
                                   "pointer"),
                        "/cwd");
}

static void a_plan_nobody_answers_times_out(void **state)
{
    fx *f = *state;
    fx_stop(f);
    f->spec.wait_most = stk_ms(200);
    fx_start(f);
    reply *r = fx_expect(f, 504, "POST", PLAN, "", BODY);
    assert_string_equal(reply_text(r, "code"), "timeout");
}

static void on_appended(const stk_err *err, int64_t offset, size_t stored, size_t bad, void *arg)
{
    assert_null(err);
    *(bool *)arg = true;
}

/* A run that ended long ago under that key: only the store has it. */
static void store_old_run(fx *f, int64_t n, const char *key, char run[STK_ID_SIZE])
{
    const stk_str parts[] = {STK_STR("default"), stk_str_of(key)};
    uint8_t hash[STK_SHA256];
    bool done = false;
    stk_err err;
    stk_event ev = {.v = STK_MESSAGE_VERSION,
                    .kind = "finished",
                    .tenant = "default",
                    .agent = "helper",
                    .reason = "exited",
                    .exit_code = 9,
                    .submitted = {1},
                    .finished = {2},
                    .stdout_bytes = 4};
    stk_result_secret secret = {0};
    stk_store_batch batch = {.topic = STK_TOPIC_EVENTS, .from = n, .to = n + 1, .events = &ev, .nevents = 1};
    stk_sha256_parts(parts, 2, hash);
    stk_id_from("run", hash, ev.run);
    memcpy(run, ev.run, STK_ID_SIZE);
    stk_bytes_set(&secret.stdout_data, STK_STR("old\n"));
    assert_int_equal(stk_event_seal(&ev, &secret, f->ring, &err), 0);
    stk_store_append(f->store, &batch, on_appended, &done);
    fx_until(f, done);
    stk_event_done(&ev);
    stk_result_secret_done(&secret);
}

static void a_key_that_only_the_store_remembers_starts_nothing(void **state)
{
    fx *f = *state;
    char run[STK_ID_SIZE], path[96];
    fx_enable(f);
    store_old_run(f, 0, "k", run);
    reply *r = fx_expect(f, 200, "POST", RUN, "Idempotency-Key: k\r\n", BODY);
    assert_string_equal(reply_text(r, "run_id"), run);
    assert_int_equal(reply_int(r, "exit_code"), 9);
    assert_string_equal(reply_text(r, "stdout_tail"), "old\n");
    assert_int_equal(f->fleet.requests, 0);
    store_old_run(f, 1, "other", run);
    snprintf(path, sizeof(path), "/v1/runs/%s", run);
    r = fx_expect(f, 200, "GET", path, "", NULL);
    assert_string_equal(reply_text(r, "state"), "finished");
    assert_string_equal(reply_text(r, "result/stdout_tail"), "old\n");
    snprintf(path, sizeof(path), "/v1/runs/%s/cancel", run);
    fx_expect(f, 409, "POST", path, "", NULL);
}

static void a_trace_goes_with_the_request(void **state)
{
    fx *f = *state;
    static const char id[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    char header[96];
    fx_enable(f);
    snprintf(header, sizeof(header), "traceparent: %s\r\n", id);
    fx_expect(f, 200, "POST", RUN, header, BODY);
    assert_string_equal(f->fleet.last.traceparent, id);
    fx_expect(f, 200, "POST", RUN, "traceparent: 00-00000000000000000000000000000000-b7ad6b7169203331-01\r\n",
              BODY);
    assert_string_equal(f->fleet.last.traceparent, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(nothing_runs_while_the_feature_is_off),
        T(a_run_is_waited_for_and_answered_with_its_output),
        T(a_run_that_takes_longer_is_accepted_and_found_later),
        T(submitting_does_not_wait_unless_asked),
        T(a_get_right_after_the_202_knows_the_run),
        T(output_too_large_for_state_comes_from_the_store),
        T(a_lacking_backend_is_told_and_nothing_weaker_runs),
        T(a_request_does_not_get_round_the_configured_backend),
        T(the_time_limit_is_the_agents),
        T(one_key_and_one_body_meet_one_run),
        T(a_repeat_after_the_end_is_answered_with_the_same_result),
        T(a_refused_publish_starts_nothing_and_can_be_repeated),
        T(too_many_unfinished_runs_are_told_to_come_back),
        T(a_cancel_before_the_start_ends_the_run_at_once),
        T(a_cancel_of_a_running_run_is_asked_for),
        T(a_client_that_hangs_up_frees_its_waiter_and_the_run_goes_on),
        T(a_plan_travels_the_bus_and_works_while_the_feature_is_off),
        T(a_plan_nobody_answers_times_out),
        T(a_key_that_only_the_store_remembers_starts_nothing),
        T(a_trace_goes_with_the_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
