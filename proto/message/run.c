#include "proto/message/run.h"
#include "proto/base/buf.h"
#include <stdio.h>

#define EVENTS (STK_EV_REPEAT + 1)

static const char *const state_names[STK_RUN_STATES] = {"",         "submitted", "queued",
                                                        "assigned", "running",   "finished"};
static const char *const event_names[EVENTS] = {"queue", "assign", "start", "finish", "requeue", "repeat"};

/* What is not here is not allowed. */
static const stk_run_state next[STK_RUN_STATES][EVENTS] = {
    [STK_RUN_SUBMITTED] = {[STK_EV_QUEUE] = STK_RUN_QUEUED, [STK_EV_FINISH] = STK_RUN_FINISHED},
    [STK_RUN_QUEUED] = {[STK_EV_ASSIGN] = STK_RUN_ASSIGNED, [STK_EV_FINISH] = STK_RUN_FINISHED},
    [STK_RUN_ASSIGNED] = {[STK_EV_START] = STK_RUN_RUNNING,
                          [STK_EV_FINISH] = STK_RUN_FINISHED,
                          [STK_EV_REQUEUE] = STK_RUN_QUEUED},
    [STK_RUN_RUNNING] = {[STK_EV_FINISH] = STK_RUN_FINISHED, [STK_EV_REPEAT] = STK_RUN_QUEUED},
};

typedef struct reason_row {
    const char *text;
    int exit;
    int http;
    bool retried;
} reason_row;

static const reason_row reasons[STK_REASONS] = {[STK_REASON_NONE] = {"", 125, 200, false},
#define X(sym, text, exit, http, retry) [STK_REASON_##sym] = {text, exit, http, retry},
                                                STK_REASON_TABLE(X)
#undef X
};

const char *stk_run_state_text(stk_run_state s)
{
    return (unsigned)s < STK_RUN_STATES ? state_names[s] : "";
}

stk_run_state stk_run_state_parse(const char *text)
{
    for (int s = STK_RUN_SUBMITTED; text && s < STK_RUN_STATES; s++)
        if (strcmp(text, state_names[s]) == 0)
            return (stk_run_state)s;
    return STK_RUN_NONE;
}

static const reason_row *row_of(stk_reason r)
{
    return (unsigned)r < STK_REASONS ? &reasons[r] : &reasons[STK_REASON_NONE];
}

const char *stk_reason_text(stk_reason r)
{
    return row_of(r)->text;
}

stk_reason stk_reason_parse(const char *text)
{
    for (int r = STK_REASON_NONE + 1; text && r < STK_REASONS; r++)
        if (strcmp(text, reasons[r].text) == 0)
            return (stk_reason)r;
    return STK_REASON_NONE;
}

int stk_reason_exit(stk_reason r, int exit_code, int signal)
{
    int exit = row_of(r)->exit;
    if (exit == -1)
        return exit_code;
    return exit == -2 ? 128 + signal : exit;
}

int stk_reason_http(stk_reason r)
{
    return row_of(r)->http;
}

bool stk_reason_retried(stk_reason r)
{
    return row_of(r)->retried;
}

stk_run_state stk_run_next(stk_run_state s, stk_run_event e)
{
    if ((unsigned)s >= STK_RUN_STATES || (unsigned)e >= EVENTS)
        return STK_RUN_NONE;
    return next[s][e];
}

int stk_run_diagram(char *out, size_t size)
{
    stk_buf buf STK_AUTO(stk_buf_done) = STK_BUF(4096);
    for (int s = STK_RUN_SUBMITTED; s < STK_RUN_STATES; s++) {
        stk_buf_fmt(&buf, "%s:", state_names[s]);
        const char *comma = "";
        for (int e = 0; e < EVENTS; e++) {
            if (next[s][e] == STK_RUN_NONE)
                continue;
            stk_buf_fmt(&buf, "%s %s -> %s", comma, event_names[e], state_names[next[s][e]]);
            comma = ",";
        }
        stk_buf_text(&buf, *comma ? "\n" : " (the end)\n");
    }
    if (buf.over || buf.n >= size)
        return -STK_E_LIMIT;
    memcpy(out, buf.p, buf.n + 1);
    return (int)buf.n;
}
