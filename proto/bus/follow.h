/* Follows a compacted topic into memory: the newest record per key, and a callback on each change. Used by
 * gateway, scheduler and workers for stk.config: everybody acts only on what the topic says. */
#ifndef STK_BUS_FOLLOW_H
#define STK_BUS_FOLLOW_H

#include "proto/bus/bus.h"

typedef struct stk_follow stk_follow;
/* value is borrowed and stays valid until the next change of that key; an empty record (tombstone) removes
 * the key: value.p is NULL. caught_up: the first read is complete. */
typedef void (*stk_follow_change)(stk_str key, stk_str value, bool caught_up, void *arg);
int stk_follow_new(stk_bus *bus, const char *topic, stk_follow_change change, void *arg, stk_follow **ret,
                   stk_err *err) STK_MUST_USE;
bool stk_follow_caught_up(const stk_follow *follow);
/* Calls fn once, when the first read is complete (an empty topic has no change to tell it by); from the loop,
 * or at once when it is. */
void stk_follow_on_caught_up(stk_follow *follow, void (*fn)(void *arg), void *arg);
/* What stopped it (corruption, offset out of range): alarm and act on nothing newer. NULL while it follows.
 */
const stk_err *stk_follow_error(const stk_follow *follow);
/* Newest value or p == NULL. Borrowed until the next change. */
stk_str stk_follow_get(const stk_follow *follow, stk_str key);
void stk_follow_each(const stk_follow *follow, void (*fn)(stk_str key, stk_str value, void *arg), void *arg);
void stk_follow_free(stk_follow *follow);
STK_DEFINE_FREEP(stk_follow, stk_follow_freep, stk_follow_free)

#endif
