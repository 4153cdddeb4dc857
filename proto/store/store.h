/* The store port: append-only audit rows and finished results with the consumer's offset in the same
 * transaction. Written by audit-consumer, read by the gateway. Adapters: SQLite (store_sqlite.h), PostgreSQL.
 * ONE suite: tests/conformance/store. */
#ifndef STK_STORE_STORE_H
#define STK_STORE_STORE_H

#include "proto/base/crypto.h"
#include "proto/base/loop.h"
#include "proto/message/audit.h"
#include "proto/message/event.h"

typedef struct stk_store stk_store;

/* A batch from one partition of one topic. The store advances the offset by compare-and-set from `from` to
 * `to` in the same transaction: a zombie consumer can't fork the chain. Duplicates (by id) are dropped before
 * hashing. */
typedef struct stk_store_batch {
    const char *topic;
    int32_t partition;
    int64_t from, to;          /* offsets [from, to) */
    const stk_audit_row *rows; /* stk.audit  */
    size_t nrows;
    const stk_event *events; /* stk.events: `finished` is stored as the run's result; a `result` whose run has
                                another winner as late */
    size_t nevents;
} stk_store_batch;
/* err: STALE with the offset that is there = another consumer was here; UNAVAILABLE = try again; FIELD = row
 * `bad` can't be stored (nothing was). */
typedef void (*stk_store_done)(const stk_err *err, int64_t offset, size_t stored, size_t bad, void *arg);

typedef struct stk_audit_query {
    char tenant[STK_TENANT_MAX], agent[STK_AGENT_MAX], run[STK_ID_SIZE],
        action[40];        /* "" = any; action may end in ".*" */
    stk_wall since, until; /* ns 0 = open */
    char cursor[64];       /* "" = start; opaque */
    int64_t limit;         /* 1..1000 */
    bool oldest_first;     /* else newest first */
} stk_audit_query;
typedef void (*stk_audit_rows)(const stk_err *err, const stk_audit_row *rows, size_t n,
                               const char *cursor /* "" = end */, void *arg);
typedef void (*stk_result_got)(const stk_err *err, const stk_event *ev /* NULL: not there */, void *arg);

/* One chain per partition: hash_n = SHA-256(hash_{n-1} || canonical row). */
typedef struct stk_chain_report {
    int64_t rows;
    int32_t chains;
    bool ok;
    int32_t bad_partition;
    int64_t bad_seq; /* first broken row of that chain */
    char bad_id[STK_ID_SIZE];
    char why[128];
    uint8_t head[STK_SHA256]; /* hash over all chain heads, for export */
} stk_chain_report;
typedef void (*stk_verify_done)(const stk_err *err, const stk_chain_report *report, void *arg);

typedef struct stk_store_ops {
    void (*append)(stk_store *store, const stk_store_batch *batch, stk_store_done done, void *arg);
    void (*offset)(stk_store *store, const char *topic, int32_t partition, stk_store_done done, void *arg);
    void (*query)(stk_store *store, const stk_audit_query *query, stk_audit_rows done, void *arg);
    void (*result)(stk_store *store, const char *tenant, const char *run, stk_result_got done, void *arg);
    void (*verify)(stk_store *store, stk_verify_done done, void *arg);
    bool (*ready)(const stk_store *store);
    void (*close)(stk_store *store);
} stk_store_ops;
struct stk_store {
    const stk_store_ops *ops;
};

/* The batch is copied (or encoded) before the call returns. */
void stk_store_append(stk_store *store, const stk_store_batch *batch, stk_store_done done, void *arg);
/* Next offset to consume (0 = nothing stored yet). */
void stk_store_offset(stk_store *store, const char *topic, int32_t partition, stk_store_done done, void *arg);
void stk_store_query(stk_store *store, const stk_audit_query *query, stk_audit_rows done, void *arg);
void stk_store_result(stk_store *store, const char *tenant, const char *run, stk_result_got done, void *arg);
void stk_store_verify(stk_store *store, stk_verify_done done, void *arg);
bool stk_store_ready(const stk_store *store);
void stk_store_close(stk_store *store);
STK_DEFINE_FREEP(stk_store, stk_store_closep, stk_store_close)

#endif
