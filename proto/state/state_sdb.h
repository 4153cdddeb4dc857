/* Inside the SQLite adapter: the one connection of the writer thread, and what operations are made of.
 * Everything here runs on that thread, inside one transaction that a group of operations shares.
 *
 * An operation is int stk__do_<name>(stk_sdb *db, stk_op *op): gathers facts, decides (decide.h), then
 * writes. It returns 0 or a negative code with op->err; a failure after a write ends the whole group (nothing
 * of it is kept). */
#ifndef STK_STATE_STATE_SDB_H
#define STK_STATE_STATE_SDB_H

#include "proto/base/sqlite.h"
#include "proto/state/decide.h"
#include "proto/state/state.h"

#define STK_DAY     stk_sec(86400)
#define STK_MINUTES stk_sec(600) /* how long output and results stay */

typedef char stk_note_name[64];

typedef struct stk_sdb {
    sqlite3 *db;
    struct {
        const char *sql;
        sqlite3_stmt *stmt;
    } cache[256]; /* by the address of the SQL literal */
    stk_err *err; /* of the operation that runs */
    int64_t now;  /* read once per operation, CLOCK_BOOTTIME */
    char epoch[STK_ID_SIZE];
    bool open;      /* may assign; else state was lost and the lost time is not settled */
    int64_t reaped; /* when reap last ran; -1 = not in this boot */
    stk_note_name *notes;
    size_t nnotes, notes_size;
} stk_sdb;

/* --- SQL (state_sqlite_sql.c)
 * ---------------------------------------------------------------------------------- */

typedef struct stk_val {
    char type; /* 't' text, 'i' integer, 'b' blob, '0' NULL */
    int64_t i;
    stk_str s;
} stk_val;
static inline stk_val V_INT(int64_t i)
{
    return (stk_val){'i', i, {0}};
}
static inline stk_val V_TEXT(const char *s)
{
    return (stk_val){'t', 0, stk_str_of(s)};
}
static inline stk_val V_BLOB(stk_str s)
{
    return (stk_val){'b', 0, s};
}
static inline stk_val V_BYTES(const stk_bytes *b)
{
    return (stk_val){b->set ? 'b' : '0', 0, {b->p, b->n}};
}
static inline stk_val V_NULL(void)
{
    return (stk_val){'0', 0, {0}};
}

#define STK__VALS(...) (const stk_val[]){__VA_ARGS__}, STK_COUNT(((const stk_val[]){__VA_ARGS__}))
/* `sql` is a literal (its statement is kept). Bound bytes are borrowed until the statement is done. */
#define STK_SQL(db, sql, ...)    stk__sql(db, "" sql, STK__VALS(__VA_ARGS__)) /* NULL = failed */
#define STK_SQL_DO(db, sql, ...) stk__sql_do(db, "" sql, STK__VALS(__VA_ARGS__))
sqlite3_stmt *stk__sql(stk_sdb *db, const char *sql, const stk_val *vals, size_t n);
int stk__sql_do(stk_sdb *db, const char *sql, const stk_val *vals, size_t n) STK_MUST_USE;
/* 1 = a row, 0 = done, negative = failed (also for stmt NULL). */
int stk__sql_next(stk_sdb *db, sqlite3_stmt *stmt);
/* For STK_AUTO on statements. */
void stk__sql_reset(sqlite3_stmt **stmt);
void stk__col_text(sqlite3_stmt *stmt, int column, char *out, size_t size);
void stk__col_bytes(sqlite3_stmt *stmt, int column, stk_bytes *out); /* NULL = unset */
#define STK_COL_TEXT(stmt, column, array) stk__col_text(stmt, column, array, sizeof(array))

/* Growing a result array by one zeroed element. */
#define STK_GROW(v, n)                                                                                       \
    __extension__({                                                                                          \
        if (((n) & ((n)-1)) == 0)                                                                            \
            (v) = stk_xrealloc((v), ((n) ? (n)*2 : 1) * sizeof(*(v)));                                       \
        memset(&(v)[n], 0, sizeof(*(v)));                                                                    \
        &(v)[(n)++];                                                                                         \
    })

/* --- schema, epoch (state_sqlite_schema.c)
 * ------------------------------------------------------------------------- */

extern const char stk__state_schema[];
/* Reads the head (epoch, boot, open, reaped); another boot starts a new epoch. In a transaction. */
int stk__meta_start(stk_sdb *db, const char *boot) STK_MUST_USE;
/* Reads it again, after a rollback. */
int stk__meta_load(stk_sdb *db) STK_MUST_USE;
int stk__meta_set(stk_sdb *db, const char *name, const char *value) STK_MUST_USE;
int stk__meta_set_int(stk_sdb *db, const char *name, int64_t value) STK_MUST_USE;

/* --- notes (state_sqlite_sql.c)
 * ------------------------------------------------------------------------------------- */

void stk__note(stk_sdb *db, const char *what);
void stk__note_of(stk_sdb *db, const char *kind, const char *id); /* "kind/id" */

/* --- a run (state_sqlite_run.c)
 * ------------------------------------------------------------------------------------- */

