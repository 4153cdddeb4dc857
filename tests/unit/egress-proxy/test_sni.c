#include "egress-proxy/sni.h"
#include "tests/unit/egress-proxy/unit.h"

/* A hello of these extensions in records of at most `size` handshake bytes. */
static size_t make(const char *extensions, size_t n, size_t size, uint8_t *out)
{
    uint8_t body[4096];
    size_t at = 4;
    body[at++] = 3;
    body[at++] = 3;
    memset(body + at, 7, 32);
    at += 32;
    body[at++] = 0;
    memcpy(body + at, "\0\2\x13\1\1\0", 6);
    at += 6;
    body[at++] = (uint8_t)(n >> 8);
    body[at++] = (uint8_t)n;
    memcpy(body + at, extensions, n);
    at += n;
    body[0] = 1;
    body[1] = 0;
    body[2] = (uint8_t)((at - 4) >> 8);
    body[3] = (uint8_t)(at - 4);
    size_t used = 0;
    for (size_t from = 0; from < at; from += size) {
        size_t part = stk_min(size, at - from);
        out[used++] = 22;
        out[used++] = 3;
        out[used++] = 1;
        out[used++] = (uint8_t)(part >> 8);
        out[used++] = (uint8_t)part;
        memcpy(out + used, body + from, part);
        used += part;
    }
    return used;
}

#define EXT(text) text, sizeof(text) - 1
#define SNI_A                                                                                                \
    "\0\0\0\x0e\0\x0c\0\0\x09"                                                                               \
    "a.example"
#define SNI_B                                                                                                \
    "\0\0\0\x0e\0\x0c\0\0\x09"                                                                               \
    "b.example"
#define SNI_DOT                                                                                              \
    "\0\0\0\x0f\0\x0d\0\0\x0a"                                                                               \
    "A.example."
#define SNI_AB                                                                                               \
    "\0\0\0\x1a\0\x18\0\0\x09"                                                                               \
    "a.example"                                                                                              \
    "\0\0\x09"                                                                                               \
    "b.example"
#define SNI_AA                                                                                               \
    "\0\0\0\x1a\0\x18\0\0\x09"                                                                               \
    "a.example"                                                                                              \
    "\0\0\x09"                                                                                               \
    "a.example"
#define SNI_IP                                                                                               \
    "\0\0\0\x0e\0\x0c\0\0\x09"                                                                               \
    "127.0.0.1"
#define SNI_NUL                                                                                              \
    "\0\0\0\x0e\0\x0c\0\0\x09"                                                                               \
    "a.exam\0le"
#define SNI_EMPTY "\0\0\0\x05\0\x03\0\0\0"
#define SNI_NONE  "\0\0\0\x02\0\0"
#define SNI_TYPE                                                                                             \
    "\0\0\0\x0e\0\x0c\1\0\x09"                                                                               \
    "a.example"
#define SNI_LONG                                                                                             \
    "\0\0\0\x0f\0\x0c\0\0\x09"                                                                               \
    "a.example"                                                                                              \
    "x"
#define ECH   "\xfe\x0d\0\1x"
#define OTHER "\0\x2b\0\3\2\3\4"

static void hellos_are_judged_by_mode(void **state)
{
    enum { OK = STK_R_ALLOWED, MIS = STK_R_SNI_MISMATCH, OPQ = STK_R_OPAQUE_TUNNEL };
    static const struct {
        const char *extensions;
        size_t n;
        int match, require;
    } rows[] = {
        {EXT(SNI_A), OK, OK},      {EXT(OTHER SNI_A), OK, OK},   {EXT(SNI_A OTHER), OK, OK},
        {EXT(SNI_DOT), OK, OK},    {EXT(SNI_B), MIS, MIS},       {EXT(SNI_AB), MIS, OPQ},
        {EXT(SNI_AA), OK, OPQ},    {EXT(SNI_A SNI_A), OPQ, OPQ}, {EXT(SNI_A SNI_B), OPQ, OPQ},
        {EXT(SNI_IP), MIS, OPQ},   {EXT(SNI_NUL), MIS, MIS},     {EXT(SNI_EMPTY), OPQ, OPQ},
        {EXT(SNI_NONE), OPQ, OPQ}, {EXT(SNI_TYPE), OPQ, OPQ},    {EXT(SNI_LONG), OPQ, OPQ},
        {EXT(SNI_A ECH), OK, OPQ}, {EXT(OTHER), OK, OPQ},        {EXT(""), OK, OPQ},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++)
        for (size_t size = 1; size < 200; size += size < 8 ? 1 : 60) {
            uint8_t bytes[8192];
            stk_hello hello;
            size_t n = make(rows[i].extensions, rows[i].n, size, bytes);
            stk_hello_state got = stk_hello_read(bytes, n, &hello);
            stk_reason match = stk_sni_judge(STK_TLS_MATCH, got, &hello, "a.example");
            stk_reason require = stk_sni_judge(STK_TLS_REQUIRE, got, &hello, "a.example");
            if ((int)match != rows[i].match || (int)require != rows[i].require)
                fail_msg("row %zu, records of %zu: %s, %s", i, size, stk_reason_code(match),
                         stk_reason_code(require));
            assert_int_equal(stk_sni_judge(STK_TLS_OFF, got, &hello, "a.example"), STK_R_ALLOWED);
        }
}

