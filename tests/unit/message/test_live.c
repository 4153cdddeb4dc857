#include "tests/unit/message/keys.h"
#include "proto/message/live.h"

#define RUN "run-01hf7yat00k3v5w6x7y8z9a1b2"

static void a_piece_opens_with_its_stream_and_bytes(void **state)
{
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = new_keyring();
    static const stk_str pieces[] = {{"", 0}, {"a\0\xff\n", 4}, {"eo", 2}};
    for (size_t i = 0; i < STK_COUNT(pieces); i++)
        for (int stream = 0; stream < 2; stream++) {
            stk_bytes sealed = {0};
            stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(1024);
            bool is_stderr = !stream;
            assert_int_equal(stk_live_seal(ring, RUN, 7, stream, pieces[i], &sealed, NULL), 0);
            assert_int_equal(stk_live_open(ring, RUN, 7, stk_bytes_view(&sealed), &is_stderr, &out, NULL), 0);
            assert_int_equal(is_stderr, stream);
            assert_text(stk_buf_view(&out), pieces[i]);
            stk_bytes_done(&sealed);
        }
}

static void a_piece_of_another_run_or_place_does_not_open(void **state)
{
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = new_keyring();
    stk_bytes sealed = {0};
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(1024);
    stk_err err = {0};
    bool is_stderr;
    assert_int_equal(stk_live_seal(ring, RUN, 7, true, STK_STR("x"), &sealed, NULL), 0);
    stk_str piece = stk_bytes_view(&sealed);
    assert_error(stk_live_open(ring, RUN, 8, piece, &is_stderr, &out, &err), &err, STK_E_CORRUPT, "",
                 "another place");
    assert_error(stk_live_open(ring, RUN "x", 7, piece, &is_stderr, &out, &err), &err, STK_E_CORRUPT, "",
                 "another run");
    sealed.p[sealed.n - 20] ^= 1;
    assert_error(stk_live_open(ring, RUN, 7, piece, &is_stderr, &out, &err), &err, STK_E_CORRUPT, "",
                 "a flipped bit");
    assert_int_equal(out.n, 0);
    stk_bytes_done(&sealed);
}

static void a_piece_over_the_cap_is_refused(void **state)
{
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = new_keyring();
    char *big STK_AUTO(stk_freep) = stk_xcalloc(1, 600000);
    stk_bytes sealed = {0};
    stk_err err = {0};
    assert_int_equal(stk_live_seal(ring, RUN, 0, false, stk_str_n(big, STK_OUTPUT_MAX), &sealed, &err), 0);
    stk_bytes_done(&sealed);
    assert_error(stk_live_seal(ring, RUN, 0, false, stk_str_n(big, 600000), &sealed, &err), &err, STK_E_LIMIT,
                 "", "600 kB");
    assert_false(sealed.set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_piece_opens_with_its_stream_and_bytes),
        cmocka_unit_test(a_piece_of_another_run_or_place_does_not_open),
        cmocka_unit_test(a_piece_over_the_cap_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
