#include "tests/unit/message/keys.h"
#include "proto/message/request.h"

static stk_request golden_request(const char *name)
{
    stk_str text = golden_text(name);
    stk_request req;
    assert_int_equal(stk_request_decode(text, &req, NULL), 0);
    free((void *)text.p);
    return req;
}

static stk_run_secret full_secret(void)
{
    stk_run_secret secret = {.cwd = "sub/dir"};
    stk_strv_add(&secret.command, STK_STR("python"));
    stk_strv_add(&secret.command, STK_STR(""));
    stk_strv_add(&secret.command, STK_STR("d\xc3\xa9j\xc3\xa0 \"\\\n"));
    stk_map_add(&secret.env, STK_STR("TOKEN"), STK_STR("s3cr3t"));
    secret.files.v = stk_xcalloc(2, sizeof(*secret.files.v));
    secret.files.n = 2;
    memcpy(secret.files.v[0].path, "a/b.bin", 8);
    secret.files.v[0].executable = true;
    stk_bytes_set(&secret.files.v[0].content, stk_str_n("\0\xff\n", 3));
    memcpy(secret.files.v[1].path, "empty", 6);
    stk_bytes_set(&secret.files.v[1].content, STK_STR(""));
    stk_bytes_set(&secret.stdin_data, stk_str_n("\xfe\0", 2));
    stk_strv_add(&secret.collect, STK_STR("out/result.json"));
    return secret;
}

static void assert_same_secret(const stk_run_secret *a, const stk_run_secret *b)
{
    assert_int_equal(a->command.n, b->command.n);
    for (size_t i = 0; i < a->command.n; i++)
        assert_text(stk_bytes_view(&a->command.v[i]), stk_bytes_view(&b->command.v[i]));
    assert_int_equal(a->env.n, b->env.n);
    for (size_t i = 0; i < a->env.n; i++)
        assert_text(stk_bytes_view(&a->env.v[i].value), stk_bytes_view(&b->env.v[i].value));
    assert_string_equal(a->cwd, b->cwd);
    assert_int_equal(a->files.n, b->files.n);
    for (size_t i = 0; i < a->files.n; i++) {
        assert_string_equal(a->files.v[i].path, b->files.v[i].path);
        assert_int_equal(a->files.v[i].executable, b->files.v[i].executable);
        assert_text(stk_bytes_view(&a->files.v[i].content), stk_bytes_view(&b->files.v[i].content));
    }
    assert_int_equal(a->stdin_data.set, b->stdin_data.set);
    assert_text(stk_bytes_view(&a->stdin_data), stk_bytes_view(&b->stdin_data));
    assert_int_equal(a->collect.n, b->collect.n);
}

static void what_was_sealed_opens_after_the_bus(void **state)
{
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = new_keyring();
    stk_request req = golden_request("request-extreme"), back;
    stk_run_secret secret = full_secret(), opened = {0};
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
    stk_err err = {0};
    /* Times are kept to the millisecond on the bus; a finer one must not break the seal. */
    req.submitted.ns += 123456;
    assert_int_equal(stk_request_seal(&req, &secret, ring, &err), 0);
    assert_int_equal(stk_request_encode(&req, &text, &err), 0);
    assert_null(memmem(text.p, text.n, "s3cr3t", 6));
    assert_null(memmem(text.p, text.n, "python", 6));
    assert_int_equal(stk_request_decode(stk_buf_view(&text), &back, &err), 0);
    if (stk_request_open(&back, ring, &opened, &err) < 0)
        fail_msg("%s", err.detail);
    assert_same_secret(&opened, &secret);
    stk_run_secret_done(&opened);
    stk_run_secret_done(&secret);
    stk_request_done(&back);
    stk_request_done(&req);
}

static void widen_agent(stk_request *req)
{
    req->agent[0] = 'Z';
}
static void widen_tenant(stk_request *req)
{
    req->tenant[0] = 'z';
}
static void widen_backend(stk_request *req)
{
    memcpy(req->backend, "oci", 4);
}
static void widen_image(stk_request *req)
{
    req->image[0]++;
}
static void widen_timeout(stk_request *req)
{
    req->timeout.ns += 1000000000;
}
static void widen_retry(stk_request *req)
{
    memcpy(req->retry, "never", 6);
}
static void widen_id(stk_request *req)
{
    req->id[STK_ID_SIZE - 12]++;
}
static void widen_priority(stk_request *req)
{
    req->priority--;
}
static void widen_label(stk_request *req)
{
    req->labels.v[0].key.p[0] = 'q';
}
static void widen_version(stk_request *req)
{
    req->config_version--;
}
static void widen_actor(stk_request *req)
{
    req->actor[0] = 'x';
}
static void widen_deadline(stk_request *req)
{
    req->deadline.ns = 0;
}
static void swap_blob(stk_request *req)
{
    req->secret.p[req->secret.n - 1] ^= 1;
}

