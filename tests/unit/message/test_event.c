#include "tests/unit/message/keys.h"
#include "proto/message/event.h"

static stk_event golden_event(const char *name)
{
    stk_str text = golden_text(name);
    stk_event ev;
    stk_err err = {0};
    if (stk_event_decode(text, &ev, &err) < 0)
        fail_msg("%s %s", err.pointer, err.detail);
    free((void *)text.p);
    return ev;
}

static void a_result_opens_after_the_bus(void **state)
{
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = new_keyring();
    stk_event ev = golden_event("event-result"), back;
    stk_result_secret secret = {0}, opened = {0};
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    stk_err err = {0};
    stk_bytes_set(&secret.stdout_data, stk_str_n("secret\0\xff", 8));
    stk_bytes_set(&secret.files, STK_STR("[{\"path\":\"a\"}]"));
    assert_int_equal(stk_event_seal(&ev, &secret, ring, &err), 0);
    assert_int_equal(stk_event_encode(&ev, &text, &err), 0);
    assert_null(memmem(text.p, text.n, "secret\\u0000", 12));
    assert_int_equal(stk_event_decode(stk_buf_view(&text), &back, &err), 0);
    assert_int_equal(stk_event_open(&back, ring, &opened, &err), 0);
    assert_text(stk_bytes_view(&opened.stdout_data), stk_bytes_view(&secret.stdout_data));
    assert_false(opened.stderr_data.set);
    assert_text(stk_bytes_view(&opened.files), stk_bytes_view(&secret.files));
    stk_result_secret_done(&opened);
    stk_result_secret_done(&secret);
    stk_event_done(&back);
    stk_event_done(&ev);
}

static void another_runs_assignments_or_tenants_result_does_not_open(void **state)
{
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = new_keyring();
    stk_result_secret secret = {0};
    stk_bytes_set(&secret.stdout_data, STK_STR("x"));
    for (int i = 0; i < 4; i++) {
        stk_event ev = golden_event("event-result");
        stk_result_secret opened;
        stk_err err = {0};
        assert_int_equal(stk_event_seal(&ev, &secret, ring, &err), 0);
        if (i == 0)
            ev.run[10]++;
        else if (i == 1)
            ev.assignment[10]++;
        else if (i == 2)
            ev.tenant[0]++;
        else
            ev.secret.p[0]++;
        int rc = stk_event_open(&ev, ring, &opened, &err);
        assert_error(rc, &err, STK_E_CORRUPT, "", "a changed result");
        stk_event_done(&ev);
    }
    stk_result_secret_done(&secret);
}

static void an_event_without_a_result_says_so(void **state)
{
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = new_keyring();
    stk_event ev = golden_event("event-finished");
    stk_result_secret opened;
    stk_err err = {0};
    assert_error(stk_event_open(&ev, ring, &opened, &err), &err, STK_E_NOT_FOUND, "", "no result");
    stk_event_done(&ev);
}

static void an_output_over_the_cap_is_not_sealed(void **state)
{
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = new_keyring();
    stk_event ev = golden_event("event-result");
    char *big STK_AUTO(stk_freep) = stk_xcalloc(1, STK_OUTPUT_MAX + 1);
    stk_result_secret secret = {0};
    stk_err err = {0};
    stk_bytes_set(&secret.stderr_data, stk_str_n(big, STK_OUTPUT_MAX));
    assert_int_equal(stk_event_seal(&ev, &secret, ring, &err), 0);
    stk_bytes_set(&secret.stderr_data, stk_str_n(big, STK_OUTPUT_MAX + 1));
    assert_error(stk_event_seal(&ev, &secret, ring, &err), &err, STK_E_LIMIT, "/stderr", "262145 bytes");
    stk_result_secret_done(&secret);
    stk_event_done(&ev);
}

