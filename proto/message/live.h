/* A piece of live output as it is kept in state: sealed bytes with their stream, bound to run and offset.
 * Written by workers, opened by gateways for GET /v1/runs/{id}/events. */
#ifndef STK_MESSAGE_LIVE_H
#define STK_MESSAGE_LIVE_H

#include "proto/base/crypto.h"
#include "proto/base/field.h"

/* Sets *ret (owned by the caller). data may be any bytes, at most 256 KiB. */
int stk_live_seal(const stk_keyring *ring, const char *run, int64_t offset, bool stderr_, stk_str data,
                  stk_bytes *ret, stk_err *err) STK_MUST_USE;
/* Appends the clear bytes to out. */
int stk_live_open(const stk_keyring *ring, const char *run, int64_t offset, stk_str sealed, bool *ret_stderr,
                  stk_buf *out, stk_err *err) STK_MUST_USE;

#endif
