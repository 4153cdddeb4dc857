#include "egress-proxy/dns_message.h"
#include "tests/unit/egress-proxy/unit.h"

/* A message being written. */
typedef struct message {
    uint8_t p[4096];
    size_t n;
} message;

static void raw(message *m, const void *p, size_t n)
{
    memcpy(m->p + m->n, p, n);
    m->n += n;
}

static void num(message *m, unsigned v, int bytes)
{
    while (bytes-- > 0)
        m->p[m->n++] = (uint8_t)(v >> (8 * bytes));
}

static void name(message *m, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, ".");
        num(m, (unsigned)n, 1);
        raw(m, text, n);
        text += n + (text[n] == '.');
    }
    num(m, 0, 1);
}

static message start(unsigned flags, unsigned answers)
{
    message m = {.n = 0};
    num(&m, 0x1234, 2);
    num(&m, flags, 2);
    num(&m, 1, 2);
    num(&m, answers, 2);
    num(&m, 0, 4);
    name(&m, "a.example");
    num(&m, STK_DNS_A, 2);
    num(&m, 1, 2);
    return m;
}

static void record(message *m, const char *owner, unsigned type, unsigned ttl, const void *data, unsigned n)
{
    name(m, owner);
    num(m, type, 2);
    num(m, 1, 2);
    num(m, ttl, 4);
    num(m, n, 2);
    raw(m, data, n);
}

static void cname(message *m, const char *owner, const char *to)
{
    message data = {.n = 0};
    name(&data, to);
    record(m, owner, STK_DNS_CNAME, 60, data.p, (unsigned)data.n);
}

static stk_dns_verdict decode(const message *m, stk_dns_answer *ret)
{
    /* Exactly sized, so that a sanitizer sees a read beyond. */
    uint8_t *exact = malloc(m->n ? m->n : 1);
    memcpy(exact, m->p, m->n);
    stk_dns_verdict verdict = stk_dns_decode(exact, m->n, 0x1234, "a.example", STK_DNS_A, ret);
    free(exact);
    return verdict;
}

static const uint8_t ip[4] = {93, 184, 216, 34};

static void a_question_is_what_rfc_1035_says(void **state)
{
    static const uint8_t want[] = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01"
                                  "a\x07"
                                  "example\x00\x00\x1c\x00\x01";
    uint8_t out[STK_DNS_QUERY_MAX];
    assert_int_equal(stk_dns_encode(0x1234, "a.example", STK_DNS_AAAA, out), sizeof(want) - 1);
    assert_memory_equal(out, want, sizeof(want) - 1);
    assert_int_equal(stk_dns_encode(1, "a..b", STK_DNS_A, out), 0);
}

static void the_longest_name_fits_and_a_longer_one_does_not(void **state)
{
    char text[300];
    uint8_t out[STK_DNS_QUERY_MAX];
    memset(text, 'a', sizeof(text));
    text[63] = text[127] = text[191] = '.';
    text[253] = '\0';
    assert_int_equal(stk_dns_encode(1, text, STK_DNS_A, out), 12 + 255 + 4);
    text[253] = 'a';
    text[254] = '\0';
    assert_int_equal(stk_dns_encode(1, text, STK_DNS_A, out), 0);
}

static void addresses_at_the_end_of_a_chain_count_and_others_do_not(void **state)
{
    stk_dns_answer got;
    message m = start(0x8180, 5);
    record(&m, "C.Example", STK_DNS_A, 30, ip, 4);
    cname(&m, "b.example", "c.example");
    cname(&m, "a.example", "b.EXAMPLE");
    record(&m, "evil.example", STK_DNS_A, 60, "\x0a\0\0\x01", 4);
    record(&m, "c.example", 16, 60, "\x03txt", 4);
    assert_int_equal(decode(&m, &got), STK_DNS_OK);
    assert_int_equal(got.n, 1);
    assert_int_equal(got.ttl, 30);
    assert_memory_equal(&got.addrs[0].v4.sin_addr, ip, 4);
}

static void what_is_not_the_answer_to_the_question_is_waited_past(void **state)
{
    stk_dns_answer got;
    message good = start(0x8180, 1);
    record(&good, "a.example", STK_DNS_A, 60, ip, 4);
    assert_int_equal(decode(&good, &got), STK_DNS_OK);
    static const struct {
        size_t at;
        uint8_t value;
    } rows[] = {{0, 0x13}, {1, 0},    {2, 0x01}, {2, 0x89}, {5, 2},
                {5, 0},    {13, 'b'}, {25, 2},   {24, 28},  {26, 3}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        message m = good;
        m.p[rows[i].at] = rows[i].value;
        if (m.p[rows[i].at] == good.p[rows[i].at])
            fail_msg("row %zu changes nothing", i);
        assert_int_equal(decode(&m, &got), STK_DNS_STRAY);
    }
    for (size_t n = 0; n < 27; n++) {
        message m = good;
        m.n = n;
        assert_int_equal(decode(&m, &got), STK_DNS_STRAY);
    }
}

