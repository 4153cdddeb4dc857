#include "proto/base/config.h"
#include "proto/base/fd.h"
#include "tests/unit/base/test.h"

static const char *const levels[] = {"debug", "info", "warn", NULL};

typedef struct conf {
    char *listen, *name;
    bool tls;
    int64_t port, any, size;
    stk_span lease, beat;
    stk_strv hosts;
    int level;
    stk_bytes pools;
} conf;

static const stk_conf table[] = {
    {.key = "http.listen",
     .type = STK_C_TEXT,
     .offset = offsetof(conf, listen),
     .def = "127.0.0.1:8080",
     .help = "where a|b"},
    {.key = "http.tls",
     .type = STK_C_BOOL,
     .offset = offsetof(conf, tls),
     .def = "true",
     .reloadable = true,
     .help = "TLS"},
    {.key = "http.port",
     .type = STK_C_INT,
     .offset = offsetof(conf, port),
     .def = "5",
     .min = 0,
     .max = 65535},
    {.key = "name", .type = STK_C_TEXT, .offset = offsetof(conf, name)},
    {.key = "any", .type = STK_C_INT, .offset = offsetof(conf, any)},
    {.key = "limits.size",
     .type = STK_C_SIZE,
     .offset = offsetof(conf, size),
     .def = "64KiB",
     .min = 4096,
     .max = 1 << 30},
    {.key = "limits.lease",
     .type = STK_C_SPAN,
     .offset = offsetof(conf, lease),
     .def = "10s",
     .min = 1000000,
     .max = 3600000000000},
    {.key = "limits.beat.every", .type = STK_C_SPAN, .offset = offsetof(conf, beat), .def = "3s"},
    {.key = "hosts", .type = STK_C_LIST, .offset = offsetof(conf, hosts), .def = "[one, two]", .max = 3},
    {.key = "log", .type = STK_C_ENUM, .offset = offsetof(conf, level), .def = "info", .words = levels},
    {.key = "pools", .type = STK_C_RAW, .offset = offsetof(conf, pools)},
    STK_CONF_END,
};

static char path[] = "/tmp/stk-test-config-XXXXXX";

static int make_file(void **state)
{
    int fd STK_AUTO(stk_closep) = mkstemp(path);
    return fd < 0;
}

static int remove_file(void **state)
{
    return unlink(path);
}

static int check_lease(const void *config, stk_err *err)
{
    const conf *c = config;
    if (c->lease.ns <= 3 * c->beat.ns)
        return stk_err_set(err, STK_E_CONFIG, "limits.lease must be over three times limits.beat.every");
    return 0;
}

static int load_with(stk_str yaml, const char *const *overrides, conf *c, stk_err *err)
{
    *c = (conf){0};
    assert_int_equal(stk_file_replace(path, 0600, yaml, NULL), 0);
    return stk_conf_load(table, path, overrides, check_lease, c, err);
}

static void load_good(const char *yaml, conf *c)
{
    stk_err err = {0};
    if (load_with(stk_str_of(yaml), NULL, c, &err) < 0)
        fail_msg("%s: %s", yaml, err.detail);
}

static void without_a_file_the_defaults_hold(void **state)
{
    conf c = {0};
    assert_int_equal(stk_conf_load(table, NULL, NULL, check_lease, &c, NULL), 0);
    assert_string_equal(c.listen, "127.0.0.1:8080");
    assert_string_equal(c.name, "");
    assert_true(c.tls);
    assert_int_equal(c.port, 5);
    assert_int_equal(c.any, 0);
    assert_int_equal(c.size, 65536);
    assert_int_equal(c.lease.ns, 10000000000);
    assert_int_equal(c.hosts.n, 2);
    assert_str(stk_bytes_view(&c.hosts.v[1]), "two");
    assert_int_equal(c.level, 1);
    assert_false(c.pools.set);
    stk_conf_done(table, &c);
    assert_null(c.listen);
    assert_int_equal(c.hosts.n, 0);
    stk_conf_done(table, &c);
}

