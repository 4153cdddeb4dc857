#include "proto/state/state_sdb.h"
#include <stdio.h>

static sqlite3_stmt *cached(stk_sdb *db, const char *sql)
{
    size_t slots = STK_COUNT(db->cache);
    size_t at = ((uintptr_t)sql >> 3) % slots;
    for (size_t i = 0; i < slots; i++, at = (at + 1) % slots) {
        if (db->cache[at].sql == sql)
            return db->cache[at].stmt;
        if (db->cache[at].sql)
            continue;
        sqlite3_stmt *stmt = NULL;
        if (stk_db_prepare(db->db, sql, &stmt, db->err) < 0)
            return NULL;
        db->cache[at].sql = sql;
        db->cache[at].stmt = stmt;
        return stmt;
    }
    stk_err_set(db->err, STK_E_INTERNAL, "more statements than places to keep them");
    return NULL;
}

static void bind_value(sqlite3_stmt *stmt, int index, const stk_val *val)
{
    switch (val->type) {
    case 'i':
        sqlite3_bind_int64(stmt, index, val->i);
        break;
    case 't':
        sqlite3_bind_text(stmt, index, val->s.n ? val->s.p : "", (int)val->s.n, SQLITE_STATIC);
        break;
    case 'b':
        stk_db_bind_blob(stmt, index, val->s);
        break;
    default:
        sqlite3_bind_null(stmt, index);
    }
}

sqlite3_stmt *stk__sql(stk_sdb *db, const char *sql, const stk_val *vals, size_t n)
{
    sqlite3_stmt *stmt = cached(db, sql);
    if (!stmt)
        return NULL;
    sqlite3_reset(stmt);
    for (size_t i = 0; i < n; i++)
        bind_value(stmt, (int)i + 1, &vals[i]);
    return stmt;
}

int stk__sql_next(stk_sdb *db, sqlite3_stmt *stmt)
{
    if (!stmt)
        return db->err->code ? -(int)db->err->code : stk_err_set(db->err, STK_E_INTERNAL, "no statement");
    return stk_db_step(stmt, db->err);
}

int stk__sql_do(stk_sdb *db, const char *sql, const stk_val *vals, size_t n)
{
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) = stk__sql(db, sql, vals, n);
    int rc = stk__sql_next(db, stmt);
    return rc < 0 ? rc : 0;
}

void stk__sql_reset(sqlite3_stmt **stmt)
{
    if (*stmt)
        sqlite3_reset(*stmt);
}

void stk__col_text(sqlite3_stmt *stmt, int column, char *out, size_t size)
{
    if (!stk_str_copy(stk_db_blob(stmt, column), out, size))
        out[0] = '\0';
}

void stk__col_bytes(sqlite3_stmt *stmt, int column, stk_bytes *out)
{
    if (sqlite3_column_type(stmt, column) != SQLITE_NULL)
        stk_bytes_set(out, stk_db_blob(stmt, column));
}

void stk__note(stk_sdb *db, const char *what)
{
    if (db->nnotes && strcmp(db->notes[db->nnotes - 1], what) == 0)
        return;
    if (db->nnotes == db->notes_size) {
        db->notes_size = db->notes_size ? db->notes_size * 2 : 64;
        db->notes = stk_xrealloc(db->notes, db->notes_size * sizeof(*db->notes));
    }
    snprintf(db->notes[db->nnotes++], sizeof(*db->notes), "%s", what);
}

void stk__note_of(stk_sdb *db, const char *kind, const char *id)
{
    stk_note_name name;
    snprintf(name, sizeof(name), "%s/%s", kind, id);
    stk__note(db, name);
}
