/* New rows: hashed, then COPY in the binary format. */
#include "proto/store/store_postgres_group.h"
#include <endian.h>

#define CHUNK   ((size_t)256 << 10)
#define COLUMNS 10

static const char into[] =
    "COPY audit(partition, seq, id, time, tenant, agent, run, action, row, hash) FROM STDIN (FORMAT binary)";

static void put_bytes(stk_buf *out, const void *p, size_t n)
{
    uint32_t length = htobe32((uint32_t)n);
    (void)!stk_buf_add(out, &length, sizeof(length));
    (void)!stk_buf_add(out, p, n);
}

static void put_text(stk_buf *out, const char *text)
{
    put_bytes(out, text, strlen(text));
}

static void put_int4(stk_buf *out, int32_t n)
{
    uint32_t net = htobe32((uint32_t)n);
    put_bytes(out, &net, sizeof(net));
}

static void put_int8(stk_buf *out, int64_t n)
{
    uint64_t net = htobe64((uint64_t)n);
    put_bytes(out, &net, sizeof(net));
}

static void put_row(stk_buf *out, const stk_append_job *job, const stk_store_entry *e, const stk_chain *chain)
{
    uint16_t columns = htobe16(COLUMNS);
    stk_str row = stk__entry_bytes(job, e);
    (void)!stk_buf_add(out, &columns, sizeof(columns));
    put_int4(out, job->partition);
    put_int8(out, chain->seq);
    put_text(out, e->id);
    put_int8(out, e->ms);
    put_text(out, e->tenant);
    put_text(out, e->agent);
    put_text(out, e->run);
    put_text(out, e->action);
    put_bytes(out, row.p, row.n);
    put_bytes(out, chain->hash, sizeof(chain->hash));
}

static int flush_chunk(stk_pg_link *link, stk_buf *out, size_t least, stk_err *err)
{
    if (out->n < least)
        return 0;
    int rc = stk__pg_copy_add(link, stk_buf_view(out), err);
    stk_buf_reset(out);
    return rc;
}

typedef struct copying {
    stk_pg_group *g;
    stk_buf out, scratch;
    size_t at, most; /* row of the group */
} copying;

static int copy_job(copying *c, stk_append_job *job, stk_err *err)
{
    stk_pg_chain *chain = job->nrows ? stk__pg_chain_of(c->g, job->partition) : NULL;
    uint8_t hash[STK_SHA256];
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < job->nrows && c->at < c->most; i++) {
        if (c->g->ids.repeated[c->at++])
            continue;
        const stk_store_entry *e = &job->rows[i];
        if (stk_chain_next(&chain->chain, stk__entry_bytes(job, e), &c->scratch, hash) < 0)
            return stk_err_set(err, STK_E_LIMIT, "a row of %zu bytes", e->n);
        stk_chain_add(&chain->chain, hash);
        put_row(&c->out, job, e, &chain->chain);
        job->stored++;
        rc = flush_chunk(c->g->link, &c->out, CHUNK, err);
    }
    return rc;
}

static size_t new_rows(const stk_pg_ids *ids, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < ids->n && i < most; i++)
        n += !ids->repeated[i];
    return n;
}

int stk__pg_copy_rows(stk_pg_group *g, size_t most, stk_err *err)
{
    static const char head[19] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0\0", end[2] = "\377\377";
    if (!new_rows(&g->ids, most))
        return 0;
    copying c = {.g = g, .most = most};
    stk_buf_init(&c.out, CHUNK + STK__STORE_ROW_MAX);
    stk_buf_init(&c.scratch, STK__STORE_ROW_MAX + STK_SHA256);
    int rc = stk__pg_copy_begin(g->link, into, err);
    if (rc == 0)
        rc = stk_buf_add(&c.out, head, sizeof(head));
    for (size_t i = 0; rc == 0 && i < g->n; i++)
        if (stk__pg_accepted(g->jobs[i]))
            rc = copy_job(&c, g->jobs[i], err);
    if (rc == 0)
        rc = stk_buf_add(&c.out, end, sizeof(end));
    if (rc == 0)
        rc = flush_chunk(g->link, &c.out, 0, err);
    if (rc == 0)
        rc = stk__pg_copy_end(g->link, err);
    stk_buf_done(&c.out);
    stk_buf_done(&c.scratch);
    return rc;
}
