#include "tests/unit/policy/unit.h"

typedef struct row {
    const char *in;
    const char *out; /* NULL = refused */
    const char *why; /* part of the detail */
} row;

static void check(const row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char out[STK_NAME_MAX] = "untouched";
        bool literal = false;
        stk_err err = {.code = STK_OK};
        int rc = stk_host_canonical(stk_str_of(rows[i].in), out, &literal, &err);
        if (rows[i].out) {
            if (rc != 0)
                fail_msg("\"%s\" was refused: %s", rows[i].in, err.detail);
            assert_string_equal(out, rows[i].out);
        } else {
            if (rc == 0)
                fail_msg("\"%s\" passed as \"%s\"", rows[i].in, out);
            assert_int_equal(rc, -STK_E_FIELD);
            assert_string_equal(out, "untouched");
            if (rows[i].why && !strstr(err.detail, rows[i].why))
                fail_msg("\"%s\": \"%s\" does not say \"%s\"", rows[i].in, err.detail, rows[i].why);
        }
    }
}

static void names_have_one_form(void **state)
{
    static const row rows[] = {
        {"allowed.example", "allowed.example", NULL},
        {"ALLOWED.Example", "allowed.example", NULL},
        {"allowed.example.", "allowed.example", NULL},
        {"localhost", "localhost", NULL},
        {"_dmarc.allowed.example", "_dmarc.allowed.example", NULL},
        {"a_b.test", "a_b.test", NULL},
        {"r3---sn-4g5e6nsk.example.com", "r3---sn-4g5e6nsk.example.com", NULL},
        {"1e100.net", "1e100.net", NULL},
        {"3com.com", "3com.com", NULL},
        {"0x7f.com", "0x7f.com", NULL},
    };
    check(rows, STK_COUNT(rows));
}

static void what_is_no_name_is_refused(void **state)
{
    static const row rows[] = {
        {"", NULL, "empty"},
        {".", NULL, "empty"},
        {"..", NULL, "empty"},
        {".example.com", NULL, "empty"},
        {"example..com", NULL, "empty"},
        {"example.com..", NULL, "empty"},
        {"exa mple.com", NULL, "0x20"},
        {"a\r\nb", NULL, "0x0d"},
        {"a\tb", NULL, "0x09"},
        {"evil.example%00.allowed.example", NULL, "'%'"},
        {"%61llowed.example", NULL, "'%'"},
        {"user@allowed.example", NULL, "'@'"},
        {"evil.example#", NULL, "'#'"},
        {"evil.example\\", NULL, "'\\'"},
        {"a/b", NULL, "'/'"},
        {"a:443", NULL, "':'"},
        {"*.example.com", NULL, "'*'"},
        {"-a.example", NULL, "'-'"},
        {"a-.example", NULL, "'-'"},
        {"a\x7f.example", NULL, "0x7f"},
        {"::1", NULL, "':'"},
    };
    check(rows, STK_COUNT(rows));
}

static void a_nul_byte_never_ends_a_name(void **state)
{
    char out[STK_NAME_MAX];
    bool literal;
    assert_int_equal(stk_host_canonical(stk_str_n("allowed.com\0.evil.com", 21), out, &literal, NULL),
                     -STK_E_FIELD);
    assert_int_equal(stk_host_canonical(stk_str_n("allowed.com\0", 12), out, &literal, NULL), -STK_E_FIELD);
}

static void lengths_are_those_of_dns(void **state)
{
    char name[400], out[STK_NAME_MAX];
    bool literal;
    for (size_t i = 0; i < sizeof(name); i++)
        name[i] = i % 50 == 49 ? '.' : 'a';
    assert_int_equal(stk_host_canonical(stk_str_n(name, 253), out, &literal, NULL), 0);
    assert_int_equal(strlen(out), 253);
    assert_int_equal(stk_host_canonical(stk_str_n(name, 254), out, &literal, NULL), -STK_E_FIELD);
    memset(name, 'a', 64);
    assert_int_equal(stk_host_canonical(stk_str_n(name, 63), out, &literal, NULL), 0);
    assert_int_equal(stk_host_canonical(stk_str_n(name, 64), out, &literal, NULL), -STK_E_FIELD);
    memset(name, '.', sizeof(name));
    name[0] = 'a';
    assert_int_equal(stk_host_canonical(stk_str_n(name, sizeof(name)), out, &literal, NULL), -STK_E_FIELD);
    char big[2000];
    memset(big, 'a', sizeof(big));
    assert_int_equal(stk_host_canonical(stk_str_n(big, sizeof(big)), out, &literal, NULL), -STK_E_FIELD);
}

