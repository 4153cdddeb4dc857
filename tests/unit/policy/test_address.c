#include "tests/unit/policy/unit.h"
#include <arpa/inet.h>

/* The registries as they stand there, a row each, as text: another form than the table under test has. */
static const struct {
    const char *net, *cls;
} ranges[] = {{"0.0.0.0/8", "unspecified"},
              {"0.0.0.0/32", "unspecified"},
              {"10.0.0.0/8", "private"},
              {"100.64.0.0/10", "cgnat"},
              {"127.0.0.0/8", "loopback"},
              {"169.254.0.0/16", "link-local"},
              {"172.16.0.0/12", "private"},
              {"192.0.0.0/24", "special"},
              {"192.0.0.0/29", "special"},
              {"192.0.0.8/32", "special"},
              {"192.0.0.9/32", "special"},
              {"192.0.0.10/32", "special"},
              {"192.0.0.170/32", "special"},
              {"192.0.0.171/32", "special"},
              {"192.0.2.0/24", "documentation"},
              {"192.31.196.0/24", "special"},
              {"192.52.193.0/24", "special"},
              {"192.88.99.0/24", "special"},
              {"192.88.99.2/32", "special"},
              {"192.168.0.0/16", "private"},
              {"192.175.48.0/24", "special"},
              {"198.18.0.0/15", "benchmark"},
              {"198.51.100.0/24", "documentation"},
              {"203.0.113.0/24", "documentation"},
              {"240.0.0.0/4", "reserved"},
              {"255.255.255.255/32", "broadcast"},
              {"224.0.0.0/4", "multicast"},
              {"168.63.129.16/32", "metadata"},
              {"::1/128", "loopback"},
              {"::/128", "unspecified"},
              {"::ffff:0:0/96", "embedded-v4"},
              {"64:ff9b::/96", "embedded-v4"},
              {"64:ff9b:1::/48", "embedded-v4"},
              {"100::/64", "special"},
              {"100:0:0:1::/64", "special"},
              {"2001::/23", "special"},
              {"2001::/32", "embedded-v4"},
              {"2001:1::1/128", "special"},
              {"2001:1::2/128", "special"},
              {"2001:1::3/128", "special"},
              {"2001:2::/48", "benchmark"},
              {"2001:3::/32", "special"},
              {"2001:4:112::/48", "special"},
              {"2001:10::/28", "special"},
              {"2001:20::/28", "special"},
              {"2001:30::/28", "special"},
              {"2001:db8::/32", "documentation"},
              {"2002::/16", "embedded-v4"},
              {"2620:4f:8000::/48", "special"},
              {"3fff::/20", "documentation"},
              {"5f00::/16", "special"},
              {"fc00::/7", "private"},
              {"fe80::/10", "link-local"},
              {"ff00::/8", "multicast"},
              {"::/96", "embedded-v4"},
              {"::ffff:0:0:0/96", "embedded-v4"},
              {"fec0::/10", "private"},
              {"3ffe::/16", "special"}};

/* Named by cloud vendors; each wins over the range that holds it. */
static const char *const metadata[] = {
    "168.63.129.16", "169.254.169.254",    "169.254.170.2", "169.254.170.23",    "169.254.169.253",
    "169.254.42.42", "100.100.100.200",    "192.0.0.192",   "fd00:ec2::254",     "fd00:ec2::23",
    "fd20:ce::254",  "fd00:c1::a9fe:a9fe", "fd00:42::42",   "fd00:a9fe:a9fe::1", "fd00:100::100:200",
};

typedef unsigned __int128 wide;

typedef struct spot {
    int family;
    wide n;
} spot;

static spot spot_of(const char *text)
{
    uint8_t bytes[16] = {0};
    spot s = {.family = strchr(text, ':') ? AF_INET6 : AF_INET};
    if (inet_pton(s.family, text, bytes) != 1)
        fail_msg("%s", text);
    for (int i = 0; i < (s.family == AF_INET ? 4 : 16); i++)
        s.n = s.n << 8 | bytes[i];
    return s;
}

static struct sockaddr_storage addr_of(spot s)
{
    struct sockaddr_storage ss = {.ss_family = (sa_family_t)s.family};
    bool v4 = s.family == AF_INET;
    uint8_t *at = v4 ? (uint8_t *)&((struct sockaddr_in *)&ss)->sin_addr
                     : ((struct sockaddr_in6 *)&ss)->sin6_addr.s6_addr;
    for (int i = v4 ? 3 : 15; i >= 0; i--, s.n >>= 8)
        at[i] = (uint8_t)s.n;
    return ss;
}