static int with_egress(const char *list, stk_err *err)
{
    stk_event ev = golden_event("event-finished"), back;
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    stk_bytes_set(&ev.egress, stk_str_of(list));
    assert_int_equal(stk_event_encode(&ev, &text, NULL), 0);
    stk_event_done(&ev);
    int rc = stk_event_decode(stk_buf_view(&text), &back, err);
    if (rc == 0)
        stk_event_done(&back);
    return rc;
}

static void egress_records_in_an_event_are_looked_at(void **state)
{
    stk_str one = golden_text("egress-record-deny");
    stk_buf list STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    stk_err err = {0};
    stk_buf_byte(&list, '[');
    for (int i = 0; i < STK_EGRESS_MAX; i++) {
        stk_buf_text(&list, i ? "," : "");
        stk_buf_str(&list, one);
    }
    stk_buf_byte(&list, ']');
    assert_int_equal(with_egress(list.p, &err), 0);
    list.p[--list.n] = '\0';
    stk_buf_byte(&list, ',');
    stk_buf_str(&list, one);
    stk_buf_byte(&list, ']');
    assert_error(with_egress(list.p, &err), &err, STK_E_FIELD, "/egress", "201 records");
    assert_error(with_egress("[{}]", &err), &err, STK_E_MISSING_FIELD, "/egress/seq", "an empty record");
    assert_error(with_egress("[1]", &err), &err, STK_E_FIELD, "/egress", "a number");
    free((void *)one.p);
}

static stk_json *api(const stk_event *ev, const stk_result_secret *secret)
{
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    stk_json *doc = NULL;
    stk_jw w;
    stk_jw_init(&w, &text);
    stk_event_write_api(&w, ev, secret);
    assert_int_equal(stk_jw_end(&w, NULL), 0);
    assert_int_equal(stk_json_parse(stk_buf_view(&text), NULL, &doc, NULL), 0);
    return doc;
}

static int64_t number(stk_jv object, const char *key)
{
    int64_t n = -12345;
    stk_jv_int(stk_jv_get(object, key), &n);
    return n;
}

static void the_answer_has_the_documented_members(void **state)
{
    static const char *const members[] = {
        "run_id",      "reason",    "exit_code",   "signal",  "timed_out", "oom_killed", "stdout_tail",
        "stderr_tail", "truncated", "duration_ms", "backend", "isolation", "egress",     "egress_dropped"};
    stk_event ev = golden_event("event-result");
    stk_result_secret secret = {0};
    stk_bytes_set(&secret.stdout_data, stk_str_n("ok\xff\0", 4));
    stk_json *doc STK_AUTO(stk_json_freep) = api(&ev, &secret);
    stk_jv root = stk_json_root(doc);
    for (size_t i = 0; i < STK_COUNT(members); i++)
        if (!stk_jv_get(root, members[i]).doc)
            fail_msg("no %s", members[i]);
    assert_text(stk_jv_str(stk_jv_get(root, "run_id")), stk_str_of(ev.run));
    assert_int_equal(number(root, "exit_code"), 3);
    assert_int_equal(number(root, "duration_ms"), 1250);
    assert_text(stk_jv_str(stk_jv_get(root, "stdout_tail")), stk_str_n("ok\xef\xbf\xbd\0", 6));
    assert_text(stk_jv_str(stk_jv_get(root, "stderr_tail")), STK_STR(""));
    stk_result_secret_done(&secret);
    stk_event_done(&ev);
}

static void who_may_not_read_output_gets_none(void **state)
{
    stk_event ev = golden_event("event-result");
    stk_json *doc STK_AUTO(stk_json_freep) = api(&ev, NULL);
    assert_null(stk_jv_get(stk_json_root(doc), "stdout_tail").doc);
    assert_null(stk_jv_get(stk_json_root(doc), "stderr_tail").doc);
    stk_event_done(&ev);
}

