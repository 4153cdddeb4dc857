/* The run machine: states, events, reasons, as data. The diagram below is printed from the table by a test.
 *
 *   submitted: queue -> queued, finish -> finished
 *   queued: assign -> assigned, finish -> finished
 *   assigned: start -> running, finish -> finished, requeue -> queued
 *   running: finish -> finished, repeat -> queued
 *   finished: (the end)
 *
 * finish from a state before running is cancelled, expired, refused, worker_lost or sandbox_failed; requeue:
 * the command was not started; repeat: it was, and the request says retry: always.
 */
#ifndef STK_MESSAGE_RUN_H
#define STK_MESSAGE_RUN_H

#include "proto/base/err.h"

typedef enum stk_run_state {
    STK_RUN_NONE,
    STK_RUN_SUBMITTED,
    STK_RUN_QUEUED,
    STK_RUN_ASSIGNED,
    STK_RUN_RUNNING,
    STK_RUN_FINISHED,
    STK_RUN_STATES
} stk_run_state;

typedef enum stk_run_event {
    STK_EV_QUEUE,
    STK_EV_ASSIGN,
    STK_EV_START,
    STK_EV_FINISH,
    STK_EV_REQUEUE,
    STK_EV_REPEAT /* running -> queued, retry: always */
} stk_run_event;

/*    symbol           API text           CLI exit     HTTP of a waiting call  retried before start
 * exit -1 = the command's own; -2 = 128 + signal. */
/* clang-format off */
#define STK_REASON_TABLE(X) \
    X(EXITED,          "exited",          -1,          200,                    false) \
    X(SIGNALED,        "signaled",        -2,          200,                    false) \
    X(TIMEOUT,         "timeout",         124,         200,                    false) \
    X(OOM,             "oom",             137,         200,                    false) \
    X(CANCELLED,       "cancelled",       125,         200,                    false) \
    X(EXPIRED,         "expired",         125,         200,                    false) \
    X(REFUSED,         "refused",         125,         200,                    false) \
    X(WORKER_LOST,     "worker_lost",     125,         200,                    false) \
    X(SANDBOX_FAILED,  "sandbox_failed",  125,         200,                    true)
/* clang-format on */
typedef enum stk_reason {
    STK_REASON_NONE,
#define X(sym, text, exit, http, retry) STK_REASON_##sym,
    STK_REASON_TABLE(X)
#undef X
        STK_REASONS
} stk_reason;

const char *stk_run_state_text(stk_run_state s);
stk_run_state stk_run_state_parse(const char *text); /* STK_RUN_NONE when unknown */
const char *stk_reason_text(stk_reason r);
stk_reason stk_reason_parse(const char *text);
/* Exit status of the command line for a run that ended so. */
int stk_reason_exit(stk_reason r, int exit_code, int signal);
/* HTTP status of a call that waited for the run. */
int stk_reason_http(stk_reason r);
/* True when the scheduler tries again as long as the command was not started. */
bool stk_reason_retried(stk_reason r);

/* The one mover: new state, or STK_RUN_NONE when the event is not allowed in that state. */
stk_run_state stk_run_next(stk_run_state s, stk_run_event e);
/* Prints the table, one line a state, as it stands in the diagram above. Returns its length, -STK_E_LIMIT
 * when it does not fit. */
int stk_run_diagram(char *out, size_t size);

#endif
