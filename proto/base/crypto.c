#include "proto/base/crypto.h"
#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>

/* Hashing has no failure a caller could act on: without it nothing that depends on it may go on. */
static void must(bool done)
{
    if (!done)
        abort();
}

static EVP_MD *sha256;
static pthread_once_t sha256_once = PTHREAD_ONCE_INIT;

static void fetch(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    must(sha256 != NULL);
}

static const EVP_MD *md(void)
{
    pthread_once(&sha256_once, fetch);
    return sha256;
}

void stk_sha256_of(stk_str s, uint8_t out[STK_SHA256])
{
    must(EVP_Digest(s.n ? s.p : "", s.n, out, NULL, md(), NULL) == 1);
}

void stk_sha256_parts(const stk_str *parts, size_t n, uint8_t out[STK_SHA256])
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    must(ctx && EVP_DigestInit_ex(ctx, md(), NULL) == 1);
    for (size_t i = 0; i < n; i++) {
        uint8_t length[8];
        for (int b = 0; b < 8; b++)
            length[b] = (uint8_t)((uint64_t)parts[i].n >> (56 - 8 * b));
        must(EVP_DigestUpdate(ctx, length, sizeof(length)) == 1);
        must(EVP_DigestUpdate(ctx, parts[i].n ? parts[i].p : "", parts[i].n) == 1);
    }
    must(EVP_DigestFinal_ex(ctx, out, NULL) == 1);
    EVP_MD_CTX_free(ctx);
}

void stk_hmac256(stk_str key, stk_str s, uint8_t out[STK_SHA256])
{
    must(key.n <= INT_MAX);
    must(HMAC(md(), key.n ? key.p : "", (int)key.n, (const uint8_t *)(s.n ? s.p : ""), s.n, out, NULL) !=
         NULL);
}

bool stk_equal_ct(const void *a, const void *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}
