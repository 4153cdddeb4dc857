/* Dropping old months. Rows of a month are not one piece of a chain: around its ends they mix with the next
 * one's. Each piece that goes leaves a checkpoint: the hashes before and after it, sealed. */
#include "proto/store/store_postgres_impl.h"
#include <inttypes.h>
#include <stdio.h>

#define CONTEXT "store.checkpoint"

static void describe(const stk_pg_checkpoint *cp, char out[256])
{
    char before[2 * STK_SHA256 + 1], after[2 * STK_SHA256 + 1];
    stk_hex(cp->before, sizeof(cp->before), before);
    stk_hex(cp->after, sizeof(cp->after), after);
    snprintf(out, 256, "%d %d %" PRId64 " %" PRId64 " %s %s", cp->partition, cp->month, cp->from, cp->to,
             before, after);
}

static int read_hash(stk_str s, uint8_t out[STK_SHA256], stk_err *err)
{
    if (s.n != STK_SHA256)
        return stk_err_set(err, STK_E_CORRUPT, "a hash of %zu bytes", s.n);
    memcpy(out, s.p, s.n);
    return 0;
}

int stk__pg_checkpoint_find(stk_pg_link *link, const stk_keyring *ring, int32_t partition, int64_t from,
                            stk_pg_checkpoint *ret, const char **ret_why, stk_err *err)
{
    PGresult *res STK_AUTO(stk__pg_clearp) = NULL;
    stk_pg_args args = {0};
    stk__pg_int4(&args, partition);
    stk__pg_int8(&args, from);
    int rc = stk__pg_ask(
        link, "SELECT last, month, before, after, seal FROM checkpoints WHERE partition = $1 AND first = $2",
        &args, &res, err);
    if (rc < 0 || PQntuples(res) == 0)
        return rc;
    char text[256];
    stk_err closed;
    stk_buf opened STK_AUTO(stk_buf_done) = STK_BUF(256);
    *ret = (stk_pg_checkpoint){.partition = partition,
                               .from = from,
                               .to = stk__pg_get_int(res, 0, 0),
                               .month = (int32_t)stk__pg_get_int(res, 0, 1)};
    if (read_hash(stk__pg_get(res, 0, 2), ret->before, &closed) < 0 ||
        read_hash(stk__pg_get(res, 0, 3), ret->after, &closed) < 0 || ret->to < from) {
        *ret_why = "the checkpoint is damaged";
        return 0;
    }
    describe(ret, text);
    if (ring && stk_unseal(ring, CONTEXT, stk_str_of(text), stk__pg_get(res, 0, 4), &opened, &closed) == 0)
        return 1;
    *ret_why = ring ? "the checkpoint's seal does not open" : "a checkpoint, and no key to check it";
    return 0;
}

static int save(stk_pg_link *link, const stk_keyring *ring, const stk_pg_checkpoint *cp, stk_err *err)
{
    char text[256];
    stk_buf seal STK_AUTO(stk_buf_done) = STK_BUF(4096);
    describe(cp, text);
    int rc = stk_seal(ring, CONTEXT, stk_str_of(text), stk_str_n("", 0), &seal, err);
    if (rc < 0)
        return rc;
    stk_pg_args args = {0};
    stk__pg_int4(&args, cp->partition);
    stk__pg_int8(&args, cp->from);
    stk__pg_int8(&args, cp->to);
    stk__pg_int4(&args, cp->month);
    stk__pg_bytes(&args, stk_str_n(cp->before, sizeof(cp->before)));
    stk__pg_bytes(&args, stk_str_n(cp->after, sizeof(cp->after)));
    stk__pg_bytes(&args, stk_buf_view(&seal));
    return stk__pg_ask(link, "INSERT INTO checkpoints VALUES($1, $2, $3, $4, $5, $6, $7)", &args, NULL, err);
}

