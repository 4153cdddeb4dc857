/* A file on its way in: written beside its place, and put there whole or not at all. */
#ifndef STK_RUNTIME_INCOMING_H
#define STK_RUNTIME_INCOMING_H

#include "proto/base/buf.h"
#include <limits.h>
#include <sys/types.h>

#define STK_MODE_KEEP ((mode_t)-1) /* that of the file that is replaced, else 0644 */

typedef struct stk_incoming {
    int dir, fd; /* -1 = none */
    char name[NAME_MAX + 1];
    char temp[40];
    mode_t mode;
    uint64_t size;
} stk_incoming;

#define STK_INCOMING_NONE ((stk_incoming){.dir = -1, .fd = -1})

/* path: relative to root. Makes the directories on the way. What is there and is no regular file is refused:
 * -STK_E_CONFLICT. Other errors as stk_target_errno. */
int stk_incoming_open(int root, const char *path, mode_t mode, stk_incoming *ret, stk_err *err) STK_MUST_USE;
int stk_incoming_write(stk_incoming *in, stk_str data, stk_err *err) STK_MUST_USE;
/* Closes it and renames it into its place: from then on it is seen, whole. */
int stk_incoming_commit(stk_incoming *in, stk_err *err) STK_MUST_USE;
/* Nothing of it is left, unless it was committed. Any number of times. */
void stk_incoming_drop(stk_incoming *in);

#endif
