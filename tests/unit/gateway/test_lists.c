/* Lists, health, metrics and the pages. */
#include "tests/unit/gateway/suite.h"

static void runs_are_listed_newest_first_page_by_page(void **state)
{
    enum { N = 7 };
    fx *f = *state;
    char ids[N][STK_ID_SIZE], target[128];
    fx_enable(f);
    for (int i = 0; i < N; i++)
        snprintf(ids[i], STK_ID_SIZE, "%s", reply_text(fx_expect(f, 200, "POST", RUN, "", BODY), "run_id"));
    int left = N;
    snprintf(target, sizeof(target), "/v1/runs?limit=3");
    while (left) {
        reply *r = fx_expect(f, 200, "GET", target, "", NULL);
        size_t n = stk_jv_count(reply_at(r, "runs"));
        assert_int_equal(n, left < 3 ? left : 3);
        for (size_t i = 0; i < n; i++) {
            char path[32];
            snprintf(path, sizeof(path), "runs/%zu/id", i);
            assert_string_equal(reply_text(r, path), ids[--left]);
        }
        assert_int_equal(stk_jv_is(reply_at(r, "next"), STK_J_NULL), left == 0);
        snprintf(target, sizeof(target), "/v1/runs?limit=3&cursor=%s", reply_text(r, "next"));
    }
}

static size_t count(fx *f, const char *target)
{
    return stk_jv_count(reply_at(fx_expect(f, 200, "GET", target, "", NULL), "runs"));
}

static void runs_are_filtered_by_agent_state_and_label(void **state)
{
    fx *f = *state;
    fx_expect(f, 200, "PUT", CFG, "", "{\"enabled\":true,\"agents\":{\"helper\":{},\"other\":{}}}");
    fx_expect(f, 200, "POST", RUN, "",
              "{\"agent\":\"helper\",\"command\":[\"x\"],\"labels\":{\"team\":\"core\"}}");
    fx_expect(f, 200, "POST", RUN, "",
              "{\"agent\":\"other\",\"command\":[\"x\"],\"labels\":{\"team\":\"a=b\"}}");
    f->fleet.hold = true;
    fx_expect(f, 202, "POST", "/v1/runs", "", BODY);
    f->fleet.hold = false;
    f->fleet.plan = "{}";
    fx_expect(f, 200, "POST", PLAN, "", BODY);
    assert_int_equal(count(f, "/v1/runs"), 3); /* a plan is no run */
    assert_int_equal(count(f, "/v1/runs?agent=helper"), 2);
    assert_int_equal(count(f, "/v1/runs?state=finished"), 2);
    assert_int_equal(count(f, "/v1/runs?state=finished&agent=helper"), 1);
    assert_int_equal(count(f, "/v1/runs?label=team=core"), 1);
    assert_int_equal(count(f, "/v1/runs?label=team%3Da%3Db"), 1);
    assert_int_equal(count(f, "/v1/runs?label=team=x"), 0);
}

static void on_appended(const stk_err *err, int64_t offset, size_t stored, size_t bad, void *arg)
{
    assert_null(err);
    *(size_t *)arg = stored;
}

static void add_rows(fx *f, int n)
{
    size_t stored = 0;
    stk_audit_row *rows = stk_xcalloc((size_t)n, sizeof(*rows));
    stk_store_batch batch = {.topic = STK_TOPIC_AUDIT, .to = n, .rows = rows, .nrows = (size_t)n};
    for (int i = 0; i < n; i++) {
        char subject[16];
        stk_audit_row *row = &rows[i];
        snprintf(subject, sizeof(subject), "s%d", i);
        *row = (stk_audit_row){.v = STK_MESSAGE_VERSION,
                               .time = {(1700000000LL + i) * 1000000000},
                               .actor = "somebody",
                               .tenant = "default"};
        snprintf(row->action, sizeof(row->action), "%s", i % 2 ? STK_AUDIT_LAUNCH : STK_AUDIT_EGRESS_DENY);
        snprintf(row->agent, sizeof(row->agent), "%s", i % 3 ? "helper" : "other");
        stk_audit_id(row->time, subject, "", row->action, 0, row->id);
    }
    snprintf(rows[0].tenant, sizeof(rows[0].tenant), "acme");
    stk_store_append(f->store, &batch, on_appended, &stored);
    fx_until(f, stored == (size_t)n);
    free(rows);
}

static size_t rows_of(fx *f, const char *target)
{
    return stk_jv_count(reply_at(fx_expect(f, 200, "GET", target, "", NULL), "rows"));
}

