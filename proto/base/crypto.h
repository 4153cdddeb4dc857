/* SHA-256, HMAC, constant-time compare, and sealing (AES-256-GCM under HKDF-derived per-message keys).
 *
 * A sealed value is bytes: "STK1" | key id length (1) | key id | salt (32) | ciphertext | tag (16), and
 * travels in JSON as base64. The clear part of its message is the additional data: a swapped or edited one
 * does not open. */
#ifndef STK_BASE_CRYPTO_H
#define STK_BASE_CRYPTO_H

#include "proto/base/buf.h"

#define STK_SHA256 32
typedef struct stk_sha256 stk_sha256;
/* One shot. */
void stk_sha256_of(stk_str s, uint8_t out[STK_SHA256]);
/* Many parts at once, each preceded by its 8-byte big-endian length, so that no two lists collide. */
void stk_sha256_parts(const stk_str *parts, size_t n, uint8_t out[STK_SHA256]);
void stk_hmac256(stk_str key, stk_str s, uint8_t out[STK_SHA256]);
bool stk_equal_ct(const void *a, const void *b, size_t n);

typedef struct stk_keyring stk_keyring;
#define STK_KEY_ID 16 /* of the array: 8 hex characters + NUL fit */

/* Reads key files: each line `id:64 hex digits`; the first key seals, all open. The file must be a regular
 * file that others can't read. -STK_E_CONFIG. */
int stk_keyring_load(const char *path, stk_keyring **ret, stk_err *err) STK_MUST_USE;
/* Makes a key file with one random key (0600, O_EXCL, fsynced with its directory) unless it exists. */
int stk_keyring_create(const char *path, stk_err *err) STK_MUST_USE;
void stk_keyring_free(stk_keyring *ring);
STK_DEFINE_FREEP(stk_keyring, stk_keyring_freep, stk_keyring_free)

/* Appends the sealed form of `clear` to out. `context` names the use ("run.request", "run.result", "output",
 * "config.env", …) and `aad` is bound too. Thread-safe. */
int stk_seal(const stk_keyring *ring, const char *context, stk_str aad, stk_str clear, stk_buf *out,
             stk_err *err) STK_MUST_USE;
/* Appends the clear form. -STK_E_CORRUPT when it does not open; -STK_E_NOT_FOUND when the key id is unknown.
 */
int stk_unseal(const stk_keyring *ring, const char *context, stk_str aad, stk_str sealed, stk_buf *out,
               stk_err *err) STK_MUST_USE;
/* Keyed hash for audit rows ("which command was it" without saying it), under a key derived for that use. */
void stk_keyed_hash(const stk_keyring *ring, const char *context, stk_str s, uint8_t out[STK_SHA256]);

#endif