static void every_part_of_a_hello_asks_for_more(void **state)
{
    uint8_t bytes[8192];
    stk_hello hello;
    size_t n = make(EXT(SNI_A OTHER), 10, bytes);
    for (size_t i = 0; i < n; i++) {
        uint8_t *exact = malloc(i ? i : 1);
        memcpy(exact, bytes, i);
        assert_int_equal(stk_hello_read(exact, i, &hello), STK_HELLO_MORE);
        assert_int_equal(stk_sni_judge(STK_TLS_MATCH, STK_HELLO_MORE, &hello, "a.example"),
                         STK_R_OPAQUE_TUNNEL);
        free(exact);
    }
    memcpy(bytes + n, "more", 4);
    assert_int_equal(stk_hello_read(bytes, n + 4, &hello), STK_HELLO_WHOLE);
}

static void what_is_no_hello_is_told_apart(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        stk_hello_state state;
    } rows[] = {
        {EXT("GET / HTTP/1.1"), STK_HELLO_PLAIN},
        {EXT("\0\0\0\x08\x04\xd2\x16\x2f"), STK_HELLO_PLAIN},
        {EXT("\x80\x2e\1"), STK_HELLO_PLAIN},
        {EXT("\x16"), STK_HELLO_MORE},
        {EXT("\x16\x02"), STK_HELLO_BAD},
        {EXT("\x16\x03\x01\0\0"), STK_HELLO_BAD},
        {EXT("\x16\x03\x01\x40\x01"), STK_HELLO_BAD},
        {EXT("\x16\x03\x01\0\1\2"), STK_HELLO_BAD},
        {EXT("\x16\x03\x01\0\4\1\xff\xff\xff"), STK_HELLO_BAD},
        {EXT("\x16\x03\x01\0\2\1\0\x17\x03\x03"), STK_HELLO_BAD},
        {EXT("\x16\x03\x01\0\5\1\0\0\1\3"), STK_HELLO_BAD},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_hello hello;
        stk_hello_state got = stk_hello_read((const uint8_t *)rows[i].bytes, rows[i].n, &hello);
        if (got != rows[i].state)
            fail_msg("row %zu: %d", i, got);
    }
    assert_int_equal(stk_sni_judge(STK_TLS_MATCH, STK_HELLO_PLAIN, &(stk_hello){0}, "a.example"),
                     STK_R_ALLOWED);
    assert_int_equal(stk_sni_judge(STK_TLS_REQUIRE, STK_HELLO_PLAIN, &(stk_hello){0}, "a.example"),
                     STK_R_OPAQUE_TUNNEL);
}

static void a_hello_over_the_bound_is_bad_and_not_waited_for(void **state)
{
    static uint8_t bytes[STK_HELLO_MAX + 100];
    stk_hello hello;
    memcpy(bytes, "\x16\x03\x01\x3f\xff\1\0\x3f\xf0", 9);
    assert_int_equal(stk_hello_read(bytes, 100, &hello), STK_HELLO_MORE);
    assert_int_equal(stk_hello_read(bytes, STK_HELLO_MAX, &hello), STK_HELLO_BAD);
    assert_int_equal(stk_hello_read(bytes, sizeof(bytes), &hello), STK_HELLO_BAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hellos_are_judged_by_mode),
        cmocka_unit_test(every_part_of_a_hello_asks_for_more),
        cmocka_unit_test(what_is_no_hello_is_told_apart),
        cmocka_unit_test(a_hello_over_the_bound_is_bad_and_not_waited_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
