#include "proto/store/check.h"
#include <stdio.h>

#define ROW_MAX ((size_t)STK_RECORD_MAX * 2 + STK_SHA256)

void stk__check_begin(stk_check *c)
{
    stk_buf_init(&c->heads.bytes, (size_t)64 << 20);
    stk_buf_init(&c->scratch, ROW_MAX);
    c->report.ok = c->begun = true;
}

void stk__check_place(stk_check *c, int32_t partition, int64_t last, stk_str head)
{
    if ((c->nplaces & (c->nplaces - 1)) == 0)
        c->places = stk_xrealloc(c->places, (c->nplaces ? c->nplaces * 2 : 1) * sizeof(*c->places));
    stk_place *p = &c->places[c->nplaces++];
    *p = (stk_place){.partition = partition, .last = last, .known = head.n > 0};
    if (head.n == sizeof(p->head))
        memcpy(p->head, head.p, head.n);
    c->report.chains++;
}

static bool text_is(stk_str column, const char *want)
{
    return stk_str_eq(column, stk_str_of(want));
}

/* The columns are what queries search by: they must say what the row says. NULL when all is well. */
static const char *columns_wrong(const stk_stored_row *stored)
{
    stk_audit_row row STK_AUTO(stk_audit_row_done) = {0};
    if (stk_audit_decode(stored->row, &row, NULL) < 0)
        return "the row is not an audit row";
    if (!text_is(stored->id, row.id) || !text_is(stored->tenant, row.tenant) ||
        !text_is(stored->agent, row.agent) || !text_is(stored->run, row.run) ||
        !text_is(stored->action, row.action) || stored->ms != row.time.ns / 1000000)
        return "a column says something else than the row";
    return NULL;
}

void stk__check_broken(stk_check *c, int64_t seq, stk_str id, const char *why)
{
    c->report.ok = false;
    c->report.bad_partition = c->places[c->at].partition;
    c->report.bad_seq = seq;
    if (!stk_str_copy(id, c->report.bad_id, sizeof(c->report.bad_id)))
        c->report.bad_id[0] = '\0';
    snprintf(c->report.why, sizeof(c->report.why), "%s", why);
}

bool stk__check_row(stk_check *c, const stk_stored_row *row)
{
    int64_t want = c->chain.seq + 1;
    uint8_t computed[STK_SHA256];
    const char *why = NULL;
    if (row->seq != want) {
        stk__check_broken(c, want, (stk_str){NULL, 0}, "the row is missing");
        return false;
    }
    if (row->hash.n != sizeof(computed) || stk_chain_next(&c->chain, row->row, &c->scratch, computed) < 0 ||
        memcmp(row->hash.p, computed, sizeof(computed)) != 0)
        why = "the hash does not follow from the row and the one before";
    else
        why = columns_wrong(row);
    if (why) {
        stk__check_broken(c, want, row->id, why);
        return false;
    }
    stk_chain_add(&c->chain, computed);
    c->report.rows++;
    return true;
}

int stk__check_chain_end(stk_check *c, stk_err *err)
{
    const stk_place *p = &c->places[c->at];
    if (c->chain.seq != p->last)
        stk__check_broken(c, c->chain.seq + 1, (stk_str){NULL, 0}, "the row is missing");
    else if (p->known && memcmp(p->head, c->chain.hash, sizeof(p->head)) != 0)
        stk__check_broken(c, c->chain.seq, (stk_str){NULL, 0}, "the chain's head is another one");
    else if (stk_chain_heads_add(&c->heads, p->partition, &c->chain) < 0)
        return stk_err_set(err, STK_E_LIMIT, "too many chains");
    c->at++;
    c->chain = (stk_chain){0};
    return 0;
}

void stk__check_end(stk_check *c)
{
    stk_chain_heads_digest(&c->heads, c->report.head);
}

void stk__check_done(stk_check *c)
{
    free(c->places);
    stk_buf_done(&c->heads.bytes);
    stk_buf_done(&c->scratch);
    *c = (stk_check){0};
}
