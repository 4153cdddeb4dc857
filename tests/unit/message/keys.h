/* A keyring in a file of its own that the test removes. */
#ifndef STK_TEST_MESSAGE_KEYS_H
#define STK_TEST_MESSAGE_KEYS_H

#include "tests/unit/message/unit.h"
#include "proto/base/crypto.h"

static stk_keyring *new_keyring(void)
{
    char dir[] = "/tmp/stk-message-XXXXXX", path[64];
    stk_keyring *ring = NULL;
    stk_err err = {0};
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/keys", dir);
    if (stk_keyring_create(path, &err) < 0 || stk_keyring_load(path, &ring, &err) < 0)
        fail_msg("%s", err.detail);
    unlink(path);
    rmdir(dir);
    return ring;
}

#endif