typedef struct stk_srun {
    int64_t seq;
    char id[STK_ID_SIZE], tenant[STK_TENANT_MAX], agent[STK_AGENT_MAX], kind[8], retry[8];
    stk_run_state state; /* NONE = not there */
    char reason[16];
    char assignment[STK_ID_SIZE], worker[STK_WORKER_MAX], incarnation[STK_ID_SIZE], sandbox[STK_ID_SIZE];
    int32_t lane; /* -1 = none */
    bool slot;    /* holds one of the worker's */
    bool cancel;
    int64_t attempt;  /* of the assignment it has or last had */
    int64_t attempts; /* that counted */
    int64_t losses;   /* unstarted, uncounted */
    int64_t priority;
    int64_t submitted, deadline, started, finished; /* wall */
    int32_t part;
    int64_t off;
} stk_srun;

#define STK_SRUN_FRESH(fresh, in)                                                                            \
    stk__run_fresh(fresh, (in)->run, (in)->tenant, (in)->agent, (in)->kind, (in)->retry, (in)->priority,     \
                   (in)->submitted, (in)->deadline)
void stk__run_fresh(stk_srun *run, const char *id, const char *tenant, const char *agent, const char *kind,
                    const char *retry, int64_t priority, stk_wall submitted, stk_wall deadline);
int stk__run_load(stk_sdb *db, const char *id, stk_srun *ret) STK_MUST_USE;
/* A new run, as `submitted`. The hashes may be NULL. */
int stk__run_insert(stk_sdb *db, stk_srun *run, const stk_map *labels, const uint8_t *key_hash,
                    const uint8_t *body_hash) STK_MUST_USE;
/* The only way from state to state: stk_run_next, the tenant's counters, the note. stk__run_save writes the
 * row. */
int stk__run_move(stk_sdb *db, stk_srun *run, stk_run_event event) STK_MUST_USE;
int stk__run_save(stk_sdb *db, stk_srun *run) STK_MUST_USE;
int stk__run_remove(stk_sdb *db, const stk_srun *run) STK_MUST_USE;
/* Gives the worker's slot back. */
int stk__run_free_slot(stk_sdb *db, stk_srun *run) STK_MUST_USE;
int stk__run_labels(stk_sdb *db, int64_t seq, stk_map *ret) STK_MUST_USE;
int stk__labels_decode(stk_str json, stk_map *ret, stk_err *err) STK_MUST_USE;
int stk__record_get(stk_sdb *db, int64_t seq, stk_bytes *ret) STK_MUST_USE;
int stk__record_drop(stk_sdb *db, int64_t seq) STK_MUST_USE;
/* Unfinished and assigned + running of a tenant. */
int stk__tenant_counts(stk_sdb *db, const char *tenant, int64_t *ret_unfinished,
                       int64_t *ret_running) STK_MUST_USE;

/* --- ends and returns (state_sqlite_end.c)
 * ----------------------------------------------------------------------------- */

int stk__outbox_add(stk_sdb *db, const char *topic, const char *key, stk_str value, int64_t after,
                    int64_t *ret_id) STK_MUST_USE;
/* -> finished, with everything that goes with it; *ret_outbox = 0 when `event` is unset. */
int stk__run_end(stk_sdb *db, stk_srun *run, const char *reason, stk_wall now, const stk_bytes *event,
                 const stk_bytes *result, int64_t *ret_outbox) STK_MUST_USE;
/* The same with an event built from what state knows. */
int stk__run_end_built(stk_sdb *db, stk_srun *run, const char *reason, const char *detail, stk_wall now,
                       int64_t *ret_outbox) STK_MUST_USE;
/* -> queued, with the request in the outbox. */
int stk__run_return(stk_sdb *db, stk_srun *run, bool count, stk_str request,
                    int64_t *ret_outbox) STK_MUST_USE;

/* --- workers (state_sqlite_worker.c, state_sqlite_lost.c)
 * ---------------------------------------------------------------- */

typedef struct stk_sworker {
    bool there, draining;
    char id[STK_WORKER_MAX], incarnation[STK_ID_SIZE];
    int64_t slots, used, until;
    int32_t lane;
} stk_sworker;
int stk__worker_load(stk_sdb *db, const char *worker, stk_sworker *ret) STK_MUST_USE;
static inline bool stk__worker_is(const stk_sdb *db, const stk_sworker *w, const char *incarnation)
{
    return w->there && strcmp(w->incarnation, incarnation) == 0 && w->until > db->now;
}
/* The worker's row, pool and lane are gone; its runs are not touched. */
int stk__worker_remove(stk_sdb *db, const char *worker) STK_MUST_USE;
/* Settles the runs a worker holds: those of `incarnation`, or, with `except`, those of all other
 * incarnations. */
typedef struct stk_losing {
    const char *worker, *incarnation;
    bool except, came_back;
    const char *detail; /* for people */
    stk_wall now;
    stk_lost_run **v;
    size_t *n;
} stk_losing;
int stk__lose(stk_sdb *db, const stk_losing *how) STK_MUST_USE;

#define X(sym, name) int stk__do_##name(stk_sdb *db, stk_op *op);
STK_STATE_OPS(X)
#undef X

#endif
