#include "proto/base/sqlite.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static void die(const char *path, const char *what, int rc, int sys)
{
    char line[512];
    int n = snprintf(
        line, sizeof(line),
        "stockade: %s: %s failed (%s, errno %d): ending, because what is on disk is not known any more\n",
        path ? path : "?", what, sqlite3_errstr(rc), sys);
    if (n > 0) {
        ssize_t ignored = write(2, line, stk_min((size_t)n, sizeof(line) - 1));
        (void)ignored;
    }
    _exit(STK_DB_DIED);
}

static stk_code code_of(int rc, int sys)
{
    if (sys == ENOSPC || sys == EDQUOT)
        return STK_E_NO_SPACE;
    switch (rc & 0xff) {
    case SQLITE_FULL:
        return STK_E_NO_SPACE;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return STK_E_CORRUPT;
    case SQLITE_NOMEM:
        return STK_E_NOMEM;
    case SQLITE_TOOBIG:
        return STK_E_TOO_LARGE;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_READONLY:
    case SQLITE_IOERR:
        return STK_E_UNAVAILABLE;
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
        return STK_E_SYSTEM;
    default:
        return STK_E_INTERNAL;
    }
}

int stk_db_fail(sqlite3 *db, int rc, stk_err *err, const char *what)
{
    const char *path = db ? sqlite3_db_filename(db, "main") : NULL;
    int sys = (rc & 0xff) == SQLITE_IOERR || (rc & 0xff) == SQLITE_CANTOPEN ? sqlite3_system_errno(db) : 0;
    if (rc == SQLITE_IOERR_FSYNC || rc == SQLITE_IOERR_DIR_FSYNC)
        die(path, "fsync", rc, sys);
    stk_code code = code_of(rc, sys);
    const char *why = db && sqlite3_extended_errcode(db) == rc ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
    const char *slash = path ? strrchr(path, '/') : NULL;
    const char *name = slash ? slash + 1 : path && *path ? path : "database";
    stk_err_set(err, code, "%s: %s: %s", name, what, why); /* no folder: a caller of the API may read this */
    if (err)
        err->sys = sys;
    return -(int)code;
}

int stk_db_exec(sqlite3 *db, const char *sql, stk_err *err)
{
    int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : stk_db_fail(db, rc, err, "exec");
}

int stk_db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret, stk_err *err)
{
    int rc = sqlite3_prepare_v3(db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);
    return rc == SQLITE_OK ? 0 : stk_db_fail(db, rc, err, "prepare");
}

int stk_db_step(sqlite3_stmt *stmt, stk_err *err)
{
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        return 1;
    int fail = rc == SQLITE_DONE ? 0 : stk_db_fail(sqlite3_db_handle(stmt), rc, err, "step");
    sqlite3_reset(stmt);
    return fail;
}

int stk_db_run(sqlite3_stmt *stmt, stk_err *err)
{
    int rc = stk_db_step(stmt, err);
    if (rc == 1) {
        sqlite3_reset(stmt);
        rc = 0;
    }
    return rc;
}

void stk_db_rollback(sqlite3 *db)
{
    if (!sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
}

stk_str stk_db_blob(sqlite3_stmt *stmt, int column)
{
    const void *p = sqlite3_column_blob(stmt, column);
    return stk_str_n(p, p ? (size_t)sqlite3_column_bytes(stmt, column) : 0);
}

void stk_db_bind_blob(sqlite3_stmt *stmt, int index, stk_str s)
{
    sqlite3_bind_blob64(stmt, index, s.n ? s.p : "", s.n, SQLITE_STATIC);
}

void stk_db_bind_text(sqlite3_stmt *stmt, int index, const char *s)
{
    sqlite3_bind_text(stmt, index, s, -1, SQLITE_STATIC);
}

static int pragma_int(sqlite3 *db, const char *sql, int *ret, stk_err *err)
{
    sqlite3_stmt *stmt = NULL;
    int rc = stk_db_prepare(db, sql, &stmt, err);
    if (rc == 0 && (rc = stk_db_step(stmt, err)) == 1) {
        *ret = sqlite3_column_int(stmt, 0);
        rc = 0;
    }
    sqlite3_finalize(stmt);
    return rc;
}

/* The file's name must be durable too, or a power cut could leave committed data without a directory entry.
 */
static int sync_folder(const char *path, stk_err *err)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? stk_xmemdup(path, (size_t)(slash - path) + 1) : stk_xstrdup(".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 || fsync(fd) < 0 ? stk_err_errno(err, errno, "sync %s", folder) : 0;
    stk_closep(&fd);
    free(folder);
    return rc;
}

static int create_schema(sqlite3 *db, const stk_db_spec *spec, stk_err *err)
{
    char sql[128];
    snprintf(sql, sizeof(sql), "PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT",
             spec->application_id, spec->version);
    int rc = stk_db_exec(db, "BEGIN IMMEDIATE", err);
    if (rc == 0 && spec->schema)
        rc = stk_db_exec(db, spec->schema, err);
    if (rc == 0)
        rc = stk_db_exec(db, sql, err);
    stk_db_rollback(db);
    return rc < 0 ? rc : sync_folder(spec->path, err);
}

static int check_identity(sqlite3 *db, const stk_db_spec *spec, stk_err *err)
{
    int version = 0, id = 0;
    int rc = pragma_int(db, "PRAGMA user_version", &version, err);
    if (rc == 0)
        rc = pragma_int(db, "PRAGMA application_id", &id, err);
    if (rc < 0)
        return rc;
    if (version == 0 && id == 0 && !spec->read_only)
        return create_schema(db, spec, err);
    if (id != spec->application_id)
        return stk_err_set(err, STK_E_CORRUPT, "%s is a database of another kind", spec->path);
    if (version > spec->version)
        return stk_err_set(err, STK_E_NEWER, "%s was written by a newer version (%d, known: %d)", spec->path,
                           version, spec->version);
    return 0;
}

static int configure(sqlite3 *db, const stk_db_spec *spec, stk_err *err)
{
    char sql[256];
    snprintf(sql, sizeof(sql),
             "PRAGMA page_size=%d; PRAGMA journal_mode=WAL; PRAGMA synchronous=%s; PRAGMA temp_store=MEMORY;"
             "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA cache_size=-16384",
             spec->page_size ? spec->page_size : 8192, spec->fast ? "NORMAL" : "FULL");
    sqlite3_busy_timeout(db, 5000);
    sqlite3_wal_autocheckpoint(db, 0);
    if (!spec->read_only) {
        int rc = stk_db_exec(db, sql, err);
        if (rc < 0)
            return rc;
    }
    return check_identity(db, spec, err);
}

/* SQLite gives its other files the mode of this one. Only a file that is not there is touched: closing any
 * descriptor of a database drops the process's locks on it. */
static void create_private(const char *path)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    stk_closep(&fd);
}

int stk_db_open(const stk_db_spec *spec, sqlite3 **ret, stk_err *err)
{
    if (!spec->read_only)
        create_private(spec->path);
    int flags = spec->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(spec->path, &db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, spec->vfs);
    int fail = rc == SQLITE_OK ? configure(db, spec, err) : stk_db_fail(db, rc, err, "open");
    if (fail < 0) {
        if (err && !strstr(err->detail, spec->path))
            stk_err_wrap(err, "%s", spec->path);
        stk_db_close(db);
        return fail;
    }
    *ret = db;
    return 0;
}

void stk_db_close(sqlite3 *db)
{
    sqlite3_stmt *stmt;
    while (db && (stmt = sqlite3_next_stmt(db, NULL)))
        sqlite3_finalize(stmt);
    sqlite3_close(db);
}
