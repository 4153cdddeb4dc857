/* SQLite as the embedded adapters use it: WAL, prepared statements, one mapping of result codes to our
 * errors, and a checkpointer on a thread and connection of its own, so that no commit pays for a checkpoint.
 *
 * A failed fsync leaves pages of unknown state in the kernel (they are marked clean): whoever meets one ends
 * the process with one line on stderr and status STK_DB_DIED; the next start recovers from the WAL. Every
 * function here that sees such a result code does that. Connections are not shared between threads. */
#ifndef STK_BASE_SQLITE_H
#define STK_BASE_SQLITE_H

#include "proto/base/buf.h"
#include <sqlite3.h>

#define STK_DB_DIED 70 /* exit status: EX_SOFTWARE */

typedef struct stk_db_spec {
    const char *path;
    const char *vfs;    /* NULL = default */
    bool read_only;     /* for a file that another process uses; nothing is created */
    bool fast;          /* synchronous=NORMAL instead of FULL */
    int page_size;      /* of a new file; 0 = 8192 */
    int application_id; /* of our files; another one is -STK_E_CORRUPT ("not a … file") */
    int version;        /* user_version we write; a newer one is -STK_E_NEWER */
    const char *schema; /* run in one transaction when user_version is 0 */
} stk_db_spec;

/* Opens (and creates, unless read_only) a connection in WAL mode with automatic checkpoints off.
 * -STK_E_CORRUPT names a damaged file, -STK_E_NEWER one of a later version, -STK_E_SYSTEM or -STK_E_NO_SPACE
 * what the system refused. */
int stk_db_open(const stk_db_spec *spec, sqlite3 **ret, stk_err *err) STK_MUST_USE;
/* Finalizes all statements, then closes. NULL is fine. */
void stk_db_close(sqlite3 *db);
/* SQLite result -> our error: "what: message". NO_SPACE, CORRUPT, UNAVAILABLE (busy, read-only, I/O),
 * TOO_LARGE, NOMEM, INTERNAL. */
int stk_db_fail(sqlite3 *db, int rc, stk_err *err, const char *what);
int stk_db_exec(sqlite3 *db, const char *sql, stk_err *err) STK_MUST_USE;
int stk_db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **ret, stk_err *err) STK_MUST_USE;
/* 1 = a row, 0 = done (the statement is reset), negative = error (reset as well). */
int stk_db_step(sqlite3_stmt *stmt, stk_err *err) STK_MUST_USE;
/* Steps a statement that yields no rows. */
int stk_db_run(sqlite3_stmt *stmt, stk_err *err) STK_MUST_USE;
/* Ends the open transaction without keeping it; fine when SQLite has done so itself. */
void stk_db_rollback(sqlite3 *db);
/* A column as a slice, valid until the next step. */
stk_str stk_db_blob(sqlite3_stmt *stmt, int column);
/* Binds without copying: the bytes must stay until the statement is reset. An empty slice is an empty blob,
 * not NULL. */
void stk_db_bind_blob(sqlite3_stmt *stmt, int index, stk_str s);
void stk_db_bind_text(sqlite3_stmt *stmt, int index, const char *s);

/* Checkpoints `path` (PASSIVE) when the WAL passes 4 MiB, or when it was left alone for a second. `writer` is
 * the writer's connection: its WAL hook feeds the checkpointer. */
typedef struct stk_db_checkpointer stk_db_checkpointer;
int stk_db_checkpointer_start(const stk_db_spec *spec, sqlite3 *writer, stk_db_checkpointer **ret,
                              stk_err *err) STK_MUST_USE;
/* From the writer's thread, between transactions: under constant writes a passive checkpoint never catches
 * up, so past 16 MiB the writer backfills the short rest itself and the WAL starts over. */
void stk_db_checkpointer_assist(stk_db_checkpointer *ck);
/* Waits for its thread. Call before closing the writer. */
void stk_db_checkpointer_stop(stk_db_checkpointer *ck);

#endif
