/* Tables, their versions, and the months of the audit table. */
#include "proto/store/store_postgres_impl.h"
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define FIRST_YEAR 2020 /* ids of other times share one partition at each end */
#define LAST_YEAR  2100

/* `audit` is partitioned by the time in the ids, so that an id is unique. chains: head of each. */
static const char version_1[] =
    "CREATE TABLE audit(partition int4 NOT NULL, seq int8 NOT NULL, id text COLLATE \"C\" NOT NULL, time "
    "int8 NOT NULL,"
    " tenant text COLLATE \"C\" NOT NULL, agent text COLLATE \"C\" NOT NULL, run text COLLATE \"C\" NOT NULL,"
    " action text COLLATE \"C\" NOT NULL, row bytea NOT NULL, hash bytea NOT NULL, PRIMARY KEY(id)) "
    "PARTITION BY RANGE(id);"
    "CREATE INDEX audit_chain ON audit(partition, seq);"
    "CREATE INDEX audit_time ON audit(time, id);"
    "CREATE INDEX audit_tenant ON audit(tenant, time, id);"
    "CREATE INDEX audit_run ON audit(run, time, id) WHERE run <> '';"
    "CREATE TABLE chains(partition int4 PRIMARY KEY, seq int8 NOT NULL, hash bytea NOT NULL);"
    "CREATE TABLE checkpoints(partition int4 NOT NULL, first int8 NOT NULL, last int8 NOT NULL, month int4 "
    "NOT NULL,"
    " before bytea NOT NULL, after bytea NOT NULL, seal bytea NOT NULL, PRIMARY KEY(partition, first));"
    "CREATE TABLE offsets(topic text COLLATE \"C\", partition int4, next int8 NOT NULL, PRIMARY KEY(topic, "
    "partition));"
    "CREATE TABLE results(run text COLLATE \"C\" PRIMARY KEY, tenant text COLLATE \"C\" NOT NULL,"
    " assignment text COLLATE \"C\" NOT NULL, event bytea NOT NULL);"
    "CREATE TABLE late(run text COLLATE \"C\", assignment text COLLATE \"C\", kind text COLLATE \"C\", "
    "pending bool NOT NULL,"
    " event bytea NOT NULL, PRIMARY KEY(run, assignment, kind));"
    "CREATE FUNCTION store_event(p_run text, p_tenant text, p_assignment text, p_kind text, p_late bool, "
    "p_event bytea)"
    " RETURNS int4 LANGUAGE plpgsql AS $$\n"
    "DECLARE winner text; won bool; stored int4;\n"
    "BEGIN\n"
    "  SELECT assignment INTO winner FROM results WHERE run = p_run;\n"
    "  won := FOUND;\n"
    "  IF won AND winner = p_assignment THEN RETURN 0; END IF;\n"
    "  IF NOT won AND NOT p_late AND p_kind = 'finished' THEN\n"
    "    INSERT INTO results VALUES(p_run, p_tenant, p_assignment, p_event);\n"
    "    DELETE FROM late WHERE run = p_run AND assignment = p_assignment AND pending;\n"
    "    UPDATE late SET pending = false WHERE run = p_run AND pending;\n"
    "    RETURN 1;\n"
    "  END IF;\n"
    "  INSERT INTO late VALUES(p_run, p_assignment, p_kind, NOT won AND NOT p_late, p_event) ON CONFLICT DO "
    "NOTHING;\n"
    "  GET DIAGNOSTICS stored = ROW_COUNT;\n"
    "  RETURN stored;\n"
    "END $$;";

static const char *const versions[] = {version_1};

void stk__pg_bound(stk_wall time, char out[STK_ID_SIZE])
{
    uint8_t bytes[16] = {0};
    uint64_t ms = (uint64_t)time.ns / 1000000;
    for (int i = 5; i >= 0; i--, ms >>= 8)
        bytes[i] = (uint8_t)ms;
    stk_id_from("aud", bytes, out);
}

stk_wall stk__pg_month_begin(int32_t month)
{
    struct tm tm = {.tm_year = 70 + month / 12, .tm_mon = month % 12, .tm_mday = 1};
    return (stk_wall){(int64_t)timegm(&tm) * 1000000000};
}

int32_t stk__pg_month_of(const char *id)
{
    int64_t seconds = stk_id_time(stk_str_of(id)).ns / 1000000000;
    struct tm tm;
    gmtime_r(&(time_t){seconds}, &tm);
    if (tm.tm_year + 1900 < FIRST_YEAR)
        return -1;
    return tm.tm_year + 1900 < LAST_YEAR ? (tm.tm_year - 70) * 12 + tm.tm_mon : INT32_MAX;
}

void stk__pg_month_name(int32_t month, char out[32])
{
    if (month == -1 || month == INT32_MAX)
        snprintf(out, 32, "audit_%s", month < 0 ? "before" : "after");
    else
        snprintf(out, 32, "audit_%04d_%02d", 1970 + month / 12, month % 12 + 1);
}

