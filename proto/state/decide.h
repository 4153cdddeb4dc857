/* What each operation decides, as pure functions over facts: no clock, no database. Every adapter gathers the
 * facts in one transaction, asks here, and writes what follows. The tables are in README.md. */
#ifndef STK_STATE_DECIDE_H
#define STK_STATE_DECIDE_H

#include "proto/state/state.h"

typedef struct stk_submit_facts {
    bool key_known, body_same; /* the tenant's key was used before; with the same body */
    bool run_known;            /* the run id is there already */
    int64_t unfinished, cap;
} stk_submit_facts;
int stk_decide_submit(const stk_submit_facts *facts); /* STK_SUBMIT_… */

int stk_decide_queue(stk_run_state state); /* STK_QUEUE_… */

typedef struct stk_assign_facts {
    bool open;
    stk_run_state state; /* NONE = unknown */
    bool cancel_asked;
    bool worker_live; /* this incarnation, its lease not past, not draining */
    bool plan;
    int64_t slots, used;
    int64_t running, cap; /* of the tenant */
    bool wants_sandbox, sandbox_there;
    bool first; /* the caller takes it for a first attempt */
    int64_t attempts;
} stk_assign_facts;
int stk_decide_assign(const stk_assign_facts *facts); /* STK_ASSIGN_… */

typedef struct stk_start_facts {
    stk_run_state state;
    bool ours; /* assignment, worker and incarnation are the run's */
    bool live; /* lease */
    bool cancel_asked;
} stk_start_facts;
int stk_decide_start(const stk_start_facts *facts); /* STK_START_… */

int stk_decide_finish(stk_run_state state, bool same_assignment);               /* STK_FINISH_…  */
int stk_decide_cancel(stk_run_state state, bool same_tenant);                   /* STK_CANCEL_…  */
int stk_decide_requeue(stk_run_state state, bool same_assignment, bool repeat); /* STK_REQUEUE_… */

/* A run whose holder is gone. */
typedef enum stk_lost_fate {
    STK_LOST_REQUEUE,
    STK_LOST_REPEAT,
    STK_LOST_FINISH,
    STK_LOST_CANCEL
} stk_lost_fate;
stk_lost_fate stk_decide_lost(stk_run_state state, bool cancel_asked, bool retry_always, bool request_there);

/* Whether losing a run that had not started counts as an attempt. A holder that stays away may have been
 * killed by it: counts. One that came back (join, leave) did not launch it, as far as anybody knows: does not
 * count, but a run that meets this STK_LOSSES_FREE times is counted from then on, so that one which kills its
 * host while it is prepared ends as well. */
#define STK_LOSSES_FREE 8
bool stk_decide_loss_counts(bool came_back, int64_t losses_before);

bool stk_decide_adopt(stk_run_state state, bool same_assignment, bool worker_live);

/* True: everybody gets one lease of grace first. last < 0: reap never ran. A gap is more than two heartbeats,
 * and more than STK_REAP_LATE: reaping once a second is no gap however short the heartbeat is. */
#define STK_REAP_LATE stk_sec(3)
bool stk_decide_grace(int64_t last_ns, int64_t now_ns, stk_span heartbeat);

#endif
