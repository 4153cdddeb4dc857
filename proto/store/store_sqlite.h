/* The embedded store: one SQLite file, one writer thread and one reader thread, WAL, synchronous=FULL. */
#ifndef STK_STORE_STORE_SQLITE_H
#define STK_STORE_STORE_SQLITE_H

#include "proto/store/store.h"

typedef struct stk_store_file stk_store_file;
int stk_store_file_open(const char *path, const char *vfs, stk_store_file **ret, stk_err *err) STK_MUST_USE;
void stk_store_file_close(stk_store_file *file);
int stk_store_sqlite_new(stk_store_file *file, stk_loop *loop, stk_store **ret, stk_err *err) STK_MUST_USE;
/* `stockade audit verify` on a file that may be in use by a running process (read-only). */
int stk_store_sqlite_verify_file(const char *path, stk_chain_report *ret, stk_err *err) STK_MUST_USE;

#endif