static void response_codes_and_truncation_are_told_apart(void **state)
{
    static const struct {
        unsigned flags;
        stk_dns_verdict verdict;
    } rows[] = {{0x8180, STK_DNS_OK},       {0x8183, STK_DNS_NXDOMAIN}, {0x8182, STK_DNS_SERVFAIL},
                {0x8185, STK_DNS_SERVFAIL}, {0x8380, STK_DNS_CUT},      {0x8383, STK_DNS_CUT}};
    stk_dns_answer got;
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        message m = start(rows[i].flags, 0);
        assert_int_equal(decode(&m, &got), rows[i].verdict);
        assert_int_equal(got.n, 0);
    }
}

static void a_loop_a_second_alias_or_a_long_chain_is_malformed(void **state)
{
    stk_dns_answer got;
    message loop = start(0x8180, 2);
    cname(&loop, "a.example", "b.example");
    cname(&loop, "b.example", "a.example");
    assert_int_equal(decode(&loop, &got), STK_DNS_MALFORMED);
    message two = start(0x8180, 2);
    cname(&two, "a.example", "b.example");
    cname(&two, "a.example", "c.example");
    assert_int_equal(decode(&two, &got), STK_DNS_MALFORMED);
    for (unsigned links = STK_DNS_CHAIN_MAX; links <= STK_DNS_CHAIN_MAX + 1; links++) {
        message m = start(0x8180, links + 1);
        char from[32] = "a.example", to[32];
        for (unsigned i = 0; i < links; i++) {
            snprintf(to, sizeof(to), "c%u.example", i);
            cname(&m, from, to);
            memcpy(from, to, sizeof(from));
        }
        record(&m, from, STK_DNS_A, 60, ip, 4);
        assert_int_equal(decode(&m, &got), links > STK_DNS_CHAIN_MAX ? STK_DNS_MALFORMED : STK_DNS_OK);
    }
}

static void every_cut_of_an_answer_is_malformed(void **state)
{
    stk_dns_answer got;
    message m = start(0x8180, 2);
    size_t head = m.n;
    cname(&m, "a.example", "b.example");
    record(&m, "b.example", STK_DNS_A, 60, ip, 4);
    for (size_t n = head; n < m.n; n++) {
        message cut = m;
        cut.n = n;
        assert_int_equal(decode(&cut, &got), STK_DNS_MALFORMED);
    }
}

static void pointers_only_go_backwards(void **state)
{
    stk_dns_answer got;
    static const struct {
        unsigned pointer;
        stk_dns_verdict verdict;
    } rows[] = {{0xc00c, STK_DNS_OK},        {0xc01b, STK_DNS_MALFORMED}, {0xc01d, STK_DNS_MALFORMED},
                {0xc000, STK_DNS_MALFORMED}, {0xffff, STK_DNS_MALFORMED}, {0x8001, STK_DNS_MALFORMED}};
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        message m = start(0x8180, 1);
        assert_int_equal(m.n, 0x1b);
        num(&m, rows[i].pointer, 2);
        num(&m, STK_DNS_A, 2);
        num(&m, 1, 2);
        num(&m, 60, 4);
        num(&m, 4, 2);
        raw(&m, ip, 4);
        assert_int_equal(decode(&m, &got), rows[i].verdict);
    }
}

static void odd_addresses_and_too_many_are_malformed(void **state)
{
    stk_dns_answer got;
    message odd = start(0x8180, 1);
    record(&odd, "a.example", STK_DNS_A, 60, "\x01\x02\x03\x04\x05", 5);
    assert_int_equal(decode(&odd, &got), STK_DNS_MALFORMED);
    for (unsigned n = STK_ADDRS_MAX; n <= STK_ADDRS_MAX + 1; n++) {
        message m = start(0x8180, n);
        for (unsigned i = 0; i < n; i++)
            record(&m, "a.example", STK_DNS_A, 60, ip, 4);
        assert_int_equal(decode(&m, &got), n > STK_ADDRS_MAX ? STK_DNS_MALFORMED : STK_DNS_OK);
    }
    message many = start(0x8180, STK_DNS_RECORDS_MAX + 1);
    assert_int_equal(decode(&many, &got), STK_DNS_MALFORMED);
}

static void a_label_with_a_dot_inside_is_no_dot(void **state)
{
    stk_dns_answer got;
    message m = start(0x8180, 1);
    num(&m, 9, 1);
    raw(&m, "a.example", 9);
    num(&m, 0, 1);
    num(&m, STK_DNS_A, 2);
    num(&m, 1, 2);
    num(&m, 60, 4);
    num(&m, 4, 2);
    raw(&m, ip, 4);
    assert_int_equal(decode(&m, &got), STK_DNS_OK);
    assert_int_equal(got.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_is_what_rfc_1035_says),
        cmocka_unit_test(the_longest_name_fits_and_a_longer_one_does_not),
        cmocka_unit_test(addresses_at_the_end_of_a_chain_count_and_others_do_not),
        cmocka_unit_test(what_is_not_the_answer_to_the_question_is_waited_past),
        cmocka_unit_test(response_codes_and_truncation_are_told_apart),
        cmocka_unit_test(a_loop_a_second_alias_or_a_long_chain_is_malformed),
        cmocka_unit_test(every_cut_of_an_answer_is_malformed),
        cmocka_unit_test(pointers_only_go_backwards),
        cmocka_unit_test(odd_addresses_and_too_many_are_malformed),
        cmocka_unit_test(a_label_with_a_dot_inside_is_no_dot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