static void a_changed_clear_part_does_not_open(void **state)
{
    static void (*const changes[])(stk_request *) = {
        widen_agent,    widen_tenant, widen_backend, widen_image, widen_timeout,  widen_retry, widen_id,
        widen_priority, widen_label,  widen_version, widen_actor, widen_deadline, swap_blob};
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = new_keyring();
    stk_run_secret secret = full_secret();
    for (size_t i = 0; i < STK_COUNT(changes); i++) {
        stk_request req = golden_request("request-extreme");
        stk_run_secret opened = {0};
        stk_err err = {0};
        assert_int_equal(stk_request_seal(&req, &secret, ring, &err), 0);
        changes[i](&req);
        assert_error(stk_request_open(&req, ring, &opened, &err), &err, STK_E_CORRUPT, "", "a change");
        assert_int_equal(opened.command.n, 0);
        stk_request_done(&req);
    }
    stk_run_secret_done(&secret);
}

static void another_keyring_does_not_open_it(void **state)
{
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = new_keyring();
    stk_keyring *other STK_AUTO(stk_keyring_freep) = new_keyring();
    stk_request req = golden_request("request");
    stk_run_secret secret = full_secret(), opened = {0};
    stk_err err = {0};
    assert_int_equal(stk_request_seal(&req, &secret, ring, &err), 0);
    assert_error(stk_request_open(&req, other, &opened, &err), &err, STK_E_NOT_FOUND, "", "another key");
    stk_run_secret_done(&secret);
    stk_request_done(&req);
}

static void a_secret_that_could_not_run_is_not_sealed(void **state)
{
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = new_keyring();
    stk_request req = golden_request("request");
    stk_run_secret secret = {0};
    stk_err err = {0};
    assert_error(stk_request_seal(&req, &secret, ring, &err), &err, STK_E_FIELD, "/command", "no command");
    stk_strv_add(&secret.command, STK_STR("a"));
    stk_strv_add(&secret.command, STK_STR("\xff"));
    assert_error(stk_request_seal(&req, &secret, ring, &err), &err, STK_E_FIELD, "/command/1", "not UTF-8");
    stk_run_secret_done(&secret);
    stk_request_done(&req);
}

/* Changes one member of the golden request by text. */
static const struct {
    const char *was, *is;
    stk_code code;
    const char *pointer;
} edits[] = {
    {"run-01hf", "asg-01hf", STK_E_FIELD, "/id"},
    {"run-01hf", "run-U1hf", STK_E_FIELD, "/id"},
    {"a1b2\",\"tenant", "a1b2c\",\"tenant", STK_E_FIELD, "/id"},
    {"\"acme\"", "\"Acme\"", STK_E_FIELD, "/tenant"},
    {"\"acme\"", "\"-acme\"", STK_E_FIELD, "/tenant"},
    {"\"acme\"", "\"\"", STK_E_FIELD, "/tenant"},
    {"\"acme\"", "\"a\\u0000b\"", STK_E_FIELD, "/tenant"},
    {"\"acme\"", "\"a.b\"", STK_E_FIELD, "/tenant"},
    {"\"helper\"", "\".helper\"", STK_E_FIELD, "/agent"},
    {"\"helper\"", "\"a b\"", STK_E_FIELD, "/agent"},
    {"\"helper\"", "\"a/b\"", STK_E_FIELD, "/agent"},
    {"\"token:ci\"", "\"token:\\nci\"", STK_E_FIELD, "/actor"},
    {"\"auto\"", "\"kata\"", STK_E_FIELD, "/backend"},
    {"\"kind\":\"run\"", "\"kind\":\"Run\"", STK_E_FIELD, "/kind"},
    {"\"never\"", "\"maybe\"", STK_E_FIELD, "/retry"},
    {"\"priority\":5", "\"priority\":10", STK_E_FIELD, "/priority"},
    {"\"priority\":5", "\"priority\":-1", STK_E_FIELD, "/priority"},
    {"\"priority\":5", "\"priority\":5.5", STK_E_FIELD, "/priority"},
    {"\"timeout_seconds\":300", "\"timeout_seconds\":0", STK_E_FIELD, "/timeout_seconds"},
    {"\"timeout_seconds\":300", "\"timeout_seconds\":86400.1", STK_E_FIELD, "/timeout_seconds"},
    {"2026-01-02T03:04:05.678Z", "2026-01-02 03:04:05", STK_E_FIELD, "/submitted"},
    {"2026-01-02T03:04:05.678Z", "2026-02-30T03:04:05.678Z", STK_E_FIELD, "/submitted"},
    {"\"secret\":\"U", "\"secret\":\"*", STK_E_FIELD, "/secret"},
    {"\"v\":1,", "\"v\":1,\"traceparent\":\"00-00000000000000000000000000000000-00f067aa0ba902b7-01\",",
     STK_E_FIELD, "/traceparent"},
    {"\"v\":1,", "\"v\":1,\"labels\":{\"A\":\"x\"},", STK_E_FIELD, "/labels/A"},
    {"\"v\":1,", "\"v\":1,\"labels\":{\"\":\"x\"},", STK_E_FIELD, "/labels/"},
    {"\"v\":1,", "\"v\":1,\"labels\":{\"a\":1},", STK_E_FIELD, "/labels/a"},
    {"\"v\":1,", "", STK_E_MISSING_FIELD, "/v"},
};