static void a_connection_is_one_entry_with_its_bytes(void **state)
{
    stk_event ev = golden_event("event-result");
    stk_json *doc STK_AUTO(stk_json_freep) = api(&ev, NULL);
    stk_jv list = stk_jv_get(stk_json_root(doc), "egress");
    assert_int_equal(stk_jv_count(list), 2);
    stk_jv allow = stk_jv_first(list), deny = stk_jv_next(allow);
    assert_text(stk_jv_str(stk_jv_get(allow, "verdict")), STK_STR("allow"));
    assert_int_equal(number(allow, "bytes_in"), 5120);
    assert_int_equal(number(allow, "bytes_out"), 830);
    assert_text(stk_jv_str(stk_jv_get(deny, "reason")), STK_STR("host_not_allowed"));
    assert_int_equal(number(deny, "port"), 443);
    stk_event_done(&ev);
}

static void exit_codes_are_those_of_how_it_ended(void **state)
{
    static const struct {
        const char *reason;
        int64_t exit_code, signal, want;
        bool null;
    } rows[] = {{"exited", 0, 0, 0, false},      {"exited", 255, 0, 255, false},
                {"signaled", 0, 15, 143, false}, {"timeout", 0, 9, 124, false},
                {"oom", 0, 9, 137, false},       {"cancelled", 0, 9, 0, true},
                {"expired", 0, 0, 0, true},      {"refused", 0, 0, 0, true},
                {"worker_lost", 0, 0, 0, true},  {"sandbox_failed", 0, 0, 0, true}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_event ev = golden_event("event-finished");
        stk_str_copy(stk_str_of(rows[i].reason), ev.reason, sizeof(ev.reason));
        ev.exit_code = rows[i].exit_code;
        ev.signal = rows[i].signal;
        stk_json *doc STK_AUTO(stk_json_freep) = api(&ev, NULL);
        stk_jv code = stk_jv_get(stk_json_root(doc), "exit_code");
        assert_int_equal(stk_jv_type(code), rows[i].null ? STK_J_NULL : STK_J_NUMBER);
        if (!rows[i].null)
            assert_int_equal(number(stk_json_root(doc), "exit_code"), rows[i].want);
        stk_event_done(&ev);
    }
}

static void a_tail_begins_at_a_character(void **state)
{
    stk_event ev = golden_event("event-result");
    stk_result_secret secret = {0};
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_OUTPUT_MAX);
    while (text.n < STK_TAIL_MAX + 8)
        stk_buf_text(&text, "\xf0\x9f\x98\x80");
    for (size_t cut = 0; cut < 5; cut++) {
        stk_bytes_set(&secret.stdout_data, stk_str_n(text.p, text.n - cut));
        stk_json *doc STK_AUTO(stk_json_freep) = api(&ev, &secret);
        stk_str tail = stk_jv_str(stk_jv_get(stk_json_root(doc), "stdout_tail"));
        assert_true(tail.n <= STK_TAIL_MAX + 3 && tail.n > STK_TAIL_MAX - 8);
        assert_memory_equal(tail.p, "\xf0\x9f\x98\x80", 4);
        assert_true(stk_jv_bool(stk_jv_get(stk_json_root(doc), "truncated")));
    }
    stk_bytes_set(&secret.stdout_data, stk_str_n(text.p, STK_TAIL_MAX));
    stk_json *doc STK_AUTO(stk_json_freep) = api(&ev, &secret);
    assert_false(stk_jv_bool(stk_jv_get(stk_json_root(doc), "truncated")));
    stk_result_secret_done(&secret);
    stk_event_done(&ev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_opens_after_the_bus),
        cmocka_unit_test(another_runs_assignments_or_tenants_result_does_not_open),
        cmocka_unit_test(an_event_without_a_result_says_so),
        cmocka_unit_test(an_output_over_the_cap_is_not_sealed),
        cmocka_unit_test(egress_records_in_an_event_are_looked_at),
        cmocka_unit_test(the_answer_has_the_documented_members),
        cmocka_unit_test(who_may_not_read_output_gets_none),
        cmocka_unit_test(a_connection_is_one_entry_with_its_bytes),
        cmocka_unit_test(exit_codes_are_those_of_how_it_ended),
        cmocka_unit_test(a_tail_begins_at_a_character),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
