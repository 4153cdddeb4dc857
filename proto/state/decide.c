#include "proto/state/decide.h"

int stk_decide_submit(const stk_submit_facts *facts)
{
    if (facts->key_known && !facts->body_same)
        return STK_SUBMIT_MISMATCH;
    if (facts->key_known || facts->run_known)
        return STK_SUBMIT_SAME;
    return facts->cap > 0 && facts->unfinished >= facts->cap ? STK_SUBMIT_OVER_CAP : STK_SUBMIT_NEW;
}

int stk_decide_queue(stk_run_state state)
{
    if (state == STK_RUN_ASSIGNED)
        return STK_QUEUE_ASSIGNED;
    return state == STK_RUN_RUNNING || state == STK_RUN_FINISHED ? STK_QUEUE_PASSED : STK_QUEUE_OK;
}

int stk_decide_assign(const stk_assign_facts *facts)
{
    if (!facts->open)
        return STK_ASSIGN_CLOSED;
    if (facts->state == STK_RUN_RUNNING || facts->state == STK_RUN_FINISHED)
        return STK_ASSIGN_PASSED;
    if (facts->state == STK_RUN_ASSIGNED)
        return STK_ASSIGN_ALREADY;
    if (facts->cancel_asked)
        return STK_ASSIGN_CANCELLED;
    if (facts->first && facts->attempts > 0)
        return STK_ASSIGN_COUNTED;
    if (!facts->worker_live || (!facts->plan && facts->used >= facts->slots))
        return STK_ASSIGN_NO_WORKER;
    if (!facts->plan && facts->cap > 0 && facts->running >= facts->cap)
        return STK_ASSIGN_CAP;
    return facts->wants_sandbox && !facts->sandbox_there ? STK_ASSIGN_NO_SANDBOX : STK_ASSIGN_OK;
}

int stk_decide_start(const stk_start_facts *facts)
{
    if (facts->state != STK_RUN_ASSIGNED || !facts->ours || !facts->live)
        return STK_START_STALE;
    return facts->cancel_asked ? STK_START_CANCELLED : STK_START_OK;
}

int stk_decide_finish(stk_run_state state, bool same_assignment)
{
    bool open = state != STK_RUN_NONE && state != STK_RUN_FINISHED;
    return open && same_assignment ? STK_FINISH_WON : STK_FINISH_LOST;
}

int stk_decide_cancel(stk_run_state state, bool same_tenant)
{
    if (state == STK_RUN_NONE || !same_tenant)
        return STK_CANCEL_UNKNOWN;
    if (state == STK_RUN_FINISHED)
        return STK_CANCEL_PASSED;
    return state == STK_RUN_ASSIGNED || state == STK_RUN_RUNNING ? STK_CANCEL_ASKED : STK_CANCEL_FINISHED;
}

int stk_decide_requeue(stk_run_state state, bool same_assignment, bool repeat)
{
    bool can = state == STK_RUN_ASSIGNED || (state == STK_RUN_RUNNING && repeat);
    return can && same_assignment ? STK_REQUEUE_OK : STK_REQUEUE_STALE;
}

stk_lost_fate stk_decide_lost(stk_run_state state, bool cancel_asked, bool retry_always, bool request_there)
{
    if (cancel_asked)
        return STK_LOST_CANCEL;
    if (!request_there)
        return STK_LOST_FINISH;
    if (state == STK_RUN_ASSIGNED)
        return STK_LOST_REQUEUE;
    return retry_always ? STK_LOST_REPEAT : STK_LOST_FINISH;
}

bool stk_decide_loss_counts(bool came_back, int64_t losses_before)
{
    return !came_back || losses_before >= STK_LOSSES_FREE;
}

bool stk_decide_adopt(stk_run_state state, bool same_assignment, bool worker_live)
{
    if (!worker_live || state == STK_RUN_FINISHED)
        return false;
    return (state != STK_RUN_ASSIGNED && state != STK_RUN_RUNNING) || same_assignment;
}

bool stk_decide_grace(int64_t last_ns, int64_t now_ns, stk_span heartbeat)
{
    int64_t gap = 2 * heartbeat.ns > STK_REAP_LATE.ns ? 2 * heartbeat.ns : STK_REAP_LATE.ns;
    return last_ns < 0 || now_ns - last_ns > gap;
}