/* The pieces of all chains within the month; before: hash of the row, or checkpoint, in front of each. */
static int find_pieces(stk_pg_link *link, const char *month, PGresult **ret, stk_err *err)
{
    char sql[1024];
    snprintf(
        sql, sizeof(sql),
        "SELECT p.partition, p.first, p.last,"
        " CASE WHEN p.first = 1 THEN decode(repeat('00', 32), 'hex') ELSE coalesce("
        "(SELECT hash FROM audit a WHERE a.partition = p.partition AND a.seq = p.first - 1),"
        "(SELECT after FROM checkpoints c WHERE c.partition = p.partition AND c.last = p.first - 1)) END,"
        " (SELECT hash FROM audit a WHERE a.partition = p.partition AND a.seq = p.last)"
        " FROM (SELECT partition, min(seq) AS first, max(seq) AS last FROM"
        " (SELECT partition, seq, seq - row_number() OVER (PARTITION BY partition ORDER BY seq) AS piece "
        "FROM %s) r"
        " GROUP BY partition, piece) p ORDER BY 1, 2",
        month);
    return stk__pg_ask(link, sql, NULL, ret, err);
}

static int save_pieces(stk_pg_link *link, const stk_keyring *ring, int32_t month, const PGresult *pieces,
                       int64_t *rows, stk_err *err)
{
    int rc = 0;
    for (int i = 0; rc == 0 && i < PQntuples(pieces); i++) {
        stk_pg_checkpoint cp = {.partition = (int32_t)stk__pg_get_int(pieces, i, 0),
                                .month = month,
                                .from = stk__pg_get_int(pieces, i, 1),
                                .to = stk__pg_get_int(pieces, i, 2)};
        *rows += cp.to - cp.from + 1;
        rc = read_hash(stk__pg_get(pieces, i, 3), cp.before, err);
        if (rc == 0)
            rc = read_hash(stk__pg_get(pieces, i, 4), cp.after, err);
        if (rc == 0)
            rc = save(link, ring, &cp, err);
    }
    return rc;
}

static int drop_month(stk_pg_link *link, const stk_keyring *ring, int32_t month, int64_t *ret_rows,
                      stk_err *err)
{
    char name[32], sql[256];
    PGresult *pieces STK_AUTO(stk__pg_clearp) = NULL;
    int64_t rows = 0;
    stk__pg_month_name(month, name);
    /* Chains first, as appends do: none is half-way when the table goes. */
    int rc = stk__pg_run(
        link, "BEGIN; LOCK TABLE offsets, chains IN SHARE ROW EXCLUSIVE MODE; SELECT " STK__PG_LOCK, err);
    if (rc == 0)
        rc = find_pieces(link, name, &pieces, err);
    if (rc == 0)
        rc = save_pieces(link, ring, month, pieces, &rows, err);
    snprintf(sql, sizeof(sql), "ALTER TABLE audit DETACH PARTITION %s; DROP TABLE %s; COMMIT", name, name);
    if (rc == 0)
        rc = stk__pg_run(link, sql, err);
    if (rc == 0)
        *ret_rows += rows;
    return rc < 0 ? stk_err_wrap(err, "drop %s", name) : 0;
}

static int list_months(stk_pg_link *link, PGresult **ret, stk_err *err)
{
    return stk__pg_ask(
        link,
        "SELECT (substr(c.relname, 7, 4)::int4 - 1970) * 12 + substr(c.relname, 12, 2)::int4 - 1 AS month"
        " FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
        " WHERE i.inhparent = 'audit'::regclass AND c.relname ~ '^audit_[0-9]{4}_[0-9]{2}$' ORDER BY 1",
        NULL, ret, err);
}

int stk_store_postgres_retain(const stk_store_postgres_spec *spec, stk_wall before, stk_retained *ret,
                              stk_err *err)
{
    stk_pg_link link = {0};
    PGresult *months STK_AUTO(stk__pg_clearp) = NULL;
    *ret = (stk_retained){0};
    if (!spec->ring)
        return stk_err_set(err, STK_E_CONFIG, "retention needs a key to seal its checkpoints with");
    int rc = stk__pg_link_init(&link, spec, true, err);
    if (rc < 0)
        return rc;
    rc = stk__pg_link_up(&link, err);
    if (rc == 0)
        rc = list_months(&link, &months, err);
    for (int i = 0; rc == 0 && i < PQntuples(months); i++) {
        int32_t month = (int32_t)stk__pg_get_int(months, i, 0);
        if (stk_wall_before(before, stk__pg_month_begin(month + 1)))
            break;
        rc = drop_month(&link, spec->ring, month, &ret->rows, err);
        ret->months += rc == 0;
    }
    stk__pg_link_done(&link);
    return rc;
}
