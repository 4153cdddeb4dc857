/* The child side of a command: a small process that starts it, adopts its orphans and says how it ended.
 *
 * PID 1 forks a minder per command. The minder is undumpable like PID 1 (the command cannot look into it),
 * blocks every signal that can be blocked, and holds no descriptor but its report pipe. The command may still
 * kill or stop it: therefore PID 1 owns the deadline and the sweep, and a minder that dies without a LEFT
 * report ends its command. */
#ifndef STK_RUNTIME_MINDER_H
#define STK_RUNTIME_MINDER_H

#include "proto/base/base.h"
#include <sys/types.h>

typedef enum stk_report_kind {
    STK_REPORT_STARTED = 1, /* exec succeeded; at = when                                            */
    STK_REPORT_FAILED,      /* nothing was started: `value` errno, `stage` where                    */
    STK_REPORT_LEFT         /* the command's own process ended: `value` wait status, `survivors`    */
} stk_report_kind;

typedef enum stk_start_stage {
    STK_STAGE_FORK,
    STK_STAGE_CWD,
    STK_STAGE_EXEC,
    STK_STAGE_INTERPRETER
} stk_start_stage;

typedef struct stk_report {
    stk_report_kind kind;
    int value;
    stk_start_stage stage;
    bool survivors; /* descendants are left below the minder */
    int64_t at;     /* stk_mono, ns */
} stk_report;

typedef struct stk_minder_spec {
    char *const *argv;
    char *const *envp;
    const char *path; /* the command's PATH, where argv[0] without '/' is looked up */
    int cwd;          /* descriptor of the directory to start in */
    int stdio[3];     /* all >= 3 */
    int report;       /* write end of the report pipe, >= 3 */
} stk_minder_spec;

/* Runs in the forked child; never returns. */
_Noreturn void stk_minder_main(const stk_minder_spec *spec, pid_t parent);

#endif
