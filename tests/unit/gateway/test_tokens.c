#include "tests/unit/gateway/unit.h"
#include "api-gateway/tokens.h"
#include "proto/base/fd.h"
#include <sys/stat.h>

static const stk_wall now = {1700000000LL * 1000000000};

static int decode(const char *text, stk_tokens_doc *ret, stk_err *err)
{
    stk_json *doc STK_AUTO(stk_json_freep) = NULL;
    assert_int_equal(stk_json_parse(stk_str_of(text), NULL, &doc, err), 0);
    return stk_tokens_decode(stk_json_root(doc), ret, err);
}

static void a_token_has_256_random_bits_and_is_kept_as_a_hash(void **state)
{
    stk_token a, b;
    char ta[STK_TOKEN_TEXT], tb[STK_TOKEN_TEXT];
    uint8_t hash[STK_SHA256];
    stk_token_make("acme", STK_SCOPE_PLAN, now, (stk_wall){0}, "ci", &a, ta);
    stk_token_make("acme", STK_SCOPE_PLAN, now, (stk_wall){0}, "ci", &b, tb);
    assert_int_equal(strlen(ta), 4 + 64);
    assert_memory_equal(ta, "stk_", 4);
    assert_string_not_equal(ta, tb);
    assert_string_not_equal(a.id, b.id);
    stk_sha256_of(stk_str_of(ta), hash);
    assert_memory_equal(a.hash, hash, STK_SHA256);
}

static void a_document_reads_back_as_it_was_written(void **state)
{
    stk_token v[2];
    char text[STK_TOKEN_TEXT];
    stk_tokens_doc doc = {v, 2}, back;
    stk_buf out STK_AUTO(stk_buf_done) = STK_BUF(65536);
    stk_err err;
    stk_jw w;
    stk_token_make("acme", STK_SCOPE_RUNS_WRITE | STK_SCOPE_ADMIN, now, (stk_wall){now.ns + 1000000000},
                   "ci bot", &v[0], text);
    stk_token_make("beta", 0, now, (stk_wall){0}, "", &v[1], text);
    stk_jw_init(&w, &out);
    stk_tokens_write(&w, &doc);
    assert_int_equal(stk_jw_end(&w, NULL), 0);
    assert_null(memmem(out.p, out.n, text, strlen(text)));
    assert_int_equal(decode(out.p, &back, &err), 0);
    assert_int_equal(back.n, 2);
    for (int i = 0; i < 2; i++) {
        assert_string_equal(back.v[i].id, v[i].id);
        assert_string_equal(back.v[i].tenant, v[i].tenant);
        assert_string_equal(back.v[i].label, v[i].label);
        assert_int_equal(back.v[i].scopes, v[i].scopes);
        assert_int_equal(back.v[i].expires.ns, v[i].expires.ns);
        assert_memory_equal(back.v[i].hash, v[i].hash, STK_SHA256);
    }
    stk_tokens_done(&back);
}

static void a_token_is_found_until_it_expires(void **state)
{
    stk_token v[3];
    char texts[3][STK_TOKEN_TEXT];
    stk_tokens_doc doc = {v, 3};
    uint8_t hash[STK_SHA256];
    for (int i = 0; i < 3; i++)
        stk_token_make("acme", 0, now, (stk_wall){i == 1 ? now.ns + 10 : 0}, "", &v[i], texts[i]);
    stk_token_hash(stk_str_of(texts[1]), hash);
    assert_ptr_equal(stk_tokens_find(&doc, hash, (stk_wall){now.ns + 9}), &v[1]);
    assert_null(stk_tokens_find(&doc, hash, (stk_wall){now.ns + 10}));
    stk_token_hash(stk_str_of(texts[2]), hash);
    assert_ptr_equal(stk_tokens_find(&doc, hash, now), &v[2]);
    hash[31] ^= 1;
    assert_null(stk_tokens_find(&doc, hash, now));
}

#define ID   "tok-00000000000000000000000000"
#define HASH "0000000000000000000000000000000000000000000000000000000000000000"

