/* `stockade doctor`: probes every backend with a canary sandbox, as a worker does at its start, and says what
 * is missing and the one command that would bring it. Needs no running Stockade. */
#ifndef STK_WORKERS_DOCTOR_H
#define STK_WORKERS_DOCTOR_H

/* Exit status: 0 at least one backend works, 1 none does, 2 usage. */
int stk_verb_doctor(int argc, char **argv);

#endif