static void every_type_is_read_from_the_file(void **state)
{
    conf c;
    load_good(
        "# a comment\nhttp:\n  listen: \"[::]:80\"\n  tls: false\n  port: 65535\nname: 'it''s: x'\nany: -12\n"
        "limits: {size: 1GiB, lease: 1h, beat: {every: 500us}}\nhosts:\n  - a.example\n  - 'b: c'\nlog: "
        "warn\n"
        "pools: {py: {min: 1, max: 1.5, img: null, on: yes, no: [true, \"true\", 012, 0x1F, -0, .5]}, e: {}, "
        "l: []}\n",
        &c);
    assert_string_equal(c.listen, "[::]:80");
    assert_false(c.tls);
    assert_int_equal(c.port, 65535);
    assert_string_equal(c.name, "it's: x");
    assert_int_equal(c.any, -12);
    assert_int_equal(c.size, 1 << 30);
    assert_int_equal(c.lease.ns, 3600000000000);
    assert_int_equal(c.beat.ns, 500000);
    assert_int_equal(c.hosts.n, 2);
    assert_str(stk_bytes_view(&c.hosts.v[1]), "b: c");
    assert_int_equal(c.level, 2);
    assert_str(stk_bytes_view(&c.pools),
               "{\"py\":{\"min\":1,\"max\":1.5,\"img\":null,\"on\":\"yes\",\"no\":[true,\"true\",\"012\","
               "\"0x1F\",-0,\".5\"]},\"e\":{},\"l\":[]}");
    stk_conf_done(table, &c);
}

static void unset_is_not_false_and_not_zero(void **state)
{
    static const char *const unset[] = {
        "",  "\n# nothing\n", "http:\n", "http: {tls: , port: ~}", "http: {tls: null, port: null}",
        "~", "---\n...\n"};
    conf c;
    for (size_t i = 0; i < STK_COUNT(unset); i++) {
        load_good(unset[i], &c);
        assert_true(c.tls);
        assert_int_equal(c.port, 5);
        stk_conf_done(table, &c);
    }
    load_good("http: {tls: false, port: 0, listen: ''}\nhosts: []\npools: {}\n", &c);
    assert_false(c.tls);
    assert_int_equal(c.port, 0);
    assert_string_equal(c.listen, "");
    assert_int_equal(c.hosts.n, 0);
    assert_str(stk_bytes_view(&c.pools), "{}");
    stk_conf_done(table, &c);
}

static void a_dotted_key_is_the_same_as_a_nested_one(void **state)
{
    conf c;
    load_good("http.port: 7\nlimits.beat: {every: 1s}\n", &c);
    assert_int_equal(c.port, 7);
    assert_int_equal(c.beat.ns, 1000000000);
    stk_conf_done(table, &c);
}