static void a_name_fits_when_only_its_trailing_dot_is_over(void **state)
{
    char name[254], out[STK_NAME_MAX];
    bool literal;
    for (size_t i = 0; i < 253; i++)
        name[i] = i % 50 == 49 ? '.' : 'a';
    name[253] = '.';
    assert_int_equal(stk_host_canonical(stk_str_n(name, 254), out, &literal, NULL), 0);
}

static void foreign_letters_become_a_labels(void **state)
{
    static const row rows[] = {
        {"b\u00fccher.test", "xn--bcher-kva.test", NULL},
        {"B\u00dcCHER.test", "xn--bcher-kva.test", NULL},
        {"xn--bcher-kva.test", "xn--bcher-kva.test", NULL},
        {"XN--BCHER-KVA.test", "xn--bcher-kva.test", NULL},
        {"m\u00fcnchen.de", "xn--mnchen-3ya.de", NULL},
        {"fa\u00df.de", "xn--fa-hia.de", NULL},
        {"\u03b2\u03cc\u03bb\u03bf\u03c2.com", "xn--nxasmm1c.com", NULL},
        {"\u0392\u038c\u039b\u039f\u03c2.com", "xn--nxasmm1c.com", NULL},
        {"\u043f\u0440\u0438\u043c\u0435\u0440.\u0438\u0441\u043f\u044b\u0442\u0430\u043d\u0438\u0435",
         "xn--e1afmkfd.xn--80akhbyknj4f", NULL},
        {"\u041f\u0420\u0418\u041c\u0415\u0420.com", "xn--e1afmkfd.com", NULL},
        {"\u4f8b\u3048.\u30c6\u30b9\u30c8", "xn--r8jz45g.xn--zckzah", NULL},
        {"\uc2e4\ub840.\ud14c\uc2a4\ud2b8", "xn--9n2bp8q.xn--9t4b11yi5a", NULL},
        {"\u05d3\u05d5\u05d2\u05de\u05d4.com", "xn--6dbbec0c.com", NULL},
        {"xn--i-7iq.ws", "xn--i-7iq.ws", NULL}, /* an emoji: an A-label is unambiguous */
        {"allowed.example", "allowed.example", NULL},
    };
    check(rows, STK_COUNT(rows));
}

static void what_has_no_canonical_form_here_is_refused(void **state)
{
    static const row rows[] = {
        {"bu\u0308cher.test", NULL, "U+0308"},        /* not composed */
        {"\uff41llowed.example", NULL, "U+FF41"},     /* full width */
        {"\uff11\uff12\uff17.0.0.1", NULL, "U+FF11"}, /* full-width digits */
        {"allowed\u3002example", NULL, "U+3002"},     /* ideographic full stop */
        {"\ufb01sh.example", NULL, "U+FB01"},         /* ligature */
        {"\u212bngstrom.example", NULL, "U+212B"},    /* a singleton */
        {"a\u00adb.example", NULL, "U+00AD"},         /* soft hyphen */
        {"a\u200bb.example", NULL, "U+200B"},         /* zero width */
        {"a\u202eb.example", NULL, "U+202E"},         /* direction override */
        {"\u0130stanbul.example", NULL, "U+0130"},    /* dotted capital I */
        {"a\u2044b.example", NULL, "U+2044"},         /* fraction slash */
        {"\xc3(.example", NULL, "UTF-8"},
        {"\xed\xa0\x80.example", NULL, "UTF-8"}, /* surrogate */
        {"\xc0\xae.example", NULL, "UTF-8"},     /* overlong dot */
        {"\xff.example", NULL, "UTF-8"},
        {"-\u00fc.example", NULL, "'-'"},
        {"ab--\u00fc.example", NULL, "'--'"},
        {"\u05d0a.example", NULL, "right-to-left"},
        {"\u00fc_a.example", NULL, "U+005F"},
    };
    check(rows, STK_COUNT(rows));
}

static void an_a_label_must_decode_to_a_canonical_name(void **state)
{
    static const row rows[] = {
        {"xn--.example", NULL, "'-'"},
        {"xn--a.example", NULL, "not canonical"},
        {"xn--a-b-.example", NULL, "'-'"},
        {"xn--b-99999999.example", NULL, "does not decode"},
        {"xn--99999999999.example", NULL, "does not decode"},
        {"xn--allowed-.example", NULL, "'-'"},
        {"xn--a_b-kva.example", NULL, "not canonical"},
        {"xn--bcher-kva9.example", NULL, NULL},
        {"xn--bcher-2pa.example", NULL, "not canonical"},
    };
    check(rows, STK_COUNT(rows));
}

