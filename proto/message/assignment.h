/* stk.assignments: one lane record. The lane is the partition. */
#ifndef STK_MESSAGE_ASSIGNMENT_H
#define STK_MESSAGE_ASSIGNMENT_H

#include "proto/message/request.h"

typedef struct stk_assignment {
    int64_t v;
    char kind[8];                 /* "assign" | "cancel" | "plan" */
    char assignment[STK_ID_SIZE]; /* "asg-…", random, made by the scheduler                        */
    char run[STK_ID_SIZE];
    char worker[STK_WORKER_MAX];
    char incarnation[STK_ID_SIZE];
    char sandbox[STK_ID_SIZE];     /* a warm one that was taken for it; "" = create                 */
    char backend[STK_BACKEND_MAX]; /* chosen by the scheduler                                       */
    int64_t attempt;               /* 1 = first                                                     */
    stk_wall assigned;
    stk_bytes request; /* the whole request as it stood on stk.requests (JSON)          */
} stk_assignment;

void stk_assignment_done(stk_assignment *asg);
STK_DEFINE_FREEP(stk_assignment, stk_assignment_donep, stk_assignment_done)
int stk_assignment_encode(const stk_assignment *asg, stk_buf *out, stk_err *err) STK_MUST_USE;
int stk_assignment_decode(stk_str json, stk_assignment *ret, stk_err *err) STK_MUST_USE;

#endif
