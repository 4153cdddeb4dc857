/* What SUBMIT, QUEUE and ASSIGN say of a run, from its request: one place, so that a member is not forgotten
 * in one of them. */
#ifndef STK_STATE_DESCRIBE_H
#define STK_STATE_DESCRIBE_H

#include "proto/message/request.h"
#include "proto/state/state.h"

/* `in` is the `in` member of one of the three operations (fresh from stk_op_new); labels are copied. */
#define STK_STATE_DESCRIBE(in, req)                                                                          \
    do {                                                                                                     \
        memcpy((in)->run, (req)->id, sizeof((in)->run));                                                     \
        memcpy((in)->tenant, (req)->tenant, sizeof((in)->tenant));                                           \
        memcpy((in)->agent, (req)->agent, sizeof((in)->agent));                                              \
        memcpy((in)->kind, (req)->kind, sizeof((in)->kind));                                                 \
        memcpy((in)->retry, (req)->retry, sizeof((in)->retry));                                              \
        (in)->priority = (req)->priority;                                                                    \
        (in)->submitted = (req)->submitted;                                                                  \
        (in)->deadline = (req)->deadline;                                                                    \
        stk_map_copy(&(in)->labels, &(req)->labels);                                                         \
    } while (0)

#endif
