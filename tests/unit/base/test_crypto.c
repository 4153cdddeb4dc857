#include "proto/base/crypto.h"
#include "proto/base/fd.h"
#include "tests/unit/base/test.h"
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>

static char dir[] = "/tmp/stk-test-crypto-XXXXXX";
static char path[200];

static const char key_a[] = "a1:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n";
static const char key_b[] = "b2:ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100\n";

static int load_text(stk_str text, mode_t mode, stk_keyring **ret, stk_err *err)
{
    assert_int_equal(stk_file_replace(path, mode, text, NULL), 0);
    return stk_keyring_load(path, ret, err);
}

static stk_keyring *ring_of(const char *first, const char *second)
{
    char text[300];
    snprintf(text, sizeof(text), "%s%s", first, second);
    stk_keyring *ring = NULL;
    stk_err err;
    if (load_text(stk_str_of(text), 0600, &ring, &err) < 0)
        fail_msg("%s", err.detail);
    return ring;
}

static void assert_hex(const uint8_t *p, const char *want)
{
    char text[2 * STK_SHA256 + 1];
    stk_hex(p, STK_SHA256, text);
    assert_string_equal(text, want);
}

static void sha_256_gives_the_published_values(void **state)
{
    static const struct {
        stk_str in;
        const char *want;
    } rows[] = {
        {{"", 0}, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {{NULL, 0}, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {{"abc", 3}, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56},
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        uint8_t out[STK_SHA256];
        stk_sha256_of(rows[i].in, out);
        assert_hex(out, rows[i].want);
    }
}

static void hmac_gives_the_values_of_rfc_4231(void **state)
{
    uint8_t key[131], out[STK_SHA256];
    memset(key, 0x0b, 20);
    stk_hmac256(stk_str_n(key, 20), S("Hi There"), out);
    assert_hex(out, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    stk_hmac256(S("Jefe"), S("what do ya want for nothing?"), out);
    assert_hex(out, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(key, 0xaa, sizeof(key));
    stk_hmac256(stk_str_n(key, sizeof(key)), S("Test Using Larger Than Block-Size Key - Hash Key First"),
                out);
    assert_hex(out, "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void lists_of_parts_never_collide(void **state)
{
    const stk_str lists[][3] = {
        {S("ab"), S("c"), S("")}, {S("a"), S("bc"), S("")}, {S(""), S("ab"), S("c")},
        {S("abc"), S(""), S("")}, {S("ab"), S(""), S("c")},
    };
    uint8_t out[STK_COUNT(lists) + 2][STK_SHA256];
    for (size_t i = 0; i < STK_COUNT(lists); i++)
        stk_sha256_parts(lists[i], 3, out[i]);
    stk_sha256_parts(lists[0], 2, out[STK_COUNT(lists)]);
    stk_sha256_parts(NULL, 0, out[STK_COUNT(lists) + 1]);
    for (size_t i = 0; i < STK_COUNT(out); i++)
        for (size_t j = i + 1; j < STK_COUNT(out); j++)
            assert_memory_not_equal(out[i], out[j], STK_SHA256);
    stk_sha256_parts(&(stk_str){"abc", 3}, 1, out[0]);
    uint8_t want[STK_SHA256];
    stk_sha256_of(S("\0\0\0\0\0\0\0\3abc"), want);
    assert_memory_equal(out[0], want, STK_SHA256);
}

static void comparing_sees_every_byte(void **state)
{
    uint8_t a[32] = {0}, b[32] = {0};
    assert_true(stk_equal_ct(a, b, sizeof(a)));
    for (size_t i = 0; i < sizeof(a); i++) {
        b[i] = 1;
        assert_false(stk_equal_ct(a, b, sizeof(a)));
        b[i] = 0;
    }
    assert_true(stk_equal_ct(a, b, 0));
}

static stk_str seal(const stk_keyring *ring, const char *context, stk_str aad, stk_str clear, stk_buf *out)
{
    stk_err err;
    *out = STK_BUF(1 << 20);
    if (stk_seal(ring, context, aad, clear, out, &err) < 0)
        fail_msg("%s", err.detail);
    return stk_buf_view(out);
}

static int unseal(const stk_keyring *ring, const char *context, stk_str aad, stk_str sealed)
{
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(1 << 20);
    int rc = stk_unseal(ring, context, aad, sealed, &out, NULL);
    if (rc < 0)
        assert_int_equal(out.n, 0);
    return rc;
}

static void what_was_sealed_opens(void **state)
{
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = ring_of(key_a, "");
    static char big[100000];
    memset(big, 'x', sizeof(big));
    const stk_str clears[] = {S(""), S("x"), S("with \0 inside"), {big, sizeof(big)}};
    for (size_t i = 0; i < STK_COUNT(clears); i++) {
        stk_buf sealed STK_AUTO(stk_buf_done);
        stk_str s = seal(ring, "run.request", S("clear part"), clears[i], &sealed);
        assert_int_equal(s.n, 4 + 1 + 2 + 32 + clears[i].n + 16);
        assert_memory_equal(s.p, "STK1\2a1", 7);
        stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(1 << 20);
        assert_int_equal(stk_buf_text(&out, "before:"), 0);
        assert_int_equal(stk_unseal(ring, "run.request", S("clear part"), s, &out, NULL), 0);
        assert_int_equal(out.n, 7 + clears[i].n);
        assert_memory_equal(out.p, "before:", 7);
        if (clears[i].n)
            assert_memory_equal(out.p + 7, clears[i].p, clears[i].n);
    }
}

static void the_format_stays_as_it_was_written_once(void **state)
{
    /* Made by an independent implementation of the format in crypto.h: HKDF-SHA256 over key a1, salt 00..1f,
     * info "stockade seal 1\0run.request", 32 bytes of key and 12 of nonce; head and "clear part" as data. */
    static const char golden[] =
        "53544b31026131000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
        "e76b73ee725b76b8879bdaffe4cdbc22d1b122b20ef773288effba67ef94";
    uint8_t bytes[sizeof(golden) / 2];
    assert_int_equal(stk_unhex(stk_str_of(golden), bytes, sizeof(bytes)), 0);
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = ring_of(key_a, "");
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(100);
    assert_int_equal(
        stk_unseal(ring, "run.request", S("clear part"), stk_str_n(bytes, sizeof(bytes)), &out, NULL), 0);
    assert_str(stk_buf_view(&out), "secret command");
}

static void the_same_text_never_seals_twice_alike(void **state)
{
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = ring_of(key_a, "");
    stk_buf one STK_AUTO(stk_buf_done), two STK_AUTO(stk_buf_done);
    stk_str a = seal(ring, "x", S(""), S("same"), &one);
    stk_str b = seal(ring, "x", S(""), S("same"), &two);
    assert_int_equal(a.n, b.n);
    assert_memory_not_equal(a.p + 7, b.p + 7, 32);
    assert_memory_not_equal(a.p + 39, b.p + 39, 20);
}

static void another_context_or_clear_part_does_not_open(void **state)
{
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = ring_of(key_a, "");
    stk_buf sealed STK_AUTO(stk_buf_done);
    stk_str s = seal(ring, "run.request", S("tenant=a"), S("text"), &sealed);
    assert_int_equal(unseal(ring, "run.request", S("tenant=a"), s), 0);
    assert_int_equal(unseal(ring, "run.result", S("tenant=a"), s), -STK_E_CORRUPT);
    assert_int_equal(unseal(ring, "", S("tenant=a"), s), -STK_E_CORRUPT);
    assert_int_equal(unseal(ring, "run.request", S("tenant=b"), s), -STK_E_CORRUPT);
    assert_int_equal(unseal(ring, "run.request", S("tenant=a "), s), -STK_E_CORRUPT);
    assert_int_equal(unseal(ring, "run.request", S(""), s), -STK_E_CORRUPT);
}

static void no_byte_can_be_changed_added_or_cut(void **state)
{
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = ring_of(key_a, key_b);
    stk_buf sealed STK_AUTO(stk_buf_done);
    stk_str s = seal(ring, "x", S("aad"), S("some text"), &sealed);
    char *copy STK_AUTO(stk_freep) = stk_xmemdup(s.p, s.n);
    for (size_t i = 0; i < s.n; i++) {
        for (int bit = 0; bit < 8; bit++) {
            copy[i] = (char)(copy[i] ^ (1 << bit));
            int rc = unseal(ring, "x", S("aad"), stk_str_n(copy, s.n));
            assert_true(rc == -STK_E_CORRUPT || (rc == -STK_E_NOT_FOUND && i >= 4 && i < 7));
            copy[i] = s.p[i];
        }
    }
    for (size_t n = 0; n < s.n; n++)
        assert_int_equal(unseal(ring, "x", S("aad"), stk_str_n(s.p, n)), -STK_E_CORRUPT);
    assert_int_equal(stk_buf_byte(&sealed, 0), 0);
    assert_int_equal(unseal(ring, "x", S("aad"), stk_buf_view(&sealed)), -STK_E_CORRUPT);
    assert_int_equal(unseal(ring, "x", S("aad"), (stk_str){NULL, 0}), -STK_E_CORRUPT);
}

static void parts_of_two_messages_do_not_combine(void **state)
{
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = ring_of(key_a, "");
    stk_buf one STK_AUTO(stk_buf_done), two STK_AUTO(stk_buf_done);
    stk_str a = seal(ring, "x", S(""), S("text"), &one);
    stk_str b = seal(ring, "x", S(""), S("text"), &two);
    char *mixed STK_AUTO(stk_freep) = stk_xmemdup(a.p, a.n);
    memcpy(mixed + 39, b.p + 39, b.n - 39);
    assert_int_equal(unseal(ring, "x", S(""), stk_str_n(mixed, a.n)), -STK_E_CORRUPT);
}

static void old_keys_open_and_unknown_ones_are_told_from_damage(void **state)
{
    stk_keyring *old STK_AUTO(stk_keyring_freep) = ring_of(key_a, "");
    stk_keyring *rotated STK_AUTO(stk_keyring_freep) = ring_of(key_b, key_a);
    stk_keyring *fresh STK_AUTO(stk_keyring_freep) = ring_of(key_b, "");
    stk_buf one STK_AUTO(stk_buf_done), two STK_AUTO(stk_buf_done);
    stk_str by_old = seal(old, "x", S(""), S("text"), &one);
    stk_str by_new = seal(rotated, "x", S(""), S("text"), &two);
    assert_int_equal(unseal(rotated, "x", S(""), by_old), 0);
    assert_int_equal(unseal(fresh, "x", S(""), by_new), 0);
    assert_int_equal(unseal(fresh, "x", S(""), by_old), -STK_E_NOT_FOUND);
    assert_int_equal(unseal(old, "x", S(""), by_new), -STK_E_NOT_FOUND);
}

static void caps_of_the_buffer_hold(void **state)
{
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = ring_of(key_a, "");
    stk_buf small STK_AUTO(stk_buf_done) = STK_BUF(4 + 1 + 2 + 32 + 16 + 3);
    assert_int_equal(stk_seal(ring, "x", S(""), S("four"), &small, NULL), -STK_E_LIMIT);
    stk_buf sealed STK_AUTO(stk_buf_done);
    stk_str s = seal(ring, "x", S(""), S("four"), &sealed);
    stk_buf three STK_AUTO(stk_buf_done) = STK_BUF(3);
    assert_int_equal(stk_unseal(ring, "x", S(""), s, &three, NULL), -STK_E_LIMIT);
}

static void keyed_hashes_depend_on_key_context_and_text(void **state)
{
    stk_keyring *a STK_AUTO(stk_keyring_freep) = ring_of(key_a, "");
    stk_keyring *b STK_AUTO(stk_keyring_freep) = ring_of(key_b, "");
    uint8_t out[5][STK_SHA256];
    stk_keyed_hash(a, "audit", S("cmd"), out[0]);
    stk_keyed_hash(a, "audit", S("cmd2"), out[1]);
    stk_keyed_hash(a, "other", S("cmd"), out[2]);
    stk_keyed_hash(b, "audit", S("cmd"), out[3]);
    stk_sha256_of(S("cmd"), out[4]);
    for (size_t i = 0; i < STK_COUNT(out); i++)
        for (size_t j = i + 1; j < STK_COUNT(out); j++)
            assert_memory_not_equal(out[i], out[j], STK_SHA256);
    stk_keyed_hash(a, "audit", S("cmd"), out[1]);
    assert_memory_equal(out[0], out[1], STK_SHA256);
}

#define HEX64 "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static void malformed_key_files_are_refused_without_naming_the_key(void **state)
{
    static const struct {
        const char *text;
        mode_t mode;
    } rows[] = {
        {"", 0600},
        {"\n", 0600},
        {HEX64 "\n", 0600},
        {":" HEX64 "\n", 0600},
        {"a:" HEX64 "0\n", 0600},
        {"a:" HEX64 "00\n", 0600},
        {"a:0" HEX64 "\n", 0600},
        {"a:" HEX64 " \n", 0600},
        {"a:" HEX64 "\r\n", 0600},
        {" a:" HEX64 "\n", 0600},
        {"a b:" HEX64 "\n", 0600},
        {"0123456789abcdef:" HEX64 "\n", 0600},
        {"a:" HEX64 "\n\n", 0600},
        {"a:" HEX64 "\na:" HEX64 "\n", 0600},
        {"a:g00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n", 0600},
        {"a:" HEX64 "\n", 0604},
        {"a:" HEX64 "\n", 0620},
        {"a:" HEX64 "\n", 0601},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_keyring *ring = NULL;
        stk_err err;
        if (load_text(stk_str_of(rows[i].text), rows[i].mode, &ring, &err) != -STK_E_CONFIG || ring)
            fail_msg("accepted row %zu", i);
        assert_null(strstr(err.detail, "0102030405"));
    }
    stk_keyring *ring = NULL;
    stk_err err;
    assert_int_equal(load_text(S("a\0:" HEX64 "\n"), 0600, &ring, &err), -STK_E_CONFIG);
    assert_int_equal(stk_keyring_load("/nonexistent/key", &ring, &err), -STK_E_CONFIG);
    assert_int_equal(stk_keyring_load(dir, &ring, &err), -STK_E_CONFIG);
}

static void sixteen_keys_load_and_seventeen_do_not(void **state)
{
    for (int n = 16; n <= 17; n++) {
        stk_buf text STK_AUTO(stk_buf_done) = STK_BUF(10000);
        for (int i = 0; i < n; i++)
            assert_int_equal(stk_buf_fmt(&text, "k%d:" HEX64 "%s", i, i + 1 < n ? "\n" : ""), 0);
        stk_keyring *ring STK_AUTO(stk_keyring_freep) = NULL;
        assert_int_equal(load_text(stk_buf_view(&text), 0640, &ring, NULL), n == 16 ? 0 : -STK_E_CONFIG);
    }
}

static void a_created_key_file_loads_is_private_and_stays(void **state)
{
    char fresh[200];
    snprintf(fresh, sizeof(fresh), "%s/fresh", dir);
    stk_err err;
    assert_int_equal(stk_keyring_create(fresh, &err), 0);
    struct stat st;
    assert_int_equal(stat(fresh, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_nlink, 1);
    stk_buf first STK_AUTO(stk_buf_done) = STK_BUF(1000), second STK_AUTO(stk_buf_done) = STK_BUF(1000);
    assert_int_equal(stk_file_read(fresh, &first, &err), 0);
    assert_int_equal(stk_keyring_create(fresh, &err), 0);
    assert_int_equal(stk_file_read(fresh, &second, &err), 0);
    assert_true(stk_str_eq(stk_buf_view(&first), stk_buf_view(&second)));
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = NULL;
    assert_int_equal(stk_keyring_load(fresh, &ring, &err), 0);
    stk_buf sealed STK_AUTO(stk_buf_done);
    assert_int_equal(unseal(ring, "x", S(""), seal(ring, "x", S(""), S("t"), &sealed)), 0);
    assert_true(stk_keyring_create("/nonexistent/key", &err) < 0);
}

static void *seal_often(void *arg)
{
    const stk_keyring *ring = arg;
    for (int i = 0; i < 500; i++) {
        stk_buf sealed STK_AUTO(stk_buf_done) = STK_BUF(1000), out STK_AUTO(stk_buf_done) = STK_BUF(1000);
        if (stk_seal(ring, "x", S("a"), S("text"), &sealed, NULL) < 0 ||
            stk_unseal(ring, "x", S("a"), stk_buf_view(&sealed), &out, NULL) < 0 ||
            !stk_str_eq(stk_buf_view(&out), S("text")))
            return (void *)1;
    }
    return NULL;
}

static void threads_share_a_ring(void **state)
{
    stk_keyring *ring STK_AUTO(stk_keyring_freep) = ring_of(key_a, "");
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, seal_often, ring), 0);
    for (int i = 0; i < 4; i++) {
        void *bad = NULL;
        pthread_join(threads[i], &bad);
        assert_null(bad);
    }
}

static int set_up(void **state)
{
    if (!mkdtemp(dir))
        return -1;
    return snprintf(path, sizeof(path), "%s/key", dir) < 0;
}

static int tear_down(void **state)
{
    return stk_rmtree(AT_FDCWD, dir, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha_256_gives_the_published_values),
        cmocka_unit_test(hmac_gives_the_values_of_rfc_4231),
        cmocka_unit_test(lists_of_parts_never_collide),
        cmocka_unit_test(comparing_sees_every_byte),
        cmocka_unit_test(what_was_sealed_opens),
        cmocka_unit_test(the_format_stays_as_it_was_written_once),
        cmocka_unit_test(the_same_text_never_seals_twice_alike),
        cmocka_unit_test(another_context_or_clear_part_does_not_open),
        cmocka_unit_test(no_byte_can_be_changed_added_or_cut),
        cmocka_unit_test(parts_of_two_messages_do_not_combine),
        cmocka_unit_test(old_keys_open_and_unknown_ones_are_told_from_damage),
        cmocka_unit_test(caps_of_the_buffer_hold),
        cmocka_unit_test(keyed_hashes_depend_on_key_context_and_text),
        cmocka_unit_test(malformed_key_files_are_refused_without_naming_the_key),
        cmocka_unit_test(sixteen_keys_load_and_seventeen_do_not),
        cmocka_unit_test(a_created_key_file_loads_is_private_and_stays),
        cmocka_unit_test(threads_share_a_ring),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
