#include "proto/state/state_sdb.h"
#include <stdio.h>

/* since, until, made, held: CLOCK_BOOTTIME of this boot, nanoseconds. submitted, started, finished, deadline,
 * joined, seen: wall. runs.state: stk_run_state (1 submitted, 2 queued, 3 assigned, 4 running, 5 finished).
 * Large values have tables of their own, so that moving a run rewrites one short row. tenants: runs per
 * state, kept by the one mover. */
const char stk__state_schema[] =
    "CREATE TABLE meta(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE runs(seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, tenant TEXT NOT NULL, agent TEXT "
    "NOT NULL,"
    " kind TEXT NOT NULL, retry TEXT NOT NULL, priority INTEGER NOT NULL, submitted INTEGER NOT NULL,"
    " deadline INTEGER NOT NULL, labels TEXT, key_hash BLOB, body_hash BLOB,"
    " state INTEGER NOT NULL, since INTEGER NOT NULL, reason TEXT NOT NULL DEFAULT '',"
    " assignment TEXT NOT NULL DEFAULT '', worker TEXT NOT NULL DEFAULT '', incarnation TEXT NOT NULL "
    "DEFAULT '',"
    " sandbox TEXT NOT NULL DEFAULT '', lane INTEGER NOT NULL DEFAULT -1, slot INTEGER NOT NULL DEFAULT 0,"
    " cancel INTEGER NOT NULL DEFAULT 0, attempt INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL "
    "DEFAULT 0,"
    " losses INTEGER NOT NULL DEFAULT 0, started INTEGER NOT NULL DEFAULT 0, finished INTEGER NOT NULL "
    "DEFAULT 0,"
    " part INTEGER NOT NULL DEFAULT -1, off INTEGER NOT NULL DEFAULT 0);"
    "CREATE INDEX runs_state ON runs(state, since);"
    "CREATE INDEX runs_tenant ON runs(tenant);"
    "CREATE INDEX runs_held ON runs(worker) WHERE state IN (3, 4);"
    "CREATE UNIQUE INDEX runs_key ON runs(tenant, key_hash) WHERE key_hash IS NOT NULL;"
    "CREATE TABLE records(seq INTEGER PRIMARY KEY, record BLOB NOT NULL);"
    "CREATE TABLE results(seq INTEGER PRIMARY KEY, made INTEGER NOT NULL, result BLOB NOT NULL);"
    "CREATE INDEX results_made ON results(made);"
    "CREATE TABLE tenants(tenant TEXT PRIMARY KEY, s1 INTEGER NOT NULL, s2 INTEGER NOT NULL, s3 INTEGER NOT "
    "NULL,"
    " s4 INTEGER NOT NULL, s5 INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE workers(worker TEXT PRIMARY KEY, incarnation TEXT NOT NULL, host TEXT NOT NULL, slots "
    "INTEGER NOT NULL,"
    " used INTEGER NOT NULL, draining INTEGER NOT NULL, lease INTEGER NOT NULL, until INTEGER NOT NULL,"
    " lane INTEGER NOT NULL, backends BLOB, stats BLOB, joined INTEGER NOT NULL, seen INTEGER NOT NULL) "
    "WITHOUT ROWID;"
    "CREATE TABLE lanes(lane INTEGER PRIMARY KEY, worker TEXT NOT NULL, last TEXT NOT NULL, off INTEGER NOT "
    "NULL);"
    "CREATE TABLE pool(seq INTEGER PRIMARY KEY, sandbox TEXT NOT NULL UNIQUE, template TEXT NOT NULL, tenant "
    "TEXT NOT NULL,"
    " pool TEXT NOT NULL, worker TEXT NOT NULL, incarnation TEXT NOT NULL, backend TEXT NOT NULL, made "
    "INTEGER NOT NULL,"
    " taken INTEGER NOT NULL DEFAULT 0, since INTEGER NOT NULL);"
    "CREATE INDEX pool_free ON pool(template, seq) WHERE taken = 0;"
    "CREATE INDEX pool_worker ON pool(worker) WHERE taken = 0;"
    "CREATE TABLE config(tenant TEXT NOT NULL, name TEXT NOT NULL, version INTEGER NOT NULL, pending INTEGER "
    "NOT NULL,"
    " record BLOB NOT NULL, PRIMARY KEY(tenant, name));"
    "CREATE TABLE outbox(id INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, key TEXT NOT NULL, made "
    "INTEGER NOT NULL,"
    " held INTEGER NOT NULL, after INTEGER NOT NULL, value BLOB NOT NULL);"
    "CREATE TABLE output(id INTEGER PRIMARY KEY, run TEXT NOT NULL, off INTEGER NOT NULL, length INTEGER NOT "
    "NULL,"
    " made INTEGER NOT NULL, sealed BLOB NOT NULL);"
    "CREATE UNIQUE INDEX output_run ON output(run, off);";

int stk__meta_set(stk_sdb *db, const char *name, const char *value)
{
    return STK_SQL_DO(db, "INSERT OR REPLACE INTO meta VALUES(?1, ?2)", V_TEXT(name), V_TEXT(value));
}

int stk__meta_set_int(stk_sdb *db, const char *name, int64_t value)
{
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)value);
    return stk__meta_set(db, name, text);
}

static int meta_get(stk_sdb *db, const char *name, char *out, size_t size)
{
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) =
        STK_SQL(db, "SELECT value FROM meta WHERE name = ?1", V_TEXT(name));
    out[0] = '\0';
    int rc = stk__sql_next(db, stmt);
    if (rc > 0)
        stk__col_text(stmt, 0, out, size);
    return rc < 0 ? rc : 0;
}

int stk__meta_load(stk_sdb *db)
{
    char open[8], reaped[24];
    if (meta_get(db, "epoch", db->epoch, sizeof(db->epoch)) < 0 ||
        meta_get(db, "open", open, sizeof(open)) < 0 || meta_get(db, "reaped", reaped, sizeof(reaped)) < 0)
        return -(int)db->err->code;
    db->open = open[0] == '1';
    db->reaped = reaped[0] ? strtoll(reaped, NULL, 10) : -1;
    return 0;
}

/* Every worker of another boot is dead, whatever was live is not, and no span of that boot means anything
 * now. What was asked (runs), their outbox and the configuration stay; reap settles the runs that were held
 * and opens. */
static int new_boot(stk_sdb *db)
{
    static const char sql[] =
        "DELETE FROM workers; DELETE FROM pool; DELETE FROM output; DELETE FROM results;"
        "UPDATE lanes SET worker = ''; UPDATE outbox SET made = 0, held = 0;";
    int rc = stk_db_exec(db->db, sql, db->err);
    return rc < 0 ? rc : STK_SQL_DO(db, "UPDATE runs SET since = ?1", V_INT(db->now));
}

int stk__meta_start(stk_sdb *db, const char *boot)
{
    char old[STK_BOOT_ID], epoch[STK_ID_SIZE];
    int rc = meta_get(db, "boot", old, sizeof(old));
    if (rc < 0 || strcmp(old, boot) == 0)
        return rc < 0 ? rc : stk__meta_load(db);
    stk_id_new("epoch", stk_wall_now(), epoch);
    if (old[0] && new_boot(db) < 0)
        return -(int)db->err->code;
    if (stk__meta_set(db, "boot", boot) < 0 || stk__meta_set(db, "epoch", epoch) < 0 ||
        stk__meta_set(db, "open", old[0] ? "0" : "1") < 0 || stk__meta_set(db, "reaped", "-1") < 0)
        return -(int)db->err->code;
    return stk__meta_load(db);
}