static void a_homograph_is_another_name(void **state)
{
    char latin[STK_NAME_MAX], cyrillic[STK_NAME_MAX];
    bool literal;
    assert_int_equal(stk_host_canonical(STK_STR("allowed.example"), latin, &literal, NULL), 0);
    assert_int_equal(stk_host_canonical(STK_STR("\u0430llowed.example"), cyrillic, &literal, NULL), 0);
    assert_string_not_equal(latin, cyrillic);
}

static void addresses_in_every_spelling_are_told(void **state)
{
    static const char *const literals[] = {
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0X7F.0.0.1",
        "017700000001",
        "0177.0.0.1",
        "169.254.169.254",
        "2852039166",
        "0.0.0.0",
        "0",
        "0x",
        "93.184.216.34",
        "1.2.3.4.5",
        "999.999.999.999",
        "127.0.0.1.",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[0:0:0:0:0:ffff:7f00:1]",
        "[::]",
        "foo.1",
        "foo.0x7f",
    };
    static const char *const names[] = {"a.b", "1.2.3.a", "0x7g", "1e100.net", "localhost", "x0"};
    char out[STK_NAME_MAX];
    bool literal;
    for (size_t i = 0; i < STK_COUNT(literals); i++) {
        literal = false;
        assert_int_equal(stk_host_canonical(stk_str_of(literals[i]), out, &literal, NULL), 0);
        if (!literal)
            fail_msg("%s is not told as an address", literals[i]);
    }
    for (size_t i = 0; i < STK_COUNT(names); i++) {
        literal = true;
        assert_int_equal(stk_host_canonical(stk_str_of(names[i]), out, &literal, NULL), 0);
        if (literal)
            fail_msg("%s is told as an address", names[i]);
    }
    assert_int_equal(stk_host_canonical(STK_STR("[0:0:0:0:0:FFFF:7f00:1]"), out, &literal, NULL), 0);
    assert_string_equal(out, "[::ffff:127.0.0.1]");
}

static void brackets_hold_an_ipv6_address_without_a_zone(void **state)
{
    static const row rows[] = {
        {"[stripe.test]", NULL, "IPv6"},
        {"[::1", NULL, "IPv6"},
        {"[::1%25.allowed.example]", NULL, "IPv6"},
        {"[::ffff:127.0.0.1%x.allowed.example]", NULL, "IPv6"},
        {"[]", NULL, "IPv6"},
        {"[", NULL, "IPv6"},
        {"[127.0.0.1]", NULL, "IPv6"},
        {"[fe80::1%eth0]", NULL, "IPv6"},
        {"[::1]a", NULL, "IPv6"},
        {"[::1].", NULL, "IPv6"},
    };
    check(rows, STK_COUNT(rows));
}

static void canonical_form_is_a_fixed_point(void **state)
{
    static const char *const names[] = {"B\u00dcCHER.Test.", "\u4f8b\u3048.\u30c6\u30b9\u30c8",
                                        "[::FFFF:1.2.3.4]", "A.B.C.", "0X7F.1"};
    for (size_t i = 0; i < STK_COUNT(names); i++) {
        char once[STK_NAME_MAX], twice[STK_NAME_MAX];
        bool a, b;
        assert_int_equal(stk_host_canonical(stk_str_of(names[i]), once, &a, NULL), 0);
        assert_int_equal(stk_host_canonical(stk_str_of(once), twice, &b, NULL), 0);
        assert_string_equal(once, twice);
        assert_int_equal(a, b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_have_one_form),
        cmocka_unit_test(what_is_no_name_is_refused),
        cmocka_unit_test(a_nul_byte_never_ends_a_name),
        cmocka_unit_test(lengths_are_those_of_dns),
        cmocka_unit_test(a_name_fits_when_only_its_trailing_dot_is_over),
        cmocka_unit_test(foreign_letters_become_a_labels),
        cmocka_unit_test(what_has_no_canonical_form_here_is_refused),
        cmocka_unit_test(an_a_label_must_decode_to_a_canonical_name),
        cmocka_unit_test(a_homograph_is_another_name),
        cmocka_unit_test(addresses_in_every_spelling_are_told),
        cmocka_unit_test(brackets_hold_an_ipv6_address_without_a_zone),
        cmocka_unit_test(canonical_form_is_a_fixed_point),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