static const struct {
    stk_str yaml;
    const char *detail; /* after the file's name */
} wrong[] = {
    {S("http:\n  lisen: x\n"), ":2:3: http.lisen: unknown key"},
    {S("htp: {}\n"), ":1:1: htp: unknown key"},
    {S("name:\n  x: 1\n"), ":2:3: name: one value was expected"},
    {S("\n\nhttp: x\n"), ":3:7: http: must be a mapping of keys to values"},
    {S("http: [listen]\n"), ":1:7: http: must be a mapping of keys to values"},
    {S("[1]\n"), ":1:1: must be a mapping of keys to values"},
    {S("text\n"), ":1:1: must be a mapping of keys to values"},
    {S("name: a\nname: b\n"), ":2:1: name: is here a second time"},
    {S("http: {port: 1}\nhttp.port: 2\n"), ":2:1: http.port: is here a second time"},
    {S("http:\n  tls: yes\n"), ":2:8: http.tls: must be true or false"},
    {S("http:\n  tls: 0\n"), ":2:8: http.tls: must be true or false"},
    {S("http:\n  tls: ''\n"), ":2:8: http.tls: must be true or false"},
    {S("http: {port: 65536}\n"), ":1:14: http.port: must be at most 65535"},
    {S("http: {port: -1}\n"), ":1:14: http.port: must be at least 0"},
    {S("http: {port: 8080x}\n"), ":1:14: http.port: must be a whole number"},
    {S("http: {port: 1.0}\n"), ":1:14: http.port: must be a whole number"},
    {S("http: {port: 99999999999999999999}\n"), ":1:14: http.port: must be a whole number"},
    {S("http: {port: [1]}\n"), ":1:14: http.port: one value was expected"},
    {S("limits:\n  size: 64KB\n"),
     ":2:9: limits.size: must be bytes, or a size in KiB, MiB, GiB or TiB, like 64MiB"},
    {S("limits:\n  size: 1KiB\n"), ":2:9: limits.size: must be at least 4KiB"},
    {S("limits:\n  size: 2GiB\n"), ":2:9: limits.size: must be at most 1GiB"},
    {S("limits:\n  size: 99999999999TiB\n"),
     ":2:9: limits.size: must be bytes, or a size in KiB, MiB, GiB or TiB, like 64MiB"},
    {S("limits:\n  lease: 10\n"),
     ":2:10: limits.lease: must be a time with a unit: us, ms, s, m or h, like 250ms"},
    {S("limits:\n  lease: 10 s\n"),
     ":2:10: limits.lease: must be a time with a unit: us, ms, s, m or h, like 250ms"},
    {S("limits:\n  lease: 1.5s\n"),
     ":2:10: limits.lease: must be a time with a unit: us, ms, s, m or h, like 250ms"},
    {S("limits:\n  lease: 10us\n"), ":2:10: limits.lease: must be at least 1ms"},
    {S("limits:\n  lease: 61m\n"), ":2:10: limits.lease: must be at most 1h"},
    {S("limits:\n  lease: 9s\n"), ": limits.lease must be over three times limits.beat.every"},
    {S("log: loud\n"), ":1:6: log: must be one of: debug, info, warn"},
    {S("hosts: one\n"), ":1:8: hosts: must be a list"},
    {S("hosts:\n  - one\n  - {a: b}\n"), ":3:5: hosts: a list of texts was expected"},
    {S("hosts:\n  - one\n  -\n"), ":3:4: hosts: a list of texts was expected"},
    {S("hosts: [a, b, c, d]\n"), ":1:18: hosts: the list has too many items"},
    {S("hosts: [\"a\\0b\"]\n"), ":1:9: hosts: must not hold a NUL byte"},
    {S("name: \"a\\0b\"\n"), ":1:7: name: must not hold a NUL byte"},
    {S("\"name\\0\": x\n"), ":1:1: name: unknown key"},
    {S("name: &x a\nany: *x\n"), ":2:6: any: aliases are not taken"},
    {S("name: !!str 5\n"), ":1:7: name: tags are not taken"},
    {S("? [a]\n: b\n"), ":1:3: a key must be a text"},
    {S("name: a\n---\nname: b\n"), ":2:1: a second document"},
    {S("pools:\n  a: 1\n  a: 2\n"), ":2:3: pools: a repeated key at byte 7"},
    {S("pools: {[a]: 2}\n"), ":1:9: pools: a key must be a text"},
    {S("name: \"abc\n"), ":2:1: name: found unexpected end of stream"},
    {S("http:\n\tport: 1\n"), ":2:1: found character that cannot start any token"},
    {S("name: \xff\n"), ": byte 6: invalid leading UTF-8 octet"},
};

static void a_wrong_file_is_told_by_line_and_column(void **state)
{
    for (size_t i = 0; i < STK_COUNT(wrong); i++) {
        conf c;
        stk_err err = {0};
        assert_int_equal(load_with(wrong[i].yaml, NULL, &c, &err), -STK_E_CONFIG);
        assert_int_equal(err.code, STK_E_CONFIG);
        assert_memory_equal(err.detail, path, strlen(path));
        assert_string_equal(err.detail + strlen(path), wrong[i].detail);
        assert_null(c.listen);
        assert_int_equal(load_with(wrong[i].yaml, NULL, &c, NULL), -STK_E_CONFIG);
    }
}

