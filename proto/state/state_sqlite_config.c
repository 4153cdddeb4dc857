#include "proto/state/state_sdb.h"
#include <stdio.h>

static int head(stk_sdb *db, const char *tenant, const char *name, int64_t *ret_version,
                stk_bytes *ret_record)
{
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) =
        STK_SQL(db, "SELECT version, record FROM config WHERE tenant = ?1 AND name = ?2", V_TEXT(tenant),
                V_TEXT(name));
    int rc = stk__sql_next(db, stmt);
    *ret_version = rc > 0 ? sqlite3_column_int64(stmt, 0) : 0;
    if (rc > 0 && ret_record)
        stk__col_bytes(stmt, 1, ret_record);
    return rc < 0 ? rc : 0;
}

static int set_head(stk_sdb *db, const char *tenant, const char *name, int64_t version, bool pending,
                    const stk_bytes *record)
{
    stk__note(db, "config");
    return STK_SQL_DO(db, "INSERT OR REPLACE INTO config VALUES(?1, ?2, ?3, ?4, ?5)", V_TEXT(tenant),
                      V_TEXT(name), V_INT(version), V_INT(pending), V_BYTES(record));
}

int stk__do_config_get(stk_sdb *db, stk_op *op_)
{
    stk_op_config_get *op = (stk_op_config_get *)op_;
    return head(db, op->in.tenant, op->in.name, &op->version, &op->record);
}

int stk__do_config_set(stk_sdb *db, stk_op *op_)
{
    stk_op_config_set *op = (stk_op_config_set *)op_;
    char key[sizeof(op->in.tenant) + sizeof(op->in.name)];
    if (!op->in.record.set || !op->in.audit.set)
        return stk_err_set(db->err, STK_E_FIELD, "a configuration change needs its record and its audit row");
    if (head(db, op->in.tenant, op->in.name, &op->version, NULL) < 0)
        return -(int)db->err->code;
    op->outcome = op->version == op->in.expect ? STK_CONFIG_SET_OK : STK_CONFIG_SET_STALE;
    if (op->outcome == STK_CONFIG_SET_STALE)
        return 0;
    op->version++;
    snprintf(key, sizeof(key), "%s/%s", op->in.tenant, op->in.name);
    if (stk__outbox_add(db, STK_TOPIC_AUDIT, key, stk_bytes_view(&op->in.audit), 0, &op->outbox_audit) < 0 ||
        stk__outbox_add(db, STK_TOPIC_CONFIG, key, stk_bytes_view(&op->in.record), op->outbox_audit,
                        &op->outbox_config) < 0)
        return -(int)db->err->code;
    return set_head(db, op->in.tenant, op->in.name, op->version, true, &op->in.record);
}

int stk__do_config_done(stk_sdb *db, stk_op *op_)
{
    stk_op_config_done *op = (stk_op_config_done *)op_;
    int64_t version;
    if (head(db, op->in.tenant, op->in.name, &version, NULL) < 0)
        return -(int)db->err->code;
    if (op->in.record.set && version < op->in.version)
        return set_head(db, op->in.tenant, op->in.name, op->in.version, false, &op->in.record);
    return STK_SQL_DO(
        db, "UPDATE config SET pending = 0 WHERE tenant = ?1 AND name = ?2 AND version <= ?3 AND pending = 1",
        V_TEXT(op->in.tenant), V_TEXT(op->in.name), V_INT(op->in.version));
}

static void read_item(sqlite3_stmt *stmt, stk_outbox_item *item)
{
    item->id = sqlite3_column_int64(stmt, 0);
    STK_COL_TEXT(stmt, 1, item->topic);
    STK_COL_TEXT(stmt, 2, item->key);
    stk_bytes_set(&item->value, stk_db_blob(stmt, 3));
}

/* An item that must follow another (a configuration its audit row) is handed out once that one is done. */
static int pick(stk_sdb *db, const stk_op_outbox_take *op, stk_outbox_items *items)
{
    int64_t most = op->in.most > 0 ? op->in.most : 100;
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) =
        STK_SQL(db,
                "SELECT id, topic, key, value FROM outbox o WHERE made <= ?1 AND held <= ?2"
                " AND NOT EXISTS (SELECT 1 FROM outbox p WHERE p.id = o.after) ORDER BY id LIMIT ?3",
                V_INT(db->now - op->in.older.ns), V_INT(db->now), V_INT(most));
    int rc;
    while ((rc = stk__sql_next(db, stmt)) > 0)
        read_item(stmt, STK_GROW(items->v, items->n));
    return rc;
}

static int pick_one(stk_sdb *db, int64_t id, stk_outbox_items *items)
{
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) =
        STK_SQL(db, "SELECT id, topic, key, value FROM outbox WHERE id = ?1 AND held <= ?2", V_INT(id),
                V_INT(db->now));
    int rc = stk__sql_next(db, stmt);
    if (rc > 0)
        read_item(stmt, STK_GROW(items->v, items->n));
    return rc < 0 ? rc : 0;
}

int stk__do_outbox_take(stk_sdb *db, stk_op *op_)
{
    stk_op_outbox_take *op = (stk_op_outbox_take *)op_;
    int rc = op->in.id ? pick_one(db, op->in.id, &op->items) : pick(db, op, &op->items);
    for (size_t i = 0; rc == 0 && i < op->items.n; i++)
        rc = STK_SQL_DO(db, "UPDATE outbox SET held = ?2 WHERE id = ?1", V_INT(op->items.v[i].id),
                        V_INT(db->now + op->in.hold.ns));
    return rc;
}

int stk__do_outbox_done(stk_sdb *db, stk_op *op_)
{
    stk_op_outbox_done *op = (stk_op_outbox_done *)op_;
    return STK_SQL_DO(db, "DELETE FROM outbox WHERE id = ?1", V_INT(op->in.id));
}
