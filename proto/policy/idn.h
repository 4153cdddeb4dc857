/* Internationalised labels: U-label -> A-label (RFC 3492 Punycode, RFC 5890 names), for host.c alone.
 *
 * No Unicode library and no tables of megabytes: a short table says which code points are taken, and which
 * are upper case of which. What it does not know is refused with a clear error and can be written as its xn--
 * form. Nothing that could stand for a second spelling (combining marks, compatibility forms, full-width) is
 * in the table, so that what passes is in normal form C already. Non-transitional as IDNA 2008: sharp s and
 * final sigma stay. */
#ifndef STK_POLICY_IDN_H
#define STK_POLICY_IDN_H

#include "proto/base/buf.h"

#define STK_LABEL_MAX 64 /* with NUL */

/* A label with at least one byte over 0x7f (UTF-8). -STK_E_FIELD with why. */
int stk__idn_encode(stk_str label, char out[STK_LABEL_MAX], stk_err *err) STK_MUST_USE;
/* An "xn--" label in lower case: decodes, holds a non-ASCII code point, no upper case, and encodes to itself
 * again. */
int stk__idn_verify(stk_str label, stk_err *err) STK_MUST_USE;

#endif
