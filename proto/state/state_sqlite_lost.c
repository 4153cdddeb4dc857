#include "proto/message/assignment.h"
#include "proto/state/state_sdb.h"
#include <stdio.h>

/* The request as it stood on stk.requests, out of the stored lane record; unset when there is none (an
 * adopted run). */
static int request_of(stk_sdb *db, const stk_srun *run, stk_bytes *ret)
{
    stk_bytes record STK_AUTO(stk_bytes_done) = {0};
    stk_assignment asg STK_AUTO(stk_assignment_done) = {0};
    if (stk__record_get(db, run->seq, &record) < 0)
        return -(int)db->err->code;
    if (record.set && stk_assignment_decode(stk_bytes_view(&record), &asg, NULL) == 0 && asg.request.n)
        stk_bytes_set(ret, stk_bytes_view(&asg.request));
    return 0;
}

static void describe(const stk_srun *run, stk_lost_run *lost)
{
    snprintf(lost->run, sizeof(lost->run), "%s", run->id);
    snprintf(lost->tenant, sizeof(lost->tenant), "%s", run->tenant);
    snprintf(lost->agent, sizeof(lost->agent), "%s", run->agent);
    snprintf(lost->assignment, sizeof(lost->assignment), "%s", run->assignment);
    snprintf(lost->worker, sizeof(lost->worker), "%s", run->worker);
    snprintf(lost->sandbox, sizeof(lost->sandbox), "%s", run->sandbox);
    lost->started = run->state == STK_RUN_RUNNING;
}

static int lose_one(stk_sdb *db, const stk_losing *how, const char *id)
{
    stk_srun run;
    stk_bytes request STK_AUTO(stk_bytes_done) = {0};
    if (stk__run_load(db, id, &run) < 0 || request_of(db, &run, &request) < 0)
        return -(int)db->err->code;
    stk_lost_run *lost = STK_GROW(*how->v, *how->n);
    describe(&run, lost);
    bool counts = true;
    switch (stk_decide_lost(run.state, run.cancel, strcmp(run.retry, "always") == 0, request.set)) {
    case STK_LOST_CANCEL:
        return stk__run_end_built(db, &run, stk_reason_text(STK_REASON_CANCELLED), how->detail, how->now,
                                  &lost->outbox);
    case STK_LOST_FINISH:
        return stk__run_end_built(db, &run, stk_reason_text(STK_REASON_WORKER_LOST), how->detail, how->now,
                                  &lost->outbox);
    case STK_LOST_REQUEUE:
        counts = stk_decide_loss_counts(how->came_back, run.losses);
        run.losses++;
        break;
    case STK_LOST_REPEAT:
        break;
    }
    lost->requeued = true;
    return stk__run_return(db, &run, counts, stk_bytes_view(&request), &lost->outbox);
}

int stk__lose(stk_sdb *db, const stk_losing *how)
{
    typedef char run_id[STK_ID_SIZE];
    run_id *ids STK_AUTO(stk_freep) = NULL;
    size_t n = 0;
    sqlite3_stmt *stmt =
        STK_SQL(db,
                "SELECT id FROM runs WHERE worker = ?1 AND state IN (3, 4) AND (incarnation = ?2) <> ?3"
                " ORDER BY seq",
                V_TEXT(how->worker), V_TEXT(how->incarnation), V_INT(how->except));
    int rc;
    while ((rc = stk__sql_next(db, stmt)) > 0)
        stk__col_text(stmt, 0, *STK_GROW(ids, n), STK_ID_SIZE);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = lose_one(db, how, ids[i]);
    return rc;
}