static void a_wrong_document_names_the_field(void **state)
{
    static const struct {
        const char *text, *pointer;
    } rows[] = {
        {"{}", "/tokens"},
        {"{\"tokens\":{}}", "/tokens"},
        {"{\"tokens\":[],\"x\":1}", "/x"},
        {"{\"tokens\":[{}]}", "/tokens/0/id"},
        {"{\"tokens\":[{\"id\":\"x\",\"hash\":\"" HASH "\",\"tenant\":\"a\",\"scopes\":[]}]}",
         "/tokens/0/id"},
        {"{\"tokens\":[{\"id\":\"" ID "\",\"hash\":\"00\",\"tenant\":\"a\",\"scopes\":[]}]}",
         "/tokens/0/hash"},
        {"{\"tokens\":[{\"id\":\"" ID "\",\"hash\":\"" HASH "\",\"tenant\":\"A B\",\"scopes\":[]}]}",
         "/tokens/0/tenant"},
        {"{\"tokens\":[{\"id\":\"" ID "\",\"hash\":\"" HASH
         "\",\"tenant\":\"a\",\"scopes\":[\"plan\",\"root\"]}]}",
         "/tokens/0/scopes/1"},
        {"{\"tokens\":[{\"id\":\"" ID "\",\"hash\":\"" HASH
         "\",\"tenant\":\"a\",\"scopes\":[],\"label\":\"\\u0007\"}]}",
         "/tokens/0/label"},
        {"{\"tokens\":[{\"id\":\"" ID "\",\"hash\":\"" HASH
         "\",\"tenant\":\"a\",\"scopes\":[],\"expires\":\"soon\"}]}",
         "/tokens/0/expires"},
    };
    for (size_t i = 0; i < STK_COUNT(rows); i++) {
        stk_tokens_doc doc;
        stk_err err = {0};
        if (decode(rows[i].text, &doc, &err) == 0)
            fail_msg("taken: %s", rows[i].text);
        assert_string_equal(err.pointer, rows[i].pointer);
    }
}

static void every_scope_has_one_name(void **state)
{
    for (unsigned i = 0; i < STK_SCOPES; i++)
        assert_int_equal(stk_scope_parse(stk_str_of(stk_scope_text(1u << i))), 1u << i);
    assert_int_equal(stk_scope_parse(STK_STR("runs")), 0);
    assert_int_equal(stk_scope_parse(STK_STR("")), 0);
}

static void the_bootstrap_file_is_private_and_grows(void **state)
{
    char dir[] = "/tmp/stk-tokens-XXXXXX", path[64];
    stk_token token;
    stk_tokens_doc doc;
    char text[STK_TOKEN_TEXT];
    stk_err err;
    struct stat st;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/tokens.json", dir);
    assert_int_equal(stk_tokens_load(path, &doc, &err), 0);
    assert_int_equal(doc.n, 0);
    for (size_t i = 1; i <= 3; i++) {
        stk_token_make("acme", 0, now, (stk_wall){0}, "", &token, text);
        assert_int_equal(stk_tokens_append(path, &token, &err), 0);
        assert_int_equal(stk_tokens_load(path, &doc, &err), 0);
        assert_int_equal(doc.n, i);
        assert_string_equal(doc.v[i - 1].id, token.id);
        stk_tokens_done(&doc);
    }
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(chmod(path, 0640), 0);
    assert_int_equal(stk_tokens_load(path, &doc, &err), -STK_E_CONFIG);
    assert_int_equal(chmod(path, 0600), 0);
    FILE *file = fopen(path, "w");
    fputs("{\"tokens\":[{}]}", file);
    fclose(file);
    assert_int_equal(stk_tokens_load(path, &doc, &err), -STK_E_CONFIG);
    assert_non_null(strstr(err.detail, path));
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_has_256_random_bits_and_is_kept_as_a_hash),
        cmocka_unit_test(a_document_reads_back_as_it_was_written),
        cmocka_unit_test(a_token_is_found_until_it_expires),
        cmocka_unit_test(a_wrong_document_names_the_field),
        cmocka_unit_test(every_scope_has_one_name),
        cmocka_unit_test(the_bootstrap_file_is_private_and_grows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
