/* The one owner of SIGCHLD: reaps whatever ends, and makes sure that what belonged to an ended command is
 * gone.
 *
 * The only children we start are minders. A minder is a subreaper, so everything its command started stays
 * below it while it lives; when it dies, that becomes ours. Hence the rule of the sweep: every child that is
 * not the minder of a running command dies, and what is below it too, until none is left. */
#ifndef STK_RUNTIME_REAPER_H
#define STK_RUNTIME_REAPER_H

#include "proto/base/err.h"
#include <event2/event.h>
#include <sys/types.h>

typedef struct stk_reaper stk_reaper;
typedef struct stk_minded stk_minded; /* one minder, from its start until it is reaped */

/* Blocks SIGCHLD for good, becomes a subreaper. */
int stk_reaper_new(struct event_base *base, stk_reaper **ret, stk_err *err) STK_MUST_USE;
void stk_reaper_free(stk_reaper *reaper);

/* Spares pid from sweeps. `ended` is called once, when it was reaped (from the loop, never from inside a
 * call). */
stk_minded *stk_reaper_mind(stk_reaper *reaper, pid_t pid, void (*ended)(void *arg), void *arg);
/* The command is over and its minder is on its way out: no callback any more. */
void stk_reaper_forget(stk_minded *minded);
/* Kills the minder and all that is below it, at once, whatever state it is in. `swept` is called once none is
 * left (or with gone == false after 5 s, when the kernel does not let one go). minded is invalid afterwards.
 * NULL: only waits for the orphans of a minder that was reaped already. */
void stk_reaper_condemn(stk_reaper *reaper, stk_minded *minded, void (*swept)(bool gone, void *arg),
                        void *arg);
/* At exit: kills everything below us and waits for it, at most 2 s. */
void stk_reaper_end_all(stk_reaper *reaper);

#endif
