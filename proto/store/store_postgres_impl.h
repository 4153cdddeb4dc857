/* Inside of the PostgreSQL adapter; included by store_postgres*.c only. */
#ifndef STK_STORE_POSTGRES_IMPL_H
#define STK_STORE_POSTGRES_IMPL_H

#include "proto/store/ask.h"
#include "proto/store/batch.h"
#include "proto/store/store_postgres.h"
#include <libpq-fe.h>

/* --- one connection (store_postgres_link.c). Nothing in it waits longer than its timeout. */

#define STK__PG_MONTHS 16

typedef struct stk_pg_link {
    char *conninfo;
    stk_span timeout;
    bool writer, read_only;
    int stop_fd; /* readable: give up at once; -1 = none */
    PGconn *conn;
    stk_mono until; /* of the present statement */
    stk_mono retry_at;
    unsigned failures; /* since the last connection that worked */
    stk_err why;       /* it is not connected */
    int32_t months[STK__PG_MONTHS];
    unsigned nmonths; /* partitions known to exist; the oldest entry is overwritten */
} stk_pg_link;

int stk__pg_link_init(stk_pg_link *link, const stk_store_postgres_spec *spec, bool writer, stk_err *err);
void stk__pg_link_done(stk_pg_link *link);
/* Connected and still so, or tried just now (not before retry_at): 0 or negative. */
int stk__pg_link_up(stk_pg_link *link, stk_err *err) STK_MUST_USE;
void stk__pg_link_drop(stk_pg_link *link, const stk_err *why);

/* UNAVAILABLE with libpq's words. */
int stk__pg_closed(stk_pg_link *link, stk_err *err, const char *what);
/* Until the socket is ready for one of `events` (poll's), not beyond link->until. */
int stk__pg_wait(stk_pg_link *link, short events, stk_err *err) STK_MUST_USE;

typedef struct stk_pg_args {
    int n;
    Oid types[10];
    const char *values[10];
    int lengths[10], formats[10];
    uint64_t numbers[10];
} stk_pg_args;
void stk__pg_text(stk_pg_args *args, const char *text);
void stk__pg_int4(stk_pg_args *args, int32_t n);
void stk__pg_int8(stk_pg_args *args, int64_t n);
void stk__pg_bool(stk_pg_args *args, bool on);
void stk__pg_bytes(stk_pg_args *args, stk_str s);
void stk__pg_texts(stk_pg_args *args, stk_str binary_array);

/* Result columns (binary). */
int64_t stk__pg_get_int(const PGresult *res, int row, int column);
stk_str stk__pg_get(const PGresult *res, int row, int column);
STK_DEFINE_FREEP(PGresult, stk__pg_clearp, PQclear)

/* One statement with a result in binary; *ret_res (may be NULL) is the caller's. */
int stk__pg_ask(stk_pg_link *link, const char *sql, const stk_pg_args *args, PGresult **ret_res,
                stk_err *err);
/* Statements without arguments or results, separated by ';'. */
int stk__pg_run(stk_pg_link *link, const char *sql, stk_err *err);
/* Row by row, in bounded memory: begin, then next until 0 (end) or negative; *ret_res is the caller's.
 * Ending early: rest reads on without keeping. */
int stk__pg_rows_begin(stk_pg_link *link, const char *sql, const stk_pg_args *args, stk_err *err);
int stk__pg_rows_next(stk_pg_link *link, PGresult **ret_res, stk_err *err);
void stk__pg_rows_rest(stk_pg_link *link);
/* Pipelines: begin, any number of adds, send, one take per add, end. */
int stk__pg_pipe_begin(stk_pg_link *link, stk_err *err);
int stk__pg_pipe_add(stk_pg_link *link, const char *sql, const stk_pg_args *args, stk_err *err);
int stk__pg_pipe_send(stk_pg_link *link, stk_err *err);
int stk__pg_pipe_take(stk_pg_link *link, PGresult **ret_res, stk_err *err);
/* Reads what is left and leaves pipeline mode; keeps the first error of `rc`, `err`. */
int stk__pg_pipe_end(stk_pg_link *link, int rc, stk_err *err);
int stk__pg_copy_begin(stk_pg_link *link, const char *sql, stk_err *err);
int stk__pg_copy_add(stk_pg_link *link, stk_str bytes, stk_err *err);
int stk__pg_copy_end(stk_pg_link *link, stk_err *err);
void stk__pg_rollback(stk_pg_link *link);