static const char *text_of(spot s)
{
    static char out[64];
    struct sockaddr_storage ss = addr_of(s);
    stk_addr_text((struct sockaddr *)&ss, out);
    return out;
}

static const char *class_of(spot s)
{
    struct sockaddr_storage ss = addr_of(s);
    return stk_addr_class_text(stk_addr_classify((struct sockaddr *)&ss));
}

typedef struct span {
    spot first;
    wide last;
    int bits;
} span;

static span span_of(const char *net)
{
    char ip[64];
    const char *slash = strchr(net, '/');
    assert_non_null(slash);
    assert_true(stk_str_copy(stk_str_n(net, (size_t)(slash - net)), ip, sizeof(ip)));
    span r = {.first = spot_of(ip), .bits = (int)strtol(slash + 1, NULL, 10)};
    int free_bits = (r.first.family == AF_INET ? 32 : 128) - r.bits;
    r.last = r.first.n | (free_bits == 128 ? ~(wide)0 : ((wide)1 << free_bits) - 1);
    return r;
}

/* What the rows above say of an address: the smallest range that holds it. */
static const char *expected(spot s)
{
    for (size_t i = 0; i < STK_COUNT(metadata); i++) {
        spot m = spot_of(metadata[i]);
        if (m.family == s.family && m.n == s.n)
            return "metadata";
    }
    const char *cls = "public";
    if (s.family == AF_INET6 && s.n >> 125 != 1)
        cls = "not-global";
    int best = -1;
    for (size_t i = 0; i < STK_COUNT(ranges); i++) {
        span r = span_of(ranges[i].net);
        if (r.first.family == s.family && s.n >= r.first.n && s.n <= r.last && r.bits > best) {
            best = r.bits;
            cls = ranges[i].cls;
        }
    }
    return cls;
}

static void check(spot s, const char *what, const char *net)
{
    const char *got = class_of(s), *want = expected(s);
    if (strcmp(got, want) != 0)
        fail_msg("%s (%s of %s) is %s, not %s", text_of(s), what, net, got, want);
}

static void every_row_holds_at_both_edges_and_not_beyond(void **state)
{
    for (size_t i = 0; i < STK_COUNT(ranges); i++) {
        span r = span_of(ranges[i].net);
        spot s = r.first;
        check(s, "first", ranges[i].net);
        if (s.n > 0) {
            s.n--;
            check(s, "one before", ranges[i].net);
        }
        s.n = r.last;
        check(s, "last", ranges[i].net);
        wide end = s.family == AF_INET ? 0xffffffffu : ~(wide)0;
        if (s.n < end) {
            s.n++;
            check(s, "one after", ranges[i].net);
        }
    }
}

static void the_first_address_of_a_row_is_never_public(void **state)
{
    for (size_t i = 0; i < STK_COUNT(ranges); i++) {
        span r = span_of(ranges[i].net);
        assert_string_not_equal(class_of(r.first), "public");
        r.first.n = r.last;
        assert_string_not_equal(class_of(r.first), "public");
    }
}

static void metadata_is_named_and_only_it(void **state)
{
    for (size_t i = 0; i < STK_COUNT(metadata); i++) {
        spot s = spot_of(metadata[i]);
        assert_string_equal(class_of(s), "metadata");
        s.n += 2; /* .253 and .254 are both named */
        assert_string_not_equal(class_of(s), "metadata");
    }
}

static void forms_that_embed_a_v4_address_are_refused_whatever_it_is(void **state)
{
    static const char *const rows[] = {
        "::ffff:127.0.0.1",          "::ffff:93.184.216.34",
        "::ffff:169.254.169.254",    "::169.254.169.254",
        "::93.184.216.34",           "::ffff:0:a9fe:a9fe",
        "::ffff:0:5db8:d822",        "64:ff9b::a9fe:a9fe",
        "64:ff9b::5db8:d822",        "64:ff9b:1::a9fe:a9fe",
        "64:ff9b:1:ffff::5db8:d822", "2002:a9fe:a9fe::1",
        "2002:5db8:d822::",          "2001:0:4136:e378:8000:63bf:5601:5601",
        "2606:4700::5efe:a9fe:a9fe", "2606:4700::200:5efe:5db8:d822",
        "fd00::5efe:7f00:1",         "2001:db8::5efe:1.2.3.4",
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        if (strcmp(class_of(spot_of(rows[i])), "embedded-v4") != 0)
            fail_msg("%s is %s", rows[i], class_of(spot_of(rows[i])));
    }
    assert_string_equal(class_of(spot_of("fe80::5efe:127.0.0.1")), "link-local");
    assert_string_equal(class_of(spot_of("2606:4700::100:5efe:a9fe:a9fe")), "public");
}

