#include "proto/state/state_sdb.h"

#define OUTPUT_MAX 262144 /* clear bytes of a run */
#define SEALED_MAX 524288 /* of one piece */

int stk__do_output_add(stk_sdb *db, stk_op *op_)
{
    stk_op_output_add *op = (stk_op_output_add *)op_;
    stk_srun run;
    if (op->in.offset < 0 || op->in.length < 1 || !op->in.sealed.set || op->in.sealed.n > SEALED_MAX)
        return stk_err_set(db->err, STK_E_FIELD,
                           "a piece of output has a place, a length and at most 512 KiB");
    if (stk__run_load(db, op->in.run, &run) < 0)
        return -(int)db->err->code;
    op->kept = run.state == STK_RUN_RUNNING && strcmp(run.assignment, op->in.assignment) == 0 &&
               op->in.offset <= OUTPUT_MAX - op->in.length;
    if (!op->kept)
        return 0;
    stk__note_of(db, "output", op->in.run);
    return STK_SQL_DO(
        db, "INSERT OR IGNORE INTO output(run, off, length, made, sealed) VALUES(?1, ?2, ?3, ?4, ?5)",
        V_TEXT(op->in.run), V_INT(op->in.offset), V_INT(op->in.length), V_INT(db->now),
        V_BYTES(&op->in.sealed));
}

int stk__do_output_read(stk_sdb *db, stk_op *op_)
{
    stk_op_output_read *op = (stk_op_output_read *)op_;
    sqlite3_stmt *stmt STK_AUTO(stk__sql_reset) = STK_SQL(
        db, "SELECT off, length, sealed FROM output WHERE run = ?1 AND off + length > ?2 ORDER BY off",
        V_TEXT(op->in.run), V_INT(op->in.from));
    int rc;
    while ((rc = stk__sql_next(db, stmt)) > 0) {
        stk_output_piece *piece = STK_GROW(op->pieces, op->n);
        piece->offset = sqlite3_column_int64(stmt, 0);
        piece->length = sqlite3_column_int64(stmt, 1);
        stk__col_bytes(stmt, 2, &piece->sealed);
    }
    return rc;
}
