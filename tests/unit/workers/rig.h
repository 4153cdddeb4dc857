/* A worker's surroundings: the embedded bus and state in a directory of their own behind recorders that note
 * what happens in which order and can refuse or hold it, a configuration, and the backend in memory. The loop
 * turns only while a test waits. */
#ifndef STK_TEST_WORKERS_RIG_H
#define STK_TEST_WORKERS_RIG_H

#include "proto/bus/bus_sqlite.h"
#include "proto/message/audit.h"
#include "proto/message/event.h"
#include "proto/state/state_sqlite.h"
#include "tests/unit/workers/fake.h"
#include "tests/unit/workers/unit.h"
#include "workers/ctx.h"
#include "workers/job.h"
#include "workers/pool.h"

#define RIG_NOTES 512

typedef struct rig {
    char dir[64];
    stk_loop *loop;
    struct event *tick;
    stk_bus_file *bus_file;
    stk_state_file *state_file;
    stk_bus *bus; /* the embedded ones; ctx holds the recorders */
    stk_state *st;
    stk_bus bus_recorder;
    stk_state state_recorder;
    stk_keyring *ring;
    stk_ctx ctx;
    fake be;
    char notes[RIG_NOTES][48]; /* in order: "create", "launch", "start", "finished:exited", … */
    size_t nnotes;
    char refuse[48];  /* the message of that name is refused … */
    int refusals;     /* … so many times */
    stk_op_kind fail; /* the operation of that kind fails … */
    int failures;     /* … so many times */
    stk_op_kind hold; /* the operation of that kind waits for rig_release */
    bool holding;
    stk_op *held;
    int64_t version;
    size_t flying;
    stk_job *job; /* the one under test; NULL once it is done */
    size_t jobs_done;
    stk_event event; /* the last "finished" or "result" */
    char *event_text;
    stk_box *warm; /* what take_warm hands over */
} rig;

rig *rig_new(void);
void rig_free(rig *r);
void rig_record(rig *r); /* rig_record.c */
void rig_until(rig *r, bool (*holds)(rig *r, void *arg), void *arg);
void rig_turn(rig *r, stk_span span);
void rig_note(void *arg, const char *what);
/* How often; and whether it came before another, both being there. */
size_t rig_noted(const rig *r, const char *what);
bool rig_before(const rig *r, const char *a, const char *b);
void rig_until_noted(rig *r, const char *what);
/* All notes in one line. */
const char *rig_story(const rig *r);
void rig_config(rig *r, const char *name, const char *doc);

/* Puts a run into state, assigned to this worker. sandbox: a pooled one that is taken for it, or "". */
stk_assignment rig_assign(rig *r, const char *sandbox, const char *retry);
/* Makes the job for it. */
void rig_job(rig *r, const char *sandbox, const char *retry);
void rig_until_done(rig *r);
void rig_release(rig *r);
/* What state says: state text, or "finished:<reason>". */
const char *rig_state(rig *r, const char *run);
void *rig_call(rig *r, void *op);

/* The job has ended: what must hold always; frees the rig. */
void rig_end_job(rig *r);

/* Frames of the runtime. */
#define EXIT(members) "{\"exit\":{" members "}}\n"
#define EXIT_OF(code, signal, more)                                                                          \
    EXIT("\"exit_code\":" code ",\"signal\":" signal                                                         \
         ",\"truncated\":false,\"duration_ms\":3,\"stdout_bytes\":6,"                                        \
         "\"stderr_bytes\":0," more)
#define PLAIN "\"timed_out\":false,\"oom_killed\":false"

#endif
