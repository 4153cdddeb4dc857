/* The store of a fleet: PostgreSQL by libpq. One writer thread and one reader thread, each with a connection
 * of its own; both connect again by themselves, after a pause that grows to five seconds.
 *
 * While the server is away every call is UNAVAILABLE and stk_store_ready is false. An append that was cut off
 * at its commit is UNAVAILABLE too: the same batch again is either stored now, or STALE because it was stored
 * then. Tables live in the first schema of the connection's search_path. */
#ifndef STK_STORE_STORE_POSTGRES_H
#define STK_STORE_STORE_POSTGRES_H

#include "proto/store/store.h"

typedef struct stk_store_pg stk_store_pg;

typedef struct stk_store_postgres_spec {
    const char *conninfo;    /* as libpq reads it, key=value or URI: hosts, TLS, password, options. Copied */
    stk_span timeout;        /* of a statement; 0 = 30 s */
    bool read_only;          /* creates nothing; appends are refused. For readers with fewer rights */
    const stk_keyring *ring; /* opens the checkpoints that retention left; NULL: such a chain is not whole.
                                Borrowed until close */
} stk_store_postgres_spec;

/* Does not wait for the server: it may come later. -STK_E_CONFIG when conninfo is not one. */
int stk_store_postgres_open(const stk_store_postgres_spec *spec, stk_store_pg **ret,
                            stk_err *err) STK_MUST_USE;
/* After its stores are closed. Gives up what still waits for the server. */
void stk_store_postgres_close(stk_store_pg *pg);
int stk_store_postgres_new(stk_store_pg *pg, stk_loop *loop, stk_store **ret, stk_err *err) STK_MUST_USE;

typedef struct stk_retained {
    int32_t months; /* dropped */
    int64_t rows;   /* with them */
} stk_retained;
/* Drops the months of audit rows that end before `before` (by the time in their ids), oldest first. What each
 * chain loses is sealed into checkpoints, so that verify still goes from its first row to its head. Blocks;
 * connects by itself; spec->ring is needed. Appends wait meanwhile. What was dropped stays dropped when a
 * later month fails. */
int stk_store_postgres_retain(const stk_store_postgres_spec *spec, stk_wall before, stk_retained *ret,
                              stk_err *err) STK_MUST_USE;

#endif
