#include "proto/base/id.h"
#include "proto/base/keyring.h"
#include <limits.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <pthread.h>

enum { MAGIC = 4, SALT = 32, TAG = 16, NONCE = 12, HEAD_MOST = MAGIC + 1 + STK_KEY_ID + SALT };

static EVP_KDF *hkdf;
static EVP_CIPHER *gcm;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fetch(void)
{
    hkdf = EVP_KDF_fetch(NULL, "HKDF", NULL);
    gcm = EVP_CIPHER_fetch(NULL, "AES-256-GCM", NULL);
    if (!hkdf || !gcm)
        abort();
}

/* "magic | key id length | key id | salt": everything before the ciphertext, and bound to it. */
typedef struct head {
    uint8_t p[HEAD_MOST];
    size_t n;
} head;

typedef struct secret {
    uint8_t key[STK_KEY_SIZE];
    uint8_t nonce[NONCE];
} secret;

static void secret_done(secret *s)
{
    OPENSSL_cleanse(s, sizeof(*s));
}

static void ctx_freep(EVP_CIPHER_CTX **ctx)
{
    EVP_CIPHER_CTX_free(*ctx);
}

/* HKDF-SHA256; info is "<label>\0<context>", so that no two uses share a key. */
static void derive(const stk_key *key, const char *label, const char *context, stk_str salt, void *out,
                   size_t n)
{
    pthread_once(&once, fetch);
    char digest[] = "SHA256";
    OSSL_PARAM params[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, (void *)(uintptr_t)key->bytes, STK_KEY_SIZE),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)(uintptr_t)label, strlen(label) + 1),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, (void *)(uintptr_t)context, strlen(context)),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, (void *)(uintptr_t)salt.p, salt.n),
        OSSL_PARAM_construct_end(),
    };
    EVP_KDF_CTX *ctx = EVP_KDF_CTX_new(hkdf);
    if (!ctx || EVP_KDF_derive(ctx, out, n, params) != 1)
        abort();
    EVP_KDF_CTX_free(ctx);
}

static void derive_secret(const stk_key *key, const char *context, const head *h, secret *out)
{
    uint8_t both[STK_KEY_SIZE + NONCE];
    derive(key, "stockade seal 1", context, stk_str_n(h->p + h->n - SALT, SALT), both, sizeof(both));
    memcpy(out->key, both, STK_KEY_SIZE);
    memcpy(out->nonce, both + STK_KEY_SIZE, NONCE);
    OPENSSL_cleanse(both, sizeof(both));
}

static void head_make(const stk_key *key, head *h)
{
    size_t id = strlen(key->id);
    memcpy(h->p, "STK1", MAGIC);
    h->p[MAGIC] = (uint8_t)id;
    memcpy(h->p + MAGIC + 1, key->id, id);
    h->n = MAGIC + 1 + id + SALT;
    stk_random(h->p + h->n - SALT, SALT);
}

static bool head_read(stk_str sealed, head *h)
{
    if (sealed.n < MAGIC + 1 + SALT + TAG || memcmp(sealed.p, "STK1", MAGIC) != 0)
        return false;
    size_t id = (uint8_t)sealed.p[MAGIC];
    h->n = MAGIC + 1 + id + SALT;
    if (id == 0 || id >= STK_KEY_ID || sealed.n < h->n + TAG)
        return false;
    memcpy(h->p, sealed.p, h->n);
    return true;
}

static const stk_key *key_of(const stk_keyring *ring, const head *h)
{
    size_t n = h->p[MAGIC];
    for (size_t i = 0; i < ring->n; i++)
        if (stk_str_eq(stk_str_of(ring->keys[i].id), stk_str_n(h->p + MAGIC + 1, n)))
            return &ring->keys[i];
    return NULL;
}

static EVP_CIPHER_CTX *begin(const secret *s, const head *h, stk_str aad, bool sealing)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int n;
    if (!ctx || EVP_CipherInit_ex2(ctx, gcm, s->key, s->nonce, sealing, NULL) != 1 ||
        EVP_CipherUpdate(ctx, NULL, &n, h->p, (int)h->n) != 1 ||
        (aad.n && EVP_CipherUpdate(ctx, NULL, &n, (const uint8_t *)aad.p, (int)aad.n) != 1))
        abort();
    return ctx;
}

