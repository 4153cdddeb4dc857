/* Checking chains: pure. Give it the places in order of partition, then the rows of each in order of seq, and
 * end each chain. Memory: one row, and one head for each chain. */
#ifndef STK_STORE_CHECK_H
#define STK_STORE_CHECK_H

#include "proto/store/chain.h"
#include "proto/store/store.h"

typedef struct stk_place {
    int32_t partition;
    int64_t last; /* seq when the check began: rows added meanwhile are not waited for */
    bool known;   /* the head that was kept apart from the rows */
    uint8_t head[STK_SHA256];
} stk_place;

typedef struct stk_check {
    stk_place *places;
    size_t nplaces, at;
    stk_chain chain;
    stk_chain_heads heads;
    stk_buf scratch;
    stk_chain_report report;
    bool begun;
    void *own; /* of the adapter */
} stk_check;

typedef struct stk_stored_row {
    int64_t seq, ms;
    stk_str id, tenant, agent, run, action, row, hash;
} stk_stored_row;

void stk__check_begin(stk_check *c);
/* `head`: of the chain as it was kept apart from the rows; empty when it was not. */
void stk__check_place(stk_check *c, int32_t partition, int64_t last, stk_str head);
/* False: broken; the report says where. */
bool stk__check_row(stk_check *c, const stk_stored_row *row);
/* The report becomes: broken at this row of the present chain. */
void stk__check_broken(stk_check *c, int64_t seq, stk_str id, const char *why);
/* No more rows in this chain: on to the next. */
int stk__check_chain_end(stk_check *c, stk_err *err) STK_MUST_USE;
void stk__check_end(stk_check *c);
void stk__check_done(stk_check *c);

#endif
