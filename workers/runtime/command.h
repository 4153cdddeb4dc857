/* One command from fork to its end, on PID 1's side.
 *
 *   starting --STARTED--> running --LEFT--> draining --> sweeping --> done
 *            --FAILED---------------------------------------------> done
 *   starting, running, draining --deadline, cancel, minder lost--> sweeping
 *
 * Sweeping is skipped when the minder saw that nothing was left. All pipes are always drained, whoever reads
 * the answer. Every descendant is gone before `done`. */
#ifndef STK_RUNTIME_COMMAND_H
#define STK_RUNTIME_COMMAND_H

#include "proto/base/time.h"
#include "proto/message/link.h"
#include "workers/runtime/minder.h"
#include "workers/runtime/oom.h"
#include "workers/runtime/output.h"
#include "workers/runtime/reaper.h"

typedef struct stk_command stk_command;

/* Borrowed until done. */
typedef struct stk_command_spec {
    char *const *argv;
    char *const *envp;
    const char *path;
    int cwd;       /* directory descriptor */
    stk_str input; /* stdin; p == NULL: /dev/null */
    stk_span timeout;
    size_t cap; /* bytes kept of each stream */
} stk_command_spec;

/* What commands share. */
typedef struct stk_command_env {
    struct event_base *base;
    stk_reaper *reaper;
    const stk_oom *oom;
    int score;             /* descriptor of our own oom_score_adj, -1 = none */
    char own_score[8];     /* what it was */
    int null;              /* /dev/null */
    bool negative_signals; /* exit code of a signal N: -N instead of 128+N */
} stk_command_env;

typedef struct stk_command_events {
    void (*started)(stk_command *cmd, void *arg);
    void (*output)(stk_command *cmd, void *arg); /* more was read; only while running */
    /* The last call; then the command may be freed. */
    void (*done)(stk_command *cmd, void *arg);
} stk_command_events;

/* Never calls back from inside. -STK_E_UNAVAILABLE: no process or descriptor to be had; nothing was started.
 */
int stk_command_start(const stk_command_env *env, const stk_command_spec *spec,
                      const stk_command_events *events, void *arg, stk_command **ret,
                      stk_err *err) STK_MUST_USE;
/* Nobody wants the answer: ends it now; `done` follows. */
void stk_command_cancel(stk_command *cmd);
/* After done only. */
void stk_command_free(stk_command *cmd);

/* 0 = stdout, 1 = stderr. */
stk_output *stk_command_output(stk_command *cmd, int which);
/* After done: 0, or the errno of what kept it from starting (exec failures have an end of their own: 126,
 * 127). */
int stk_command_not_started(const stk_command *cmd, stk_start_stage *ret_stage);
/* After done: how it ended; `truncated` is the caller's. */
const stk_exec_end *stk_command_end(const stk_command *cmd);

#endif
