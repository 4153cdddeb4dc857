/* Values of agents' `env` in configuration: sealed wherever they are kept, "sealed:" + base64, bound to
 * tenant, agent and name. */
#ifndef STK_MESSAGE_ENV_SEAL_H
#define STK_MESSAGE_ENV_SEAL_H

#include "proto/base/crypto.h"
#include "proto/base/field.h"

/* *ret is set to the sealed text (owned by the caller). */
int stk_env_seal(const stk_keyring *ring, const char *tenant, const char *agent, stk_str name, stk_str value,
                 stk_bytes *ret, stk_err *err) STK_MUST_USE;
/* The clear value is appended to out. -STK_E_CORRUPT when it is not sealed for this tenant, agent and name.
 */
int stk_env_open(const stk_keyring *ring, const char *tenant, const char *agent, stk_str name, stk_str sealed,
                 stk_buf *out, stk_err *err) STK_MUST_USE;

#endif