static void audit_rows_are_found(void **state)
{
    fx *f = *state;
    char target[256];
    add_rows(f, 10);
    assert_int_equal(rows_of(f, "/v1/audit"), 9);
    assert_int_equal(rows_of(f, "/v1/audit?tenant=acme"), 1);
    assert_int_equal(rows_of(f, "/v1/audit?agent=other"), 3);
    assert_int_equal(rows_of(f, "/v1/audit?action=agent_sandbox.launch"), 5);
    assert_int_equal(rows_of(f, "/v1/audit?action=agent_sandbox.egress.*"), 4);
    assert_int_equal(rows_of(f, "/v1/audit?since=2023-11-14T22:13:25Z"), 5);
    assert_int_equal(rows_of(f, "/v1/audit?until=2023-11-14T22:13:25Z"), 4);
    reply *r = fx_expect(f, 200, "GET", "/v1/audit?limit=5&order=oldest", "", NULL);
    assert_string_equal(reply_text(r, "rows/0/time"), "2023-11-14T22:13:21.000Z");
    assert_int_equal(stk_jv_count(reply_at(r, "rows")), 5);
    snprintf(target, sizeof(target), "/v1/audit?limit=5&order=oldest&cursor=%s", reply_text(r, "next"));
    r = fx_expect(f, 200, "GET", target, "", NULL);
    assert_int_equal(stk_jv_count(reply_at(r, "rows")), 4);
    assert_true(stk_jv_is(reply_at(r, "next"), STK_J_NULL));
}

static void workers_show_their_slots_and_backends(void **state)
{
    fx *f = *state;
    reply *r = fx_expect(f, 200, "GET", "/v1/workers", "", NULL);
    assert_int_equal(stk_jv_count(reply_at(r, "workers")), 1);
    assert_string_equal(reply_text(r, "workers/0/id"), f->fleet.worker);
    assert_int_equal(reply_int(r, "workers/0/slots"), 8);
    assert_true(stk_jv_bool(reply_at(r, "workers/0/live")));
    assert_string_equal(reply_text(r, "workers/0/backends/0/name"), "oci");
}

static void put_more(stk_buf *out, void *arg)
{
    stk_buf_fmt(out, "more_%s 1\n", (const char *)arg);
}

static void metrics_speak_of_all_parts(void **state)
{
    static const char *const words[] = {
        "stockade_http_requests_total{method=\"PUT\",path=\"/api/admin/platform/"
        "agent-sandbox\",status=\"2xx\"} 1\n",
        "stockade_http_requests_total{method=\"POST\",path=\"/api/admin/platform/agent-sandbox/"
        "run\",status=\"4xx\"} 1\n",
        "stockade_runs{state=\"finished\"} 1\n",
        "stockade_workers_live 1\n",
        "stockade_slots 8\n",
        "stockade_gateway_submitted_total 1\n",
        "more_parts 1\n",
    };
    fx *f = *state;
    fx_enable(f);
    fx_expect(f, 200, "POST", RUN, "", BODY);
    fx_expect(f, 422, "POST", RUN, "", "{}");
    stk_gateway_metrics(f->gw, put_more, "parts");
    reply *r = fx_expect(f, 200, "GET", "/metrics", "", NULL);
    for (size_t i = 0; i < STK_COUNT(words); i++)
        if (!memmem(r->body.p, r->body.n, words[i], strlen(words[i])))
            fail_msg("%s is not in %.*s", words[i], (int)r->body.n, r->body.p);
}

static void the_pages_are_there(void **state)
{
    fx *f = *state;
    assert_true(stk_jv_bool(reply_at(fx_expect(f, 200, "GET", "/healthz", "", NULL), "ok")));
    reply *r = fx_expect(f, 200, "GET", "/readyz", "", NULL);
    assert_true(stk_jv_bool(reply_at(r, "store")));
    assert_true(reply_has_header(r, "X-Request-Id: req-"));
    r = fx_expect(f, 200, "GET", "/openapi.json", "", NULL);
    assert_string_equal(reply_text(r, "openapi"), "3.1.0");
    r = fx_expect(f, 200, "GET", "/", "", NULL);
    assert_true(reply_has_header(r, "Content-Type: text/html; charset=utf-8\r\n"));
    assert_true(reply_has_header(r, "Content-Security-Policy: default-src 'none'"));
    r = fx_expect(f, 200, "HEAD", "/openapi.json", "", NULL);
    assert_int_equal(r->body.n, 0);
    assert_true(reply_has_header(r, "Content-Length: "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(runs_are_listed_newest_first_page_by_page),
        T(runs_are_filtered_by_agent_state_and_label),
        T(audit_rows_are_found),
        T(workers_show_their_slots_and_backends),
        T(metrics_speak_of_all_parts),
        T(the_pages_are_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
