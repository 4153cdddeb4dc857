/* `stockade up`: gateway, scheduler, worker and audit consumer in one process, one thread and event loop
 * each, wired to the SQLite adapters in a state directory. Nothing calls past a port. Killing it at any
 * instant and starting it again loses no accepted run and repeats no started one. */
#ifndef STK_STANDALONE_UP_H
#define STK_STANDALONE_UP_H

/* Exit status: 0 stopped by a signal, 1 it could not start or go on, 2 usage or configuration. */
int stk_verb_up(int argc, char **argv);

#endif