/* Its failures: FIELD = the data can never be stored, STALE = somebody else was faster, try the transaction
 * again; all others: the connection is of no use any more (the caller drops it). */
static inline bool stk__pg_link_broken(int rc)
{
    return rc < 0 && rc != -STK_E_FIELD && rc != -STK_E_STALE;
}

/* --- schema and months (store_postgres_schema.c) */

#define STK__PG_LOCK "pg_advisory_xact_lock(1937010547, hashtext(current_schema()))" /* 'stks' */
int stk__pg_migrate(stk_pg_link *link, stk_err *err);
/* Months since 1970, or -1 below and INT32_MAX above those that get a partition of their own. */
int32_t stk__pg_month_of(const char *id);
stk_wall stk__pg_month_begin(int32_t month);
void stk__pg_month_name(int32_t month, char out[32]);
/* Makes the month's partition exist. Not inside a transaction. */
int stk__pg_month_ensure(stk_pg_link *link, int32_t month, stk_err *err);
void stk__pg_bound(stk_wall time, char out[STK_ID_SIZE]);

/* --- ids of a group of batches (store_postgres_ids.c): which rows are new */

typedef struct stk_pg_ids {
    const char **ids;
    bool *repeated; /* is there already, or earlier in the group */
    uint32_t *slots;
    size_t n, room, mask;
    int32_t *months; /* of new ones */
    size_t nmonths;
} stk_pg_ids;
void stk__pg_ids_init(stk_pg_ids *set, size_t room);
void stk__pg_ids_done(stk_pg_ids *set);
void stk__pg_ids_add(stk_pg_ids *set, const char *id);
/* Makes partitions of all their months. Not inside a transaction. */
int stk__pg_ids_ensure(stk_pg_link *link, const stk_pg_ids *set, stk_err *err);
/* Marks those that are stored. */
int stk__pg_ids_look(stk_pg_link *link, stk_pg_ids *set, stk_err *err);

/* --- the adapter */

struct stk_store_pg {
    stk_store_desk desk;
    stk_pg_link writer, reader;
    const stk_keyring *ring;
    bool read_only;
    pthread_t write_thread, read_thread;
    bool writing, reading;
    int stop_fd;
    /* under the desk's lock */
    bool writer_up, reader_up;
};
static inline stk_store_pg *stk__pg_of(stk_store_desk *desk)
{
    return STK_CONTAINER(desk, stk_store_pg, desk);
}

/* Stores a group, sets each job's err. */
void stk__pg_write(stk_pg_link *link, stk_store_list *group);
bool stk__pg_query(stk_store_desk *desk, stk_store_job *job);
bool stk__pg_result(stk_store_desk *desk, stk_store_job *job);
bool stk__pg_offset(stk_store_desk *desk, stk_store_job *job);
bool stk__pg_verify(stk_store_desk *desk, stk_store_job *job);

/* --- checkpoints (store_postgres_retain.c): rows from..to of a chain were dropped */

typedef struct stk_pg_checkpoint {
    int32_t partition, month;
    int64_t from, to;
    uint8_t before[STK_SHA256], after[STK_SHA256];
} stk_pg_checkpoint;
/* 1 = found and its seal opens (sets from its columns), 0 = none. A seal that does not open: *ret_why. */
int stk__pg_checkpoint_find(stk_pg_link *link, const stk_keyring *ring, int32_t partition, int64_t from,
                            stk_pg_checkpoint *ret, const char **ret_why, stk_err *err);

#endif