static void a_wrong_value_is_refused_with_its_pointer(void **state)
{
    stk_str text = golden_text("request");
    for (size_t i = 0; i < STK_COUNT(edits); i++) {
        const char *at = memmem(text.p, text.n, edits[i].was, strlen(edits[i].was));
        stk_buf edited STK_AUTO(stk_buf_done) = STK_BUF(STK_RECORD_MAX);
        stk_request req;
        stk_err err = {0};
        assert_non_null(at);
        stk_buf_add(&edited, text.p, (size_t)(at - text.p));
        stk_buf_text(&edited, edits[i].is);
        at += strlen(edits[i].was);
        stk_buf_add(&edited, at, text.n - (size_t)(at - text.p));
        int rc = stk_request_decode(stk_buf_view(&edited), &req, &err);
        assert_error(rc, &err, edits[i].code, edits[i].pointer, edits[i].is);
    }
    free((void *)text.p);
}

static void a_record_over_the_limit_is_refused_unread(void **state)
{
    char *big = stk_xcalloc(1, STK_RECORD_MAX + 2);
    stk_request req;
    stk_err err = {0};
    assert_error(stk_request_decode(stk_str_n(big, STK_RECORD_MAX + 1), &req, &err), &err, STK_E_LIMIT, "",
                 "4 MiB + 1");
    free(big);
}

static void names_have_their_alphabets(void **state)
{
    static const struct {
        const char *text;
        bool tenant, agent, env;
    } rows[] = {
        {"", false, false, false},    {"a", true, true, true},      {"A", false, true, true},
        {"0", true, true, false},     {"-a", false, false, false},  {"a-", false, true, false},
        {"a-b", true, true, false},   {"a.b", false, true, false},  {".a", false, false, false},
        {"a_b", false, true, true},   {"_a", false, true, true},    {"A_9", false, true, true},
        {"a b", false, false, false}, {"a=b", false, false, false}, {"\xc3\xa9", false, false, false}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        assert_int_equal(stk_tenant_ok(stk_str_of(rows[i].text)), rows[i].tenant);
        assert_int_equal(stk_agent_ok(stk_str_of(rows[i].text)), rows[i].agent);
        assert_int_equal(stk_env_name_ok(stk_str_of(rows[i].text)), rows[i].env);
    }
    char text[130];
    memset(text, 'a', sizeof(text));
    assert_true(stk_tenant_ok(stk_str_n(text, 63)));
    assert_false(stk_tenant_ok(stk_str_n(text, 64)));
    assert_true(stk_agent_ok(stk_str_n(text, 128)));
    assert_false(stk_agent_ok(stk_str_n(text, 129)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sealed_opens_after_the_bus),
        cmocka_unit_test(a_changed_clear_part_does_not_open),
        cmocka_unit_test(another_keyring_does_not_open_it),
        cmocka_unit_test(a_secret_that_could_not_run_is_not_sealed),
        cmocka_unit_test(a_wrong_value_is_refused_with_its_pointer),
        cmocka_unit_test(a_record_over_the_limit_is_refused_unread),
        cmocka_unit_test(names_have_their_alphabets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