static int create_ends(stk_pg_link *link, stk_err *err)
{
    char first[STK_ID_SIZE], last[STK_ID_SIZE], sql[256];
    stk__pg_bound(stk__pg_month_begin((FIRST_YEAR - 1970) * 12), first);
    stk__pg_bound(stk__pg_month_begin((LAST_YEAR - 1970) * 12), last);
    snprintf(sql, sizeof(sql),
             "CREATE TABLE audit_before PARTITION OF audit FOR VALUES FROM (MINVALUE) TO ('%s');"
             "CREATE TABLE audit_after PARTITION OF audit FOR VALUES FROM ('%s') TO (MAXVALUE)",
             first, last);
    return stk__pg_run(link, sql, err);
}

/* Asks the catalog's tables: a look-up by name alone may answer from a cache that is older than our lock. */
static int table_exists(stk_pg_link *link, const char *name, bool *ret, stk_err *err)
{
    PGresult *res STK_AUTO(stk__pg_clearp) = NULL;
    stk_pg_args args = {0};
    stk__pg_text(&args, name);
    int rc = stk__pg_ask(
        link, "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = $1", &args,
        &res, err);
    if (rc == 0)
        *ret = stk__pg_get_int(res, 0, 0) > 0;
    return rc;
}

static int read_version(stk_pg_link *link, int64_t *ret, stk_err *err)
{
    PGresult *res STK_AUTO(stk__pg_clearp) = NULL;
    bool exists = false;
    *ret = 0;
    int rc = table_exists(link, "schema_version", &exists, err);
    if (rc < 0 || !exists)
        return rc;
    rc = stk__pg_ask(link, "SELECT coalesce(max(version), 0)::int8 FROM schema_version", NULL, &res, err);
    if (rc == 0)
        *ret = stk__pg_get_int(res, 0, 0);
    return rc;
}

static int apply(stk_pg_link *link, int64_t from, stk_err *err)
{
    int rc = 0;
    if (from == 0)
        rc = stk__pg_run(
            link,
            "CREATE TABLE IF NOT EXISTS schema_version(version int4 PRIMARY KEY, applied timestamptz NOT "
            "NULL DEFAULT now())",
            err);
    for (int64_t v = from; rc == 0 && v < (int64_t)STK_COUNT(versions); v++) {
        char sql[96];
        snprintf(sql, sizeof(sql), "INSERT INTO schema_version(version) VALUES(%" PRId64 ")", v + 1);
        rc = stk__pg_run(link, versions[v], err);
        if (rc == 0 && v == 0)
            rc = create_ends(link, err);
        if (rc == 0)
            rc = stk__pg_run(link, sql, err);
    }
    return rc;
}

int stk__pg_migrate(stk_pg_link *link, stk_err *err)
{
    int64_t version;
    int rc = read_version(link, &version, err);
    if (rc == 0 && version < (int64_t)STK_COUNT(versions) && !link->read_only) {
        rc = stk__pg_run(link, "BEGIN; SELECT " STK__PG_LOCK, err);
        if (rc == 0)
            rc = read_version(link, &version, err);
        if (rc == 0)
            rc = apply(link, version, err);
        if (rc == 0)
            rc = stk__pg_run(link, "COMMIT", err);
        if (rc == 0)
            version = STK_COUNT(versions);
    }
    if (rc == 0 && version > (int64_t)STK_COUNT(versions))
        return stk_err_set(err, STK_E_NEWER,
                           "the store has schema version %" PRId64 ", this program knows %zu", version,
                           STK_COUNT(versions));
    if (rc == 0 && version < (int64_t)STK_COUNT(versions))
        return stk_err_set(err, STK_E_UNAVAILABLE, "the store has no tables yet");
    return rc < 0 ? stk_err_wrap(err, "schema") : 0;
}

static int create_month(stk_pg_link *link, int32_t month, stk_err *err)
{
    char name[32], from[STK_ID_SIZE], to[STK_ID_SIZE], sql[512];
    bool exists = false;
    stk__pg_month_name(month, name);
    stk__pg_bound(stk__pg_month_begin(month), from);
    stk__pg_bound(stk__pg_month_begin(month + 1), to);
    int rc = stk__pg_run(link, "BEGIN; SELECT " STK__PG_LOCK, err);
    if (rc == 0)
        rc = table_exists(link, name, &exists, err);
    /* LIKE and ATTACH, because PARTITION OF would lock all readers out. */
    snprintf(sql, sizeof(sql),
             "CREATE TABLE %s (LIKE audit); ALTER TABLE audit ATTACH PARTITION %s FOR VALUES FROM ('%s') TO "
             "('%s')",
             name, name, from, to);
    if (rc == 0 && !exists)
        rc = stk__pg_run(link, sql, err);
    return rc < 0 ? rc : stk__pg_run(link, "COMMIT", err);
}

int stk__pg_month_ensure(stk_pg_link *link, int32_t month, stk_err *err)
{
    unsigned known = link->nmonths < STK__PG_MONTHS ? link->nmonths : STK__PG_MONTHS;
    if (month == -1 || month == INT32_MAX)
        return 0;
    for (unsigned i = 0; i < known; i++)
        if (link->months[i] == month)
            return 0;
    int rc = create_month(link, month, err);
    if (rc == 0)
        link->months[link->nmonths++ % STK__PG_MONTHS] = month;
    else
        stk__pg_rollback(link);
    return rc;
}
