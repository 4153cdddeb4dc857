/* What policy.c, effective.c and weaken.c need of a set of entries beyond policy.h. */
#ifndef STK_POLICY_SET_H
#define STK_POLICY_SET_H

#include "proto/policy/policy.h"

#define STK_ENTRIES_MAX 50000

typedef enum stk_portless {
    STK_PORTLESS_WEB, /* an entry without a port means 80 and 443 (allow lists)     */
    STK_PORTLESS_ANY  /* … means every port (deny lists: refusing a name refuses it whole) */
} stk_portless;

/* The longest entry that matches, an exact name before any wildcard. *ret_named, when not NULL: an entry that
 * names the host, whatever its port. */
const stk_entry *stk__entries_find(const stk_entries *set, const char *host, uint16_t port,
                                   stk_portless portless, const stk_entry **ret_named);
/* An entry of the set that covers `entry` whole, or NULL. */
const stk_entry *stk__entries_cover(const stk_entries *set, const stk_entry *entry, stk_portless portless);

#endif
