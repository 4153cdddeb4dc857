/* The chain: pure. Expected values computed with Python's hashlib. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "proto/store/chain.h"

static void each_hash_covers_the_row_and_the_hash_before(void **state)
{
    static const struct {
        stk_str row;
        const char *hash;
    } rows[] = {
        {STK_STR("{\"a\":1}"), "b06a229070741292512e8760f470dd7a4c46ccfdf253df781d88dabe58c1ccb1"},
        {STK_STR(""), "b09c1148a81e47e24ece9c75f07f17d15c761ae37f61fc1320e22c9858f4189d"},
        {STK_STR("\0\xff"), "5d59a6539fc48307ebb1b7862fefb8d8b3374a3d06978e07fd8f6e2d3403a148"},
    };
    stk_chain chain = {0};
    stk_buf scratch STK_AUTO(stk_buf_done) = STK_BUF(4096);
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        uint8_t hash[STK_SHA256];
        char text[2 * STK_SHA256 + 1];
        assert_int_equal(stk_chain_next(&chain, rows[i].row, &scratch, hash), 0);
        assert_int_equal(chain.seq, i);
        stk_chain_add(&chain, hash);
        stk_hex(chain.hash, sizeof(chain.hash), text);
        assert_string_equal(text, rows[i].hash);
    }
    assert_int_equal(chain.seq, 3);
}

static void the_digest_of_heads_depends_on_each_part(void **state)
{
    static const struct {
        int32_t partition;
        int64_t seq;
        uint8_t first;
    } rows[] = {{0, 1, 0}, {1, 1, 0}, {0, 2, 0}, {0, 1, 1}, {256, 1, 0}, {0, INT64_C(1) << 40, 0}};
    uint8_t digests[STK_COUNT(rows)][STK_SHA256];
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_chain_heads heads = {.bytes = STK_BUF(4096)};
        stk_chain chain = {.seq = rows[i].seq, .hash = {rows[i].first}};
        assert_int_equal(stk_chain_heads_add(&heads, rows[i].partition, &chain), 0);
        stk_chain_heads_digest(&heads, digests[i]);
        stk_buf_done(&heads.bytes);
        for (size_t k = 0; k < i; k++)
            assert_memory_not_equal(digests[i], digests[k], STK_SHA256);
    }
}

static void a_row_over_the_scratch_is_an_error(void **state)
{
    stk_chain chain = {0};
    stk_buf scratch STK_AUTO(stk_buf_done) = STK_BUF(40);
    uint8_t hash[STK_SHA256];
    assert_int_equal(stk_chain_next(&chain, STK_STR("12345678"), &scratch, hash), 0);
    assert_int_equal(stk_chain_next(&chain, STK_STR("123456789"), &scratch, hash), -STK_E_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_hash_covers_the_row_and_the_hash_before),
        cmocka_unit_test(the_digest_of_heads_depends_on_each_part),
        cmocka_unit_test(a_row_over_the_scratch_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
