#include "tests/unit/policy/unit.h"

static stk_entry parse(const char *text)
{
    stk_entry entry;
    stk_err err;
    if (stk_entry_parse(stk_str_of(text), &entry, &err) < 0)
        fail_msg("\"%s\" was refused: %s", text, err.detail);
    return entry;
}

static void malformed_entries_are_refused(void **state)
{
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "empty"},
        {"*", "everything"},
        {"*.", "empty"},
        {"*.com", "too wide"},
        {"*.com:443", "too wide"},
        {"*.com.", "too wide"},
        {"example.*", "'*'"},
        {"*.*.example.com", "'*'"},
        {"*example.com", "'*'"},
        {"a.*.example.com", "'*'"},
        {"**.example.com", "'*'"},
        {"*.0.0.1", "not an address"},
        {"*.example.com/path", "path"},
        {"https://example.com", "URL"},
        {"http://x", "URL"},
        {"10.0.0.0/8", "network"},
        {".example.com", "empty"},
        {"exa mple.com", "0x20"},
        {"example..com", "empty"},
        {"[::1]", "not an address"},
        {"[::1]:443", "not an address"},
        {"::1", "port"},
        {"2130706433", "not an address"},
        {"127.0.0.1", "not an address"},
        {"127.0.0.1:80", "not an address"},
        {"0x7f.1", "not an address"},
        {"1.2.3.4.", "not an address"},
        {"x:0", "port"},
        {"x:99999", "port"},
        {"example.com:65536", "port"},
        {"example.com:0443", "port"},
        {"example.com:443:allowed.example", "port"},
        {"example.com:", "port"},
        {"example.com:+443", "port"},
        {"example.com:443x", "port"},
        {"example.com: 443", "port"},
        {"example.com:4294967739", "port"},
        {":443", "empty"},
        {"*.:443", "empty"},
        {"user@example.com", "user"},
        {"bu\u0308cher.test", "U+0308"},
        {"xn--a.test", "canonical"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_entry entry = {.port = 7};
        stk_err err = {.code = STK_OK};
        if (stk_entry_parse(stk_str_of(rows[i].text), &entry, &err) != -STK_E_FIELD)
            fail_msg("\"%s\" passed", rows[i].text);
        if (!strstr(err.detail, rows[i].why))
            fail_msg("\"%s\": \"%s\" does not say \"%s\"", rows[i].text, err.detail, rows[i].why);
        assert_int_equal(entry.port, 7);
    }
    stk_entry entry;
    assert_int_equal(stk_entry_parse(stk_str_n("a.com\0", 6), &entry, NULL), -STK_E_FIELD);
}

static void entries_have_a_canonical_text(void **state)
{
    static const char *const rows[][2] = {
        {"API.Vendor.com", "api.vendor.com"},
        {"*.Example.org.", "*.example.org"},
        {"db.example.com:5432", "db.example.com:5432"},
        {"*.example.org:8443", "*.example.org:8443"},
        {"b\u00fccher.test", "xn--bcher-kva.test"},
        {"localhost", "localhost"},
        {"*.b\u00fccher.test:1", "*.xn--bcher-kva.test:1"},
        {"x.com:65535", "x.com:65535"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_entry entry = parse(rows[i][0]);
        char text[STK_NAME_MAX + 8];
        stk_entry_text(&entry, text);
        assert_string_equal(text, rows[i][1]);
    }
}

static void matching_falls_on_label_boundaries_and_ports(void **state)
{
    static const struct {
        const char *entry, *host;
        uint16_t port;
        bool match;
    } rows[] = {
        {"example.com", "example.com", 443, true},
        {"example.com", "example.com", 80, true},
        {"example.com", "example.com", 8443, false},
        {"example.com:8443", "example.com", 8443, true},
        {"example.com:8443", "example.com", 443, false},
        {"example.com", "a.example.com", 443, false},
        {"*.example.com", "a.example.com", 443, true},
        {"*.example.com", "a.b.example.com", 443, true},
        {"*.example.com", "example.com", 443, false},
        {"*.example.com", "notexample.com", 443, false},
        {"*.example.com", ".example.com", 443, false},
        {"*.example.com", "example.com.evil.example", 443, false},
        {"example.com", "example.com.evil.example", 443, false},
        {"*.example.com:22", "a.example.com", 22, true},
        {"*.example.com:22", "a.example.com", 443, false},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_entry entry = parse(rows[i].entry);
        if (stk_entry_matches(&entry, rows[i].host, rows[i].port) != rows[i].match)
            fail_msg("%s against %s:%u", rows[i].entry, rows[i].host, rows[i].port);
    }
}

static void covering_is_matching_of_everything(void **state)
{
    static const struct {
        const char *a, *b;
        bool covers;
    } rows[] = {
        {"x.com", "x.com", true},           {"x.com", "x.com:443", true},
        {"x.com", "x.com:80", true},        {"x.com", "x.com:8443", false},
        {"x.com:443", "x.com", false},      {"x.com:443", "x.com:443", true},
        {"*.x.com", "a.x.com", true},       {"*.x.com", "x.com", false},
        {"*.x.com", "*.x.com", true},       {"*.x.com", "*.a.x.com", true},
        {"*.a.x.com", "*.x.com", false},    {"a.x.com", "*.x.com", false},
        {"*.x.com", "*.y.x.com:443", true}, {"*.x.com:22", "a.x.com:22", true},
        {"*.x.com:22", "a.x.com", false},   {"*.x.com", "*.notx.com", false},
        {"x.com", "*.x.com", false},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_entry a = parse(rows[i].a), b = parse(rows[i].b);
        if (stk_entry_covers(&a, &b) != rows[i].covers)
            fail_msg("%s over %s", rows[i].a, rows[i].b);
    }
}

static void wildcards_over_public_suffixes_are_told(void **state)
{
    stk_entry wide = parse("*.co.uk"), wide_port = parse("*.github.io:8443"),
              narrow = parse("*.vendor.co.uk"), exact = parse("co.uk");
    assert_true(stk_entry_over_public_suffix(&wide));
    assert_true(stk_entry_over_public_suffix(&wide_port));
    assert_false(stk_entry_over_public_suffix(&narrow));
    assert_false(stk_entry_over_public_suffix(&exact));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_entries_are_refused),
        cmocka_unit_test(entries_have_a_canonical_text),
        cmocka_unit_test(matching_falls_on_label_boundaries_and_ports),
        cmocka_unit_test(covering_is_matching_of_everything),
        cmocka_unit_test(wildcards_over_public_suffixes_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
