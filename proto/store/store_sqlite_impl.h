/* Inside of the embedded store; included by store_sqlite*.c only. */
#ifndef STK_STORE_SQLITE_IMPL_H
#define STK_STORE_SQLITE_IMPL_H

#include "proto/base/sqlite.h"
#include "proto/store/ask.h"
#include "proto/store/batch.h"
#include "proto/store/chain.h"
#include "proto/store/store_sqlite.h"

typedef struct stk_store_writer {
    sqlite3 *db;
    sqlite3_stmt *begin, *commit, *offset, *advance, *head, *row, *result, *winner, *late, *settle_won,
        *settle_lost, *probe;
    pthread_t thread;
    bool started;
    stk_buf scratch;
} stk_store_writer;

struct stk_store_file {
    stk_store_desk desk;
    char *path, *vfs;
    stk_db_spec db_spec;
    stk_store_writer writer;
    sqlite3 *read_db;
    pthread_t read_thread;
    bool reading;
    stk_db_checkpointer *checkpointer;
    bool full; /* under the desk's lock */
};

static inline stk_store_file *stk__file_of(stk_store_desk *desk)
{
    return STK_CONTAINER(desk, stk_store_file, desk);
}
stk_db_spec stk__store_db_spec(const char *path, const char *vfs, bool read_only);
int stk__store_writer_prepare(stk_store_file *file, stk_err *err);
void *stk__store_writer_main(void *file);

bool stk__sqlite_query(stk_store_desk *desk, stk_store_job *job);
bool stk__sqlite_result(stk_store_desk *desk, stk_store_job *job);
bool stk__sqlite_offset(stk_store_desk *desk, stk_store_job *job);
bool stk__sqlite_verify(stk_store_desk *desk, stk_store_job *job);

#endif
