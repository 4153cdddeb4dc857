/* Questions to a store's reader: what is asked, checked on the caller's thread, and what is told. */
#ifndef STK_STORE_ASK_H
#define STK_STORE_ASK_H

#include "proto/store/check.h"
#include "proto/store/jobs.h"

#define STK__QUERY_MAX   1000
#define STK__QUERY_BYTES ((size_t)8 << 20) /* a page ends here or at its limit */

typedef struct stk_query_job {
    stk_store_job base;
    stk_audit_query query;
    int64_t cursor_ms;
    char cursor_id[STK_ID_SIZE];
    stk_audit_row *rows;
    size_t n;
    char cursor[64]; /* told: of the last row; empty it when there is no more */
} stk_query_job;
static inline stk_query_job *stk__query_of(stk_store_job *job)
{
    return STK_CONTAINER(job, stk_query_job, base);
}
/* Decodes one row into the page (CORRUPT names it) and moves the cursor. */
int stk__query_add(stk_query_job *job, stk_str row, int64_t ms, stk_str id);

/* Values of an SQL text in order of their places. */
typedef struct stk_binds {
    int n;
    struct {
        const char *text; /* NULL: the number */
        int64_t number;
    } v[16];
} stk_binds;
/* Appends the query's conditions (" AND …") with places written as mark and number, "?1" or "$1". May
 * shorten query.action. Call once. */
void stk__query_conditions(stk_query_job *job, stk_buf *sql, stk_binds *binds, char mark);

typedef struct stk_result_job {
    stk_store_job base;
    char tenant[STK_TENANT_MAX], run[STK_ID_SIZE];
    bool found;
    stk_event event;
} stk_result_job;
static inline stk_result_job *stk__result_of(stk_store_job *job)
{
    return STK_CONTAINER(job, stk_result_job, base);
}
int stk__result_found(stk_result_job *job, stk_str event);

typedef struct stk_offset_job {
    stk_store_job base;
    char *topic;
    int32_t partition;
    int64_t next;
} stk_offset_job;
static inline stk_offset_job *stk__offset_of(stk_store_job *job)
{
    return STK_CONTAINER(job, stk_offset_job, base);
}

typedef struct stk_verify_job {
    stk_store_job base;
    stk_check check;
} stk_verify_job;
static inline stk_verify_job *stk__verify_of(stk_store_job *job)
{
    return STK_CONTAINER(job, stk_verify_job, base);
}

void stk__store_offset(stk_store *store, const char *topic, int32_t partition, stk_store_done done,
                       void *arg);
void stk__store_query(stk_store *store, const stk_audit_query *query, stk_audit_rows done, void *arg);
void stk__store_result(stk_store *store, const char *tenant, const char *run, stk_result_got done, void *arg);
void stk__store_verify(stk_store *store, stk_verify_done done, void *arg);

#endif