/* `into` holds clear.n + TAG bytes. */
static bool encrypt(EVP_CIPHER_CTX *ctx, stk_str clear, uint8_t *into)
{
    int n = 0;
    int rest = 0;
    if (clear.n && EVP_EncryptUpdate(ctx, into, &n, (const uint8_t *)clear.p, (int)clear.n) != 1)
        return false;
    return EVP_EncryptFinal_ex(ctx, into + n, &rest) == 1 &&
           EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_GET_TAG, TAG, into + clear.n) == 1;
}

static bool decrypt(EVP_CIPHER_CTX *ctx, stk_str cipher, const void *tag, uint8_t *into)
{
    int n = 0;
    int rest = 0;
    uint8_t expected[TAG];
    memcpy(expected, tag, TAG);
    if (cipher.n && EVP_DecryptUpdate(ctx, into, &n, (const uint8_t *)cipher.p, (int)cipher.n) != 1)
        return false;
    return EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG, expected) == 1 &&
           EVP_DecryptFinal_ex(ctx, into + n, &rest) == 1;
}

int stk_seal(const stk_keyring *ring, const char *context, stk_str aad, stk_str clear, stk_buf *out,
             stk_err *err)
{
    if (clear.n > INT_MAX / 2 || aad.n > INT_MAX / 2)
        return stk_err_set(err, STK_E_LIMIT, "too much to seal");
    head h;
    secret s STK_AUTO(secret_done);
    head_make(&ring->keys[0], &h);
    derive_secret(&ring->keys[0], context, &h, &s);
    char *room = stk_buf_room(out, h.n + clear.n + TAG);
    if (!room)
        return stk_err_set(err, STK_E_LIMIT, "sealed text is longer than %zu bytes", out->cap);
    EVP_CIPHER_CTX *ctx STK_AUTO(ctx_freep) = begin(&s, &h, aad, true);
    memcpy(room, h.p, h.n);
    if (!encrypt(ctx, clear, (uint8_t *)room + h.n))
        return stk_err_set(err, STK_E_INTERNAL, "sealing failed");
    out->n += h.n + clear.n + TAG;
    out->p[out->n] = '\0';
    return 0;
}

int stk_unseal(const stk_keyring *ring, const char *context, stk_str aad, stk_str sealed, stk_buf *out,
               stk_err *err)
{
    head h;
    if (sealed.n > INT_MAX / 2 || aad.n > INT_MAX / 2 || !head_read(sealed, &h))
        return stk_err_set(err, STK_E_CORRUPT, "a sealed %s is malformed", context);
    const stk_key *key = key_of(ring, &h);
    if (!key)
        return stk_err_set(err, STK_E_NOT_FOUND, "a sealed %s names a key that the key file does not hold",
                           context);
    secret s STK_AUTO(secret_done);
    derive_secret(key, context, &h, &s);
    stk_str cipher = stk_str_n(sealed.p + h.n, sealed.n - h.n - TAG);
    char *room = stk_buf_room(out, cipher.n);
    if (!room)
        return stk_err_set(err, STK_E_LIMIT, "clear text is longer than %zu bytes", out->cap);
    EVP_CIPHER_CTX *ctx STK_AUTO(ctx_freep) = begin(&s, &h, aad, false);
    if (!decrypt(ctx, cipher, cipher.p + cipher.n, (uint8_t *)room)) {
        OPENSSL_cleanse(room, cipher.n);
        return stk_err_set(err, STK_E_CORRUPT, "a sealed %s does not open", context);
    }
    out->n += cipher.n;
    out->p[out->n] = '\0';
    return 0;
}

void stk_keyed_hash(const stk_keyring *ring, const char *context, stk_str s, uint8_t out[STK_SHA256])
{
    uint8_t key[STK_KEY_SIZE];
    derive(&ring->keys[0], "stockade hash 1", context, stk_str_n("", 0), key, sizeof(key));
    stk_hmac256(stk_str_n(key, sizeof(key)), s, out);
    OPENSSL_cleanse(key, sizeof(key));
}