static void ordinary_addresses_are_public(void **state)
{
    static const char *const rows[] = {
        "93.184.216.34",
        "9.255.255.255",
        "11.0.0.0",
        "172.15.255.255",
        "172.32.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "223.255.255.255",
        "1.1.1.1",
        "8.8.8.8",
        "168.63.129.15",
        "168.63.129.17",
        "2606:4700:4700::1111",
        "2a00:1450::1",
        "2003::1",
        "3ffd:ffff::1",
        "2001:200::1",
        "2000::1",
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++)
        assert_string_equal(class_of(spot_of(rows[i])), "public");
}

static void v6_outside_the_global_block_is_refused(void **state)
{
    static const char *const rows[] = {"4000::1", "1fff:ffff::1", "8000::",    "e000::1",
                                       "200::1",  "100:0:0:2::1", "::1:0:0:0", "5eff::1"};
    for (size_t i = 0; i < STK_COUNT(rows); i++)
        if (strcmp(class_of(spot_of(rows[i])), "not-global") != 0)
            fail_msg("%s is %s", rows[i], class_of(spot_of(rows[i])));
}

static void scopes_and_other_families_are_refused(void **state)
{
    struct sockaddr_storage ss = addr_of(spot_of("2606:4700::1"));
    ((struct sockaddr_in6 *)&ss)->sin6_scope_id = 2;
    assert_int_equal(stk_addr_classify((struct sockaddr *)&ss), STK_ADDR_SCOPED);
    struct sockaddr_storage local = {.ss_family = AF_UNIX};
    assert_int_equal(stk_addr_classify((struct sockaddr *)&local), STK_ADDR_SCOPED);
}

static void what_no_operator_can_open_is_told(void **state)
{
    static const struct {
        const char *addr;
        bool never;
    } rows[] = {
        {"127.0.0.1", true},
        {"0.0.0.0", true},
        {"169.254.1.1", true},
        {"169.254.169.254", true},
        {"168.63.129.16", true},
        {"224.0.0.1", true},
        {"255.255.255.255", true},
        {"::1", true},
        {"::", true},
        {"fe80::1", true},
        {"ff02::1", true},
        {"fd00:ec2::254", true},
        {"::ffff:10.0.0.1", true},
        {"64:ff9b::a00:1", true},
        {"100.100.100.200", true},
        {"10.0.0.1", false},
        {"192.168.1.1", false},
        {"100.64.0.1", false},
        {"fd00::1", false},
        {"240.0.0.1", false},
        {"203.0.113.7", false},
        {"93.184.216.34", false},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        struct sockaddr_storage ss = addr_of(spot_of(rows[i].addr));
        if (stk_addr_never(stk_addr_classify((struct sockaddr *)&ss)) != rows[i].never)
            fail_msg("%s", rows[i].addr);
    }
}

static void addresses_print_with_their_port(void **state)
{
    char out[64];
    struct sockaddr_storage ss = addr_of(spot_of("1.2.3.4"));
    ((struct sockaddr_in *)&ss)->sin_port = htons(443);
    stk_addr_text((struct sockaddr *)&ss, out);
    assert_string_equal(out, "1.2.3.4:443");
    ss = addr_of(spot_of("2001:db8::1"));
    ((struct sockaddr_in6 *)&ss)->sin6_port = htons(8443);
    stk_addr_text((struct sockaddr *)&ss, out);
    assert_string_equal(out, "[2001:db8::1]:8443");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_holds_at_both_edges_and_not_beyond),
        cmocka_unit_test(the_first_address_of_a_row_is_never_public),
        cmocka_unit_test(metadata_is_named_and_only_it),
        cmocka_unit_test(forms_that_embed_a_v4_address_are_refused_whatever_it_is),
        cmocka_unit_test(ordinary_addresses_are_public),
        cmocka_unit_test(v6_outside_the_global_block_is_refused),
        cmocka_unit_test(scopes_and_other_families_are_refused),
        cmocka_unit_test(what_no_operator_can_open_is_told),
        cmocka_unit_test(addresses_print_with_their_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
