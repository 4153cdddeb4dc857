/* What a key ring holds; for keyring.c and seal.c only. */
#ifndef STK_BASE_KEYRING_H
#define STK_BASE_KEYRING_H

#include "proto/base/crypto.h"

enum { STK_KEY_SIZE = 32, STK_KEYS_MOST = 16 };

typedef struct stk_key {
    char id[STK_KEY_ID];
    uint8_t bytes[STK_KEY_SIZE];
} stk_key;

/* keys[0] seals; n is at least 1. Never changed once loaded, so threads share it. */
struct stk_keyring {
    size_t n;
    stk_key keys[STK_KEYS_MOST];
};

#endif