static void a_very_deep_or_long_file_is_refused(void **state)
{
    conf c;
    stk_err err = {0};
    stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(4u << 20);
    stk_buf_text(&text, "pools: ");
    for (int i = 0; i < 100; i++)
        stk_buf_byte(&text, '[');
    for (int i = 0; i < 100; i++)
        stk_buf_byte(&text, ']');
    assert_int_equal(load_with(stk_buf_view(&text), NULL, &c, &err), -STK_E_CONFIG);
    assert_string_equal(err.detail + strlen(path), ":1:40: pools: nested too deep");
    stk_buf_reset(&text);
    for (int i = 0; i < 200000; i++)
        stk_buf_text(&text, "# long\n");
    assert_int_equal(load_with(stk_buf_view(&text), NULL, &c, &err), -STK_E_CONFIG);
    assert_non_null(strstr(err.detail, path));
}

static void a_missing_file_is_named(void **state)
{
    conf c = {0};
    stk_err err = {0};
    assert_int_equal(stk_conf_load(table, "/nonexistent/stockade.yaml", NULL, NULL, &c, &err), -STK_E_CONFIG);
    assert_non_null(strstr(err.detail, "/nonexistent/stockade.yaml"));
}

static void an_override_replaces_what_the_file_said(void **state)
{
    static const char *const overrides[] = {"http.port=9",    "http.port=10",   "name=a=b: c", "hosts=[x]",
                                            "pools={a: [1]}", "http.tls=false", NULL};
    conf c;
    assert_int_equal(load_with(S("http: {port: 1, tls: true}\nhosts: [a, b]\npools: {z: 1}\nname: n\n"),
                               overrides, &c, NULL),
                     0);
    assert_int_equal(c.port, 10);
    assert_string_equal(c.name, "a=b: c");
    assert_int_equal(c.hosts.n, 1);
    assert_str(stk_bytes_view(&c.hosts.v[0]), "x");
    assert_str(stk_bytes_view(&c.pools), "{\"a\":[1]}");
    assert_false(c.tls);
    stk_conf_done(table, &c);
}

static void a_wrong_override_is_named_without_its_value(void **state)
{
    static const char *const rows[][2] = {
        {"http.port=secret", "override: http.port: must be a whole number"},
        {"http.port=", "override: http.port: must be a whole number"},
        {"port=1", "override: port: unknown key"},
        {"http={}", "override: http: unknown key"},
        {"http.port", "override: 'http.port' is not KEY=VALUE"},
        {"limits.lease=2h", "override: limits.lease: must be at most 1h"},
        {"hosts=one", "override:1:1: hosts: must be a list"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        const char *overrides[] = {rows[i][0], NULL};
        conf c = {0};
        stk_err err = {0};
        assert_int_equal(stk_conf_load(table, NULL, overrides, NULL, &c, &err), -STK_E_CONFIG);
        assert_string_equal(err.detail, rows[i][1]);
    }
}

static void the_reference_page_shows_every_row(void **state)
{
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(10000);
    stk_conf_reference(table, &out);
    for (const stk_conf *row = table; row->key; row++)
        assert_non_null(strstr(out.p, row->key));
    assert_non_null(strstr(out.p, "| `http.listen` | text | `127.0.0.1:8080` |  | no | where a\\|b |\n"));
    assert_non_null(strstr(out.p, "| `http.tls` | true/false | `true` |  | yes | TLS |\n"));
    assert_non_null(strstr(out.p, "| `limits.size` | size | `64KiB` | 4KiB to 1GiB | no |  |\n"));
    assert_non_null(strstr(out.p, "| `limits.lease` | time | `10s` | 1ms to 1h | no |  |\n"));
    assert_non_null(strstr(out.p, "| `log` | word | `info` | debug, info, warn | no |  |\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_file_the_defaults_hold),
        cmocka_unit_test(every_type_is_read_from_the_file),
        cmocka_unit_test(unset_is_not_false_and_not_zero),
        cmocka_unit_test(a_dotted_key_is_the_same_as_a_nested_one),
        cmocka_unit_test(a_wrong_file_is_told_by_line_and_column),
        cmocka_unit_test(a_very_deep_or_long_file_is_refused),
        cmocka_unit_test(a_missing_file_is_named),
        cmocka_unit_test(an_override_replaces_what_the_file_said),
        cmocka_unit_test(a_wrong_override_is_named_without_its_value),
        cmocka_unit_test(the_reference_page_shows_every_row),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
