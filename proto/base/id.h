/* Ids: a prefix, '-', and 26 characters of lower-case Crockford base32 = 128 bits. Valid as RFC 1123 labels.
 */
#ifndef STK_BASE_ID_H
#define STK_BASE_ID_H

#include "proto/base/buf.h"
#include "proto/base/time.h"

#define STK_ID_SIZE 40 /* of the array: prefix <= 12, '-', 26, NUL */

/* Fills p with n bytes from the kernel (getrandom); never fails, never blocks after boot. */
void stk_random(void *p, size_t n);
/* "run-…" etc.: 48 bits of wall-clock milliseconds, then 80 random bits, so ids sort by time. */
void stk_id_new(const char *prefix, stk_wall now, char out[STK_ID_SIZE]);
/* From 16 given bytes (a digest): the same bytes give the same id. */
void stk_id_from(const char *prefix, const uint8_t bytes[16], char out[STK_ID_SIZE]);
/* True when s is prefix-26 characters of that alphabet. */
bool stk_id_valid(const char *prefix, stk_str s);
/* Milliseconds in the first 48 bits of an id made by stk_id_new or stk_audit_id. */
stk_wall stk_id_time(stk_str id);

/* RFC 1123 label made from any text: lower-cased, other bytes to '-', cut, and "-<8 hex of a hash>" added
 * whenever that changed anything, so that two different inputs never meet. out holds 64. */
void stk_name_label(stk_str any, char out[64]);

#endif
